"""Owns `agentctl context`: what the model was sent at one turn, and why anything was left out."""

from __future__ import annotations

import click

from engine.commands.options import run_argument, store_options


@click.command("context")
@run_argument
@click.option("--turn", type=int, metavar="N", help="The turn; the last one by default.")
@click.option("--attempt", type=int, metavar="N", help="The attempt; the last one of the turn by default.")
@store_options
def context_command(run: str, turn: int | None, attempt: int | None, db: str | None, as_json: bool) -> int:
    """Print what the model was sent at a turn of RUN, made again from the log, and what was left out and why."""
    from engine.bootstrap import on_the_wire
    from engine.commands.reading import opened, read_run
    from engine.report.forms import dumps
    from engine.report.sent import sent_json, sent_lines
    from engine.runtime.naming import run_of
    from engine.runtime.sent import sent

    with opened(db) as store:
        asked = turn if turn is not None else max(1, len(read_run(store, run).state.turns))
        found = sent(store, run_of(store, run), asked, attempt)
        if as_json:
            click.echo(dumps(sent_json(found, on_the_wire(found.messages, found.start.model))))
        else:
            click.echo("\n".join(sent_lines(found)))
    return 0
