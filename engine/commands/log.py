"""Owns `agentctl log`: the timeline of a Run, filtered."""

from __future__ import annotations

from collections.abc import Iterable

import click

from engine.commands.options import run_argument, store_options


@click.command("log")
@run_argument
@click.option("--kind", "kinds", metavar="KIND", multiple=True, help="Only events of this kind.")
@click.option("--tool", "tools", metavar="TOOL", multiple=True, help="Only events about this tool.")
@click.option(
    "--outcome", "outcomes", metavar="OUTCOME", multiple=True, help="Only events with this outcome."
)
@store_options
def log_command(
    run: str,
    kinds: tuple[str, ...],
    tools: tuple[str, ...],
    outcomes: tuple[str, ...],
    db: str | None,
    as_json: bool,
) -> int:
    """Print the events of a Run in order. Options of one name widen, different ones narrow."""
    from engine.commands.reading import opened, read_run
    from engine.domain.events import BODIES
    from engine.report.forms import dumps, event_json
    from engine.report.timeline import OUTCOMES, Wanted, line

    wanted = Wanted(_known(kinds, BODIES, "kind"), frozenset(tools), _known(outcomes, OUTCOMES, "outcome"))
    with opened(db) as store:
        state = read_run(store, run).state
        for event in store.events(state.run):
            if wanted.takes(event.body, state):
                click.echo(dumps(event_json(event)) if as_json else line(event, state))
    return 0


def _known(given: Iterable[str], known: Iterable[str], what: str) -> frozenset[str]:
    from engine.domain.diagnostics import suggest
    from engine.domain.errors import UsageError

    names = list(known)
    for word in given:
        if word not in names:
            raise UsageError(
                f"there is no {what} `{word}`", remedy=suggest(word, names, f"one of: {', '.join(names)}")
            )
    return frozenset(given)
