"""Owns what commands read of a store: the project, the Run that is meant, its state, outputs and budgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.commands.project import this_project
from engine.domain import events as e
from engine.domain.errors import AgentctlError
from engine.domain.policy import Budgets, Policy
from engine.domain.state import RunState
from engine.policy import budgets
from engine.ports import EventStore
from engine.runtime.naming import run_of

if TYPE_CHECKING:
    from engine.runtime.library import PolicyLibrary


@contextmanager
def opened(db: str | None) -> Iterator[EventStore]:
    """The store, for reading: a database that is not there is refused, not made."""
    from engine.bootstrap import open_store

    store = open_store(db, this_project(), create=False)
    try:
        yield store
    finally:
        store.close()


@dataclass(frozen=True, slots=True)
class Read:
    """One Run as its log says it is."""

    state: RunState
    outputs: tuple[e.OutputPublished, ...]
    """Their rendered fields are in the order that the policy declares."""


def read_run(store: EventStore, prefix: str) -> Read:
    """Folds the Run that `prefix` names. Raises UsageError, LogBroken, NewerLog."""
    from engine.lifecycle.fold import fold
    from engine.runtime.library import PolicyLibrary

    run = run_of(store, prefix)
    outputs: list[e.OutputPublished] = []

    def watched() -> Iterator[e.Event]:
        for event in store.events(run):
            if isinstance(event.body, e.OutputPublished):
                outputs.append(event.body)
            yield event

    state, library = fold(run, watched()), PolicyLibrary(store)
    return Read(state, tuple(_as_declared(body, library, state.bundle) for body in outputs))


def _as_declared(body: e.OutputPublished, library: PolicyLibrary, bundle: str) -> e.OutputPublished:
    return body.model_copy(update={"rendered": library.published(bundle, body.output, body.rendered)})


def budgets_of(store: EventStore, state: RunState) -> Budgets | None:
    """The budgets in force for a Run; None where its policy does not compile in this version."""
    from engine.runtime.library import PolicyLibrary

    try:
        return budgets.of(policies_of(PolicyLibrary(store), state))
    except AgentctlError:
        return None


def policies_of(library: PolicyLibrary, state: RunState) -> Sequence[Policy]:
    """The Run's own policy first, then those that restrict it."""
    return [library.policy(bundle) for bundle in (state.bundle, *state.restricted_by.values())]


def db_option(db: str | None) -> str:
    """`--db` as it must be repeated in a command that continues."""
    return f"--db {db}" if db else ""
