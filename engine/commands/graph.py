"""Owns `agentctl graph`: what depends on what in a Run, as a graph."""

from __future__ import annotations

import click

from engine.commands.options import run_argument


@click.command("graph")
@run_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["mermaid", "dot"]),
    default="mermaid",
    show_default=True,
    help="The form.",
)
@click.option("--db", metavar="URL", help="Database: a path or a URL. Default: `db` of agentctl.yaml.")
def graph_command(run: str, form: str, db: str | None) -> int:
    """Print the dependencies between inputs, facts, calls and outputs of RUN as Mermaid or DOT."""
    from engine.commands.reading import opened
    from engine.report.lineage import dot, mermaid
    from engine.runtime.lineage import Lineage
    from engine.runtime.naming import run_of

    with opened(db) as store:
        lineage = Lineage(store, run_of(store, run))
        click.echo(dot(lineage) if form == "dot" else mermaid(lineage))
    return 0
