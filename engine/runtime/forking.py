"""Owns forks: a new Run from a prefix of another one's log. No effect is repeated: what was done stands as it is.

Calls that were open at that point are closed, so the model proposes anew. What became known later of calls in the
prefix (late outcomes, compensations) comes along.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.domain import events as e
from engine.domain.actors import HOST, Actor
from engine.domain.calls import CallStatus, Outcome
from engine.domain.canonical import Json
from engine.domain.errors import UsageError
from engine.domain.ids import CallId, RunId, new_run_id
from engine.domain.policy import Kind, Policy
from engine.domain.results import storable
from engine.domain.state import AttemptState, CallState, RunState
from engine.lifecycle.acts import capability_of
from engine.lifecycle.evidence import declared_fields, evidence_of
from engine.lifecycle.fold import fold, restricted_as
from engine.ports import Append, Clock, EventStore
from engine.runtime.journal import summary_of
from engine.runtime.library import PolicyLibrary
from engine.runtime.loading import restrictions


@dataclass(frozen=True, slots=True)
class Fork:
    """Where to fork, and what becomes of calls that were proposed there and not sent."""

    at: int
    """The last event of the prefix."""
    skip: tuple[CallId, ...] = ()
    replace: Mapping[CallId, Json] = field(default_factory=dict)
    """Read -> the answer that it gets."""


@dataclass(frozen=True, slots=True)
class Forked:
    run: RunId
    closed: tuple[CallId, ...]
    """Calls that were open at that point."""
    later: tuple[CallId, ...]
    """Writes and hybrids that the other Run sent afterwards: they happened, and the new Run knows nothing of them."""


def fork(
    store: EventStore, library: PolicyLibrary, clock: Clock, run: RunId, wanted: Fork, by: Actor
) -> Forked:
    """Stores the new Run; it is driven like any other. Raises UsageError for a place where no fork can be."""
    log = list(store.events(run))
    _check_place(run, log, wanted.at)
    prefix, rest = log[: wanted.at], log[wanted.at :]
    worked = fold(run, prefix).spent.wall_seconds
    new = _Copy(new_run_id(), clock, run, wanted.at, by, worked)
    for event in prefix:
        new.copy(event)
    for event in _known_later(new.state, rest):
        new.copy(event)
    policy = library.policy(new.state.bundle)
    blobs: dict[str, str] = {}
    _close(new, policy, wanted, by, blobs, clock)
    closed = tuple(new.closed)
    later = tuple(_effects(rest, new.state))
    if later:
        said = f"run {run} went on after event {wanted.at}: {', '.join(map(str, later))} were sent"
        new.add(e.OperatorAlerted(code="effects-after-fork", message=said))
    for body, texts in restrictions(store, library, policy):
        if new.state.restricted_by.get(restricted_as(body.policy, overlay=body.overlay)) != body.bundle:
            new.add(body)
            blobs.update(texts)
    store.append(Append(new.run, 0, new.events, None, blobs, summary_of(new.state)))
    return Forked(new.run, closed, later)


class _Copy:
    """The new log as it grows."""

    def __init__(self, run: RunId, clock: Clock, origin: RunId, at: int, by: Actor, worked: float) -> None:
        self._start = ({"forked_from": origin, "forked_at": at, "worked_seconds": worked}, by)
        self.run = run
        self.state = RunState(run)
        self.events: list[e.Event] = []
        self.closed: list[CallId] = []
        self._clock = clock

    def copy(self, event: e.Event) -> None:
        """An event of the other Run, at its own time and by its own actor. No driver of the new Run wrote it."""
        body, actor = event.body, event.actor
        if isinstance(body, e.RunStarted):
            changes, actor = self._start
            body = body.model_copy(update=changes)
        self._append(body, actor, event)

    def add(self, body: e.Body, actor: Actor = HOST) -> None:
        self._append(body, actor, None)

    def _append(self, body: e.Body, actor: Actor, origin: e.Event | None) -> None:
        at = origin.recorded_at if origin is not None else self._clock.now()
        previous = self.events[-1].hash if self.events else e.GENESIS
        event = e.seal(self.run, len(self.events) + 1, at, actor, 0, body, previous)
        self.events.append(event)
        fold(self.run, (event,), self.state)


def _check_place(run: RunId, log: Sequence[e.Event], at: int) -> None:
    if not log:
        raise UsageError(f"there is no Run `{run}`", remedy="`agentctl runs` lists them")
    ending = next(
        (event.seq for event in log if isinstance(event.body, e.CancelRequested | e.SettlingStarted)),
        len(log) + 1,
    )
    if not 2 <= at <= len(log) or at >= ending:
        last = min(len(log), ending - 1)
        raise UsageError(
            f"Run `{run}` cannot be forked at event {at}", remedy=f"choose an event from 2 to {last}"
        )


# --- what became known later ------------------------------------------------------------------------------


def _known_later(state: RunState, rest: Sequence[e.Event]) -> Iterator[e.Event]:
    """Of calls that were sent in the prefix: outcomes, sending them again, undoing them. What was taken back since."""
    sent = {id_ for id_, call in state.calls.items() if call.attempts}
    for event in rest:
        match event.body:
            case e.ReceiptRecorded(call=call) | e.ExecutionStarted(call=call) if call in sent:
                yield event
            case e.GrantRevoked(grant=grant) | e.GrantExpired(grant=grant) if grant in state.grants:
                yield event
            case e.StandingEnded(grant=grant) if grant in state.standing:
                yield event
            case e.EndorsementEnded(endorsement=name) if name in state.endorsements:
                yield event
            case e.SourceStateChanged():
                yield event
            case e.ExecutionStarted(host=host, call=call) if _undoes(host, sent):
                sent.add(call)
                yield event


def _undoes(host: e.HostPurpose | None, sent: set[CallId]) -> bool:
    return host is not None and host.purpose == "compensation" and host.subject in sent


def _effects(rest: Sequence[e.Event], state: RunState) -> Iterator[CallId]:
    for event in rest:
        body = event.body
        if not isinstance(body, e.ExecutionStarted) or body.tool_kind is Kind.READ or body.host is not None:
            continue
        if body.call not in state.calls or not state.calls[body.call].attempts:
            yield body.call


# --- open calls -------------------------------------------------------------------------------------------


def _close(new: _Copy, policy: Policy, wanted: Fork, by: Actor, blobs: dict[str, str], clock: Clock) -> None:
    """Every call that was open at that point comes to an end; a write that was under way is of unknown outcome."""
    state = new.state
    if state.attempt is not None:
        new.add(_lost(state.attempt))
    named = {*wanted.skip, *wanted.replace}
    for name in named:
        _check_named(state, policy, name, replaced=name in wanted.replace)
    for id_ in list(state.open_calls):
        call = state.calls[id_]
        new.closed.append(id_)
        if id_ in wanted.replace:
            new.add(_replaced(policy, call, wanted.replace[id_], by, blobs, clock), by)
        elif id_ in wanted.skip:
            new.add(_not_executed(call, f"skipped by {by.id}"), by)
        else:
            new.add(_closed(call))


def _check_named(state: RunState, policy: Policy, call: CallId, *, replaced: bool) -> None:
    found = state.calls.get(call)
    if found is None or call not in state.open_calls:
        raise UsageError(
            f"call {call} is not open at that event", remedy="fork where it is proposed and has no receipt"
        )
    spec = policy.tools.get(found.tool)
    if replaced and (spec is None or spec.kind is not Kind.READ):
        raise UsageError(
            f"call {call} (`{found.tool}`) is no read",
            remedy="skip it, or `agentctl reconcile` what was sent",
        )
    if not replaced and found.status is CallStatus.STARTED:
        raise UsageError(f"call {call} was sent already", remedy="its outcome is for `agentctl reconcile`")


def _lost(attempt: AttemptState) -> e.ModelAttemptFailed:
    return e.ModelAttemptFailed(
        turn=attempt.turn, attempt=attempt.number, error="cut", message="the Run was forked before it closed"
    )


def _replaced(
    policy: Policy, call: CallState, answer: Json, by: Actor, blobs: dict[str, str], clock: Clock
) -> e.ReceiptRecorded:
    spec, stored = policy.tools[call.tool], storable(answer)
    if stored.blob is not None:
        blobs[str(stored.result.digest)] = stored.blob
    return e.ReceiptRecorded(
        call=call.id,
        tool=call.tool,
        outcome=Outcome.CONFIRMED,
        settled_by="operator",
        detail=f"answered by {by.id}",
        result=stored.result,
        fields=declared_fields(spec, answer),
        evidence=evidence_of(spec, answer, clock.now()),
    )


def _closed(call: CallState) -> e.Body:
    if call.status is CallStatus.PROPOSED:
        return _fenced(call)
    if call.status is CallStatus.STARTED:
        read = call.kind is Kind.READ
        return e.ReceiptRecorded(
            call=call.id,
            tool=call.tool,
            outcome=Outcome.FAILED if read else Outcome.UNKNOWN,
            settled_by="host",
            detail="the Run was forked before an answer came",
        )
    if call.held == "capability":
        return e.CapabilityDenied(
            call=call.id, capability=capability_of(call), because="the Run was forked before anybody decided"
        )
    return _fenced(call)


def _fenced(call: CallState) -> e.CallFenced:
    """It was not sent, and the model may propose it again."""
    return e.CallFenced(call=call.id, tool=call.tool, reason="forked", moved_by="the Run was forked")


def _not_executed(call: CallState, why: str) -> e.ReceiptRecorded:
    return e.ReceiptRecorded(
        call=call.id, tool=call.tool, outcome=Outcome.NOT_EXECUTED, settled_by="host", detail=why
    )
