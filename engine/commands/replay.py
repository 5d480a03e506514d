"""Owns `agentctl replay`: folds a recorded Run and decides it again, and says where today's answer differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.commands.options import run_argument, store_options
from engine.domain.diagnostics import many

if TYPE_CHECKING:
    from engine.runtime.replay import Difference

DIFFERS = 1


@click.command("replay")
@run_argument
@store_options
def replay_command(run: str, db: str | None, as_json: bool) -> int:
    """Decide RUN again, step by step from its log: rejections, holds, fences, starts, contracts, gates.

    Answers of models, tools and people are those of the log; nothing is sent. Exits 1 where a recorded decision
    would be another one now. `--model replay/RUN` plays the recorded responses in a new Run instead.
    """
    from engine.commands.reading import opened
    from engine.report.forms import dumps
    from engine.runtime.library import PolicyLibrary
    from engine.runtime.naming import run_of
    from engine.runtime.replay import replay

    with opened(db) as store:
        found = replay(store, PolicyLibrary(store), run_of(store, run))
    differences = found.differences
    if as_json:
        form = {"schema": "agentctl.replay/v1", "run": found.run, "events": found.events}
        listed = [_form(each) for each in differences]
        click.echo(dumps({**form, "decisions": found.decisions, "differences": listed}))
    else:
        counted = f"{many(found.events, 'event')} folded, {many(found.decisions, 'decision')} made again"
        click.echo(f"Run {found.run}: {counted}")
        click.echo("\n".join(map(_line, differences)) or "each is as it was recorded")
    return DIFFERS if differences else 0


def _form(found: Difference) -> dict[str, object]:
    return {
        "seq": found.seq,
        "kind": found.kind,
        "fields": [*found.fields],
        "recorded": found.recorded,
        "decided": found.decided,
    }


def _line(found: Difference) -> str:
    from engine.report.words import value

    if found.decided is None:
        return f"event {found.seq}: {found.kind} is recorded, nothing would be decided now"
    if found.recorded is None:
        return f"event {found.seq}: {found.kind} would be recorded before it now: {value(found.decided, 200)}"
    if not found.fields:
        return f"event {found.seq}: {found.kind} is recorded, now {value(found.decided, 200)}"
    assert isinstance(found.recorded, dict)
    assert isinstance(found.decided, dict)
    changes = [
        f"{name} {value(found.recorded.get(name))} is now {value(found.decided.get(name))}"
        for name in found.fields
    ]
    return f"event {found.seq}: {found.kind} differs: " + "; ".join(changes)
