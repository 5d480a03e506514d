"""Owns `agentctl source`: says of a source of tools that it is available, degraded, unavailable or unauthorized."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.commands.options import identity_options, store_options
from engine.domain.diagnostics import many

if TYPE_CHECKING:
    from engine.domain.actors import Actor
    from engine.domain.events import SourceState
    from engine.domain.ids import RunId
    from engine.runtime.runtime import Runtime

STATES = ("available", "degraded", "unavailable", "unauthorized")


@click.group("source")
def source_command() -> None:
    """Sources of tools: what the Host knows of their state."""


@source_command.command("set")
@click.argument("name", metavar="NAME")
@click.argument("state", type=click.Choice(STATES))
@click.option("--run", "run", metavar="RUN", help="Only for this Run.")
@click.option("--all", "everywhere", is_flag=True, help="For every open Run whose policy has the source.")
@click.option("--because", default="", metavar="TEXT", help="Why; it is recorded.")
@identity_options
@store_options
def set_command(
    name: str,
    state: SourceState,
    run: str | None,
    everywhere: bool,
    because: str,
    identity: str | None,
    roles: tuple[str, ...],
    attrs: tuple[str, ...],  # noqa: ARG001 - nothing here asks for attributes, the option is shared
    db: str | None,
    as_json: bool,
) -> int:
    """Record that source NAME is in STATE: tools of a source that is not usable are refused at once."""
    from engine.bootstrap import open_runtime
    from engine.commands.identity import who_acts
    from engine.commands.project import this_project
    from engine.domain.errors import UsageError
    from engine.report.forms import dumps
    from engine.runtime.naming import run_of

    if (run is None) != everywhere:
        raise UsageError("which Runs are meant?", remedy="give one of `--run RUN` and `--all`")
    project = this_project()
    by = who_acts(project, identity, roles)
    with open_runtime(db, project=project, create=False) as runtime:
        named = [run_of(runtime.store, run)] if run is not None else runtime.open_runs()
        told = _told(runtime, named, name, state, because, by, everywhere=everywhere)
    if as_json:
        click.echo(dumps({"schema": "agentctl.source/v1", "source": name, "state": state, "runs": [*told]}))
    else:
        click.echo(
            "\n".join(
                [f"source {name} is {state} for {many(len(told), 'Run')}", *(f"  {each}" for each in told)]
            )
        )
    return 0


def _told(
    runtime: Runtime,
    runs: list[RunId],
    name: str,
    state: SourceState,
    because: str,
    by: Actor,
    *,
    everywhere: bool,
) -> list[RunId]:
    told = []
    for run in runs:
        if everywhere and not runtime.has_source(run, name):
            continue
        runtime.set_source(run, name, state, by=by, because=because)
        told.append(run)
    return told
