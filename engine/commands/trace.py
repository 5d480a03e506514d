"""Owns `agentctl trace`: from an argument of a call back to the receipts and inputs in which its value occurs."""

from __future__ import annotations

import click

from engine.commands.options import run_argument, store_options


@click.command("trace")
@run_argument
@click.argument("call", metavar="CALL")
@click.argument("arg", metavar="[ARG]", required=False)
@store_options
def trace_command(run: str, call: str, arg: str | None, db: str | None, as_json: bool) -> int:
    """Print where the arguments of CALL occur in the records of RUN, back to receipts and inputs."""
    from engine.commands.given import call_of
    from engine.commands.reading import opened
    from engine.report.forms import dumps
    from engine.report.lineage import chain_json, chain_lines
    from engine.runtime.lineage import Lineage
    from engine.runtime.naming import run_of

    with opened(db) as store:
        lineage = Lineage(store, run_of(store, run))
        found = lineage.call(call_of(call))
        links = lineage.chain(found.id, arg)
        said = dumps(chain_json(found, links)) if as_json else "\n".join(chain_lines(lineage, found, links))
    click.echo(said)
    return 0
