"""Owns `agentctl runs`: the list of Runs of a store."""

from __future__ import annotations

import click

from engine.commands.options import store_options

STATUSES = (
    "created", "proposing", "executing", "awaiting_approval", "awaiting_input", "awaiting_reconciliation",
    "settling", "completed", "failed", "cancelled", "expired",
)  # fmt: skip


@click.command("runs")
@click.option("--status", type=click.Choice(STATUSES), help="Only Runs with this status.")
@click.option("--policy", metavar="ID", help="Only Runs of this policy.")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="At most so many."
)
@store_options
def runs_command(status: str | None, policy: str | None, limit: int, db: str | None, as_json: bool) -> int:
    """List Runs, newest first."""
    from engine.commands.reading import opened
    from engine.report.forms import dumps
    from engine.report.standing import runs_lines, summary_json

    with opened(db) as store:
        found = store.runs(status=status, policy=policy, limit=limit)
    if as_json:
        click.echo(dumps({"schema": "agentctl.runs/v1", "runs": [summary_json(run) for run in found]}))
    else:
        click.echo("\n".join(runs_lines(found)) if found else "no Run fits")
    return 0
