"""Owns what people and applications tell a Run while it works or waits: each an event, none needs the claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.domain import events as e
from engine.domain.actors import Actor
from engine.domain.canonical import Json
from engine.domain.diagnostics import suggest
from engine.domain.errors import Conflict, Refused, UsageError
from engine.domain.ids import RunId
from engine.domain.policy import Policy
from engine.domain.state import RunState
from engine.ports import Clock, EventStore, Secrets
from engine.runtime.journal import Journal
from engine.runtime.library import PolicyLibrary
from engine.runtime.start import check_fields, check_input

Say = Callable[[RunState], list[e.Body]]


def append(
    store: EventStore, clock: Clock, run: RunId, actor: Actor, say: Say, *, secrets: Secrets | None = None
) -> RunState:
    """Appends what `say` makes of the folded state; asks again when the log moved meanwhile.

    `say` raises Refused or UsageError where the state does not allow it.
    """
    journal = Journal(store, run, clock, secrets=secrets)
    journal.load()
    while True:
        bodies = say(journal.state)
        for body in bodies:
            journal.say(body, actor)
        if journal.flush():
            return journal.state


def reply(
    store: EventStore, clock: Clock, run: RunId, actor: Actor, text: str, *, secrets: Secrets | None = None
) -> RunState:
    """One more user input; the answer to an open question, if one was asked."""
    check_input(text, "reply")

    def say(state: RunState) -> list[e.Body]:
        _not_over(state, "takes no reply")
        return [e.InputReceived(text=text, answers=state.asked)]

    return append(store, clock, run, actor, say, secrets=secrets)


def cancel(
    store: EventStore, clock: Clock, run: RunId, actor: Actor, because: str, *, secrets: Secrets | None = None
) -> RunState:
    """Asks for the end. Asked twice, it is the same cancel."""

    def say(state: RunState) -> list[e.Body]:
        _not_over(state, "cannot be cancelled")
        return [] if state.cancel_requested is not None else [e.CancelRequested(because=because)]

    return append(store, clock, run, actor, say, secrets=secrets)


def set_source(
    store: EventStore,
    clock: Clock,
    run: RunId,
    actor: Actor,
    source: str,
    state_name: e.SourceState,
    because: str,
    *,
    secrets: Secrets | None = None,
) -> RunState:
    """A source became available, degraded, unavailable or unauthorized: a permission event."""

    def say(state: RunState) -> list[e.Body]:
        _not_over(state, "needs no sources")
        if state.sources.get(source, "available") == state_name:
            return []
        return [e.SourceStateChanged(source=source, state=state_name, because=because)]

    return append(store, clock, run, actor, say, secrets=secrets)


def update_state(
    store: EventStore,
    library: PolicyLibrary,
    clock: Clock,
    run: RunId,
    actor: Actor,
    name: str,
    value: Mapping[str, Json],
    expected_version: int | None = None,
    *,
    secrets: Secrets | None = None,
) -> RunState:
    """The application says what a slice holds now. The Host gives the version; an equal value keeps it.

    Raises UsageError for a slice or fields that the policy does not declare, Conflict if `expected_version` (0:
    not recorded yet) is not the present one.
    """

    def say(state: RunState) -> list[e.Body]:
        _not_over(state, "takes no state")
        policy = library.policy(state.bundle)
        return [state_update(policy, state, name, value, actor, expected_version)]

    return append(store, clock, run, actor, say, secrets=secrets)


def state_update(
    policy: Policy,
    state: RunState,
    name: str,
    value: Mapping[str, Json],
    actor: Actor,
    expected_version: int | None = None,
) -> e.StateUpdated:
    """The fact that an application's value of a slice makes."""
    declared = policy.state.get(name)
    if declared is None:
        known = ", ".join(policy.state) or "none"
        raise UsageError(
            f"policy `{policy.id}` has no state `{name}`",
            remedy=suggest(name, policy.state, f"its slices are: {known}"),
        )
    held = state.state.get(name)
    present = held.version if held is not None else 0
    if expected_version is not None and expected_version != present:
        raise Conflict(
            f"state `{name}` is at version {present}, not {expected_version}",
            remedy="read it again and decide on what it holds now",
        )
    checked = check_fields(declared.fields, dict(value), f"state {name}")
    same = held is not None and held.value == checked
    return e.StateUpdated(slice=name, value=checked, version=present if same else present + 1, by=actor.id)


def _not_over(state: RunState, what: str) -> None:
    if state.ending is not None:
        raise Refused(
            f"Run `{state.run}` is {state.ending[0]} and {what}",
            remedy="start a new Run, or `agentctl show` it",
        )
