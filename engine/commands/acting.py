"""Owns what commands about an existing Run share: the Runtime on it, who acts, and driving it on afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from engine.commands.driving import Surface, announce, drive
from engine.commands.identity import who_acts
from engine.commands.project import this_project
from engine.commands.reading import db_option, opened, read_run
from engine.domain.actors import Actor
from engine.domain.errors import ClaimHeld, Refused
from engine.domain.ids import RunId
from engine.domain.state import RunState
from engine.policy.documents.project import Project

if TYPE_CHECKING:
    from engine.runtime.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Acting:
    """A Runtime on one existing Run."""

    runtime: Runtime
    run: RunId
    project: Project
    db: str | None

    @property
    def state(self) -> RunState:
        return self.runtime.state(self.run)

    def actor(self, identity: str | None, roles: Sequence[str]) -> Actor:
        return who_acts(self.project, identity, roles)

    def not_over(self, what: str) -> None:
        """Raises Refused for a Run that is over."""
        state = self.state
        if state.ending is not None:
            raise Refused(
                f"Run `{self.run}` is {state.ending[0]} and cannot {what}",
                remedy=f"`agentctl show {self.run}` says how it ended; start a new Run",
            )


@contextmanager
def to_act(prefix: str, db: str | None, *, model: str | None = None, drives: bool = True) -> Iterator[Acting]:
    """A Runtime on the Run that `prefix` names, with the model that the Run recorded unless `model` is given.

    Where nothing is driven, no model is opened.
    """
    from engine.bootstrap import open_runtime

    with opened(db) as store:
        state = read_run(store, prefix).state
    project = this_project()
    named = (model or state.model) if drives else None
    with open_runtime(db, model=named, project=project, create=False) as runtime:
        yield Acting(runtime, state.run, project, db)


def continued(acting: Acting, *, as_json: bool, quiet: bool, by: Actor | None = None) -> int:
    """Drives the Run on. Whoever is named in `local` or acted just now may answer at the prompts."""
    if by is None and acting.project.local is not None:
        by = acting.actor(None, ())
    acting.runtime.check(acting.run)
    surface = Surface(as_json, quiet, db_option(acting.db), by)
    announce(surface, acting.state)
    return drive(acting.runtime, acting.run, surface)


def driven_on(acting: Acting, said: str, *, as_json: bool, quiet: bool, by: Actor, only_record: bool) -> int:
    """After somebody's word was recorded: says so, and drives on unless another process does."""
    from engine.report.forms import dumps

    if not as_json:
        click.echo(said)
    try:
        if not only_record:
            return continued(acting, as_json=as_json, quiet=quiet, by=by)
    except ClaimHeld as held:
        if not as_json:
            click.echo(f"another process drives the Run: {held.message}")
    if as_json:
        click.echo(dumps({"run": acting.run, "status": acting.state.status, "recorded": said}))
    return 0
