"""Owns `agentctl grants`: what a Run may do by somebody's leave, and how long."""

from __future__ import annotations

import click

from engine.commands.options import run_argument, store_options


@click.command("grants")
@run_argument
@store_options
def grants_command(run: str, db: str | None, as_json: bool) -> int:
    """List the capabilities of RUN, its standing approvals and its endorsed values. `revoke` takes one back."""
    from engine.commands.reading import opened, read_run
    from engine.report.forms import dumps
    from engine.report.grants import grants_json, grants_lines

    with opened(db) as store:
        state = read_run(store, run).state
    if as_json:
        click.echo(dumps({"schema": "agentctl.grants/v1", "run": state.run, "grants": grants_json(state)}))
    else:
        click.echo("\n".join(grants_lines(state)) or "nothing is granted")
    return 0
