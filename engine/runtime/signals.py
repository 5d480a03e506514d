"""Owns what people and applications tell a Run while it works or waits: each an event, none needs the claim."""

from __future__ import annotations

from collections.abc import Callable

from engine.domain import events as e
from engine.domain.actors import Actor
from engine.domain.errors import Refused
from engine.domain.ids import RunId
from engine.domain.state import RunState
from engine.ports import Clock, EventStore
from engine.runtime.journal import Journal
from engine.runtime.start import check_input

Say = Callable[[RunState], list[e.Body]]


def append(store: EventStore, clock: Clock, run: RunId, actor: Actor, say: Say) -> RunState:
    """Appends what `say` makes of the folded state; asks again when the log moved meanwhile.

    `say` raises Refused or UsageError where the state does not allow it.
    """
    journal = Journal(store, run, clock)
    while True:
        journal.load()
        bodies = say(journal.state)
        for body in bodies:
            journal.say(body, actor)
        if journal.flush():
            return journal.state


def reply(store: EventStore, clock: Clock, run: RunId, actor: Actor, text: str) -> RunState:
    """One more user input; the answer to an open question, if one was asked."""
    check_input(text, "reply")

    def say(state: RunState) -> list[e.Body]:
        _not_over(state, "takes no reply")
        return [e.InputReceived(text=text, answers=state.asked)]

    return append(store, clock, run, actor, say)


def cancel(store: EventStore, clock: Clock, run: RunId, actor: Actor, because: str) -> RunState:
    """Asks for the end. Asked twice, it is the same cancel."""

    def say(state: RunState) -> list[e.Body]:
        _not_over(state, "cannot be cancelled")
        return [] if state.cancel_requested is not None else [e.CancelRequested(because=because)]

    return append(store, clock, run, actor, say)


def set_source(
    store: EventStore,
    clock: Clock,
    run: RunId,
    actor: Actor,
    source: str,
    state_name: e.SourceState,
    because: str,
) -> RunState:
    """A source became available, degraded, unavailable or unauthorized: a permission event."""

    def say(state: RunState) -> list[e.Body]:
        _not_over(state, "needs no sources")
        if state.sources.get(source, "available") == state_name:
            return []
        return [e.SourceStateChanged(source=source, state=state_name, because=because)]

    return append(store, clock, run, actor, say)


def _not_over(state: RunState, what: str) -> None:
    if state.ending is not None:
        raise Refused(
            f"Run `{state.run}` is {state.ending[0]} and {what}",
            remedy="start a new Run, or `agentctl show` it",
        )
