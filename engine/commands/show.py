"""Owns `agentctl show`: one Run as its log says it is."""

from __future__ import annotations

import click

from engine.commands.options import run_argument, store_options


@click.command("show")
@run_argument
@store_options
def show_command(run: str, db: str | None, as_json: bool) -> int:
    """Show how a Run stands. Status, principal, task, budgets, calls, effects, publications, what it waits for."""
    from engine.commands.reading import budgets_of, db_option, opened, read_run
    from engine.report.forms import dumps
    from engine.report.standing import run_json, run_lines
    from engine.report.waiting import Ways

    with opened(db) as store:
        read = read_run(store, run)
        budgets = budgets_of(store, read.state)
    ways = Ways(read.state.run, db_option(db))
    if as_json:
        click.echo(dumps(run_json(read.state, budgets, read.outputs, ways)))
    else:
        click.echo("\n".join(run_lines(read.state, budgets, read.outputs, ways)))
    return 0
