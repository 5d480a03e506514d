"""Owns `agentctl resume`: drives a Run on from what its log says."""

from __future__ import annotations

import click

from engine.commands.options import drive_options, run_argument, store_options


@click.command("resume")
@run_argument
@drive_options
@store_options
def resume_command(run: str, model: str | None, quiet: bool, db: str | None, as_json: bool) -> int:
    """Continue a Run from its log, with the model that it recorded unless --model names another."""
    from engine.commands.acting import continued, to_act

    with to_act(run, db, model=model) as acting:
        acting.not_over("be resumed")
        return continued(acting, as_json=as_json, quiet=quiet)
