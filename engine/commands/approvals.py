"""Owns `agentctl approvals`: what waits for somebody's yes, and who may give it."""

from __future__ import annotations

import click

from engine.commands.options import store_options

MOST = 1000
"""Runs that are looked through."""


@click.command("approvals")
@click.argument("run", metavar="[RUN]", required=False)
@store_options
def approvals_command(run: str | None, db: str | None, as_json: bool) -> int:
    """List what waits for an approval, in one Run or in all."""
    from engine.commands.reading import db_option, opened, read_run
    from engine.report.forms import dumps
    from engine.report.waiting import Ways, approval_lines, approvals_json, open_approvals

    with opened(db) as store:
        names = [run] if run else [each.run for each in store.runs(limit=MOST) if each.open_approvals]
        states = [read_run(store, name).state for name in names]
    if as_json:
        found = [item for state in states for item in approvals_json(state)]
        click.echo(dumps({"schema": "agentctl.approvals/v1", "approvals": [*found]}))
        return 0
    for state in states:
        for call in open_approvals(state):
            ways = Ways(state.run, db_option(db))
            lines = [
                f"Run {state.run}",
                *approval_lines(call),
                f"  {ways.command('approve', str(call.id))}",
                "",
            ]
            click.echo("\n".join(lines))
    if not any(open_approvals(state) for state in states):
        click.echo("nothing waits for an approval")
    return 0
