"""Owns the states that `why` and `contract` look at: one made from stated facts, or one folded from a log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from engine.domain import events as e
from engine.domain.actors import HOST, Principal
from engine.domain.canonical import Json, JsonObject, parse_json
from engine.domain.errors import UsageError
from engine.domain.events import GENESIS, StoredResult, seal
from engine.domain.facts import Unknown
from engine.domain.ids import CallId, RunId
from engine.domain.policy import Policy
from engine.domain.state import RunState
from engine.lifecycle.acts import started
from engine.lifecycle.fold import apply, fold
from engine.lifecycle.present import Present
from engine.lifecycle.provenance import Provenance
from engine.lifecycle.vantage import Vantage, inline
from engine.policy.admission import in_order
from engine.policy.verdicts import Run
from engine.policy.view import FactsView, bound_or_unknown, facts_of
from engine.ports import EventStore
from engine.runtime.dispatch import dispatch
from engine.runtime.library import PolicyLibrary
from engine.runtime.scenario.clock import TestClock
from engine.runtime.scenario.tools import Answer, ScriptedTools

STATED = RunId("stated")
"""The id of a Run that exists only as stated facts."""


class PastCall(NamedTuple):
    """A call that is taken to have gone before."""

    tool: str
    args: JsonObject
    answer: Answer


@dataclass(frozen=True, slots=True)
class Stated:
    """Facts as a file or options state them; what is left out is not known."""

    principal: Principal
    now: datetime
    task: JsonObject = field(default_factory=dict)
    state: Mapping[str, JsonObject] = field(default_factory=dict)
    grants: Mapping[str, Sequence[JsonObject]] = field(default_factory=dict)
    sources: Mapping[str, e.SourceState] = field(default_factory=dict)
    history: Sequence[PastCall] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """A Run at one moment, under the policies that govern it (its own first)."""

    vantage: Vantage
    now: datetime
    turn: int | None = None
    """The turn that is about to be asked for, of a recorded Run."""

    @property
    def policies(self) -> tuple[Policy, ...]:
        return self.vantage.policies

    @property
    def state(self) -> RunState:
        return self.vantage.state


def stated(policy: Policy, facts: Stated) -> Look:
    """The state that a log with these facts would fold to."""
    state = RunState(STATED)
    for body in _bodies(policy, state, facts):
        sealed = seal(STATED, state.seq + 1, facts.now, HOST, 0, body, state.head or GENESIS)
        apply(state, sealed)
    return Look(Vantage([policy], state), facts.now)


def _bodies(policy: Policy, state: RunState, facts: Stated) -> Iterator[e.Body]:
    yield e.RunStarted(
        engine="",
        policy=policy.id,
        policy_version=policy.version,
        policy_digest=policy.digest,
        bundle="",
        principal=facts.principal,
        task=facts.task,
        model="scripted/facts",
    )
    for name, value in facts.state.items():
        yield e.StateUpdated(slice=name, value=value, version=1)
    for source, status in facts.sources.items():
        yield e.SourceStateChanged(source=source, state=status)
    for name, given in facts.grants.items():
        for params in given:
            grant = f"G{len(state.grants) + 1}"
            yield e.CapabilityGranted(grant=grant, capability=name, params=params, by="start")
    for turn, past in enumerate(facts.history, start=1):
        yield from _past(policy, state, facts.now, turn, past)


def _past(policy: Policy, state: RunState, now: datetime, turn: int, past: PastCall) -> Iterator[e.Body]:
    """The events of one turn with one call, without asking any rule."""
    spec, call = policy.tools[past.tool], CallId(turn, 1)
    yield e.ModelAttemptStarted(turn=turn, attempt=1, model="", contract="", epoch=state.epoch)
    proposal = e.Proposal(ordinal=1, tool=past.tool, arguments="")
    yield e.ModelTurnRecorded(
        turn=turn, attempt=1, model="", contract="", epoch=state.epoch, proposals=(proposal,)
    )
    known = bound_or_unknown(spec.bound_params, facts_of(policy, state, now))
    bound = {name: value for name, value in known.items() if not isinstance(value, Unknown)}
    provenance = Provenance(policy, state, inline)
    present = Present([policy], state, FactsView([policy], state), now, provenance, None)
    verdict = Run(spec, in_order(spec, {**bound, **past.args}), (), "", ())
    start = started(present, state.calls[call], verdict)
    yield start
    tools = ScriptedTools({call: past.answer}, lambda _: None, lambda _: None)
    yield asyncio.run(dispatch(tools, TestClock(now), state.run, spec, start)).receipt


def recorded(store: EventStore, library: PolicyLibrary, run: RunId, turn: int | None, now: datetime) -> Look:
    """A Run as it was when `turn` was asked for, or as it stands. Raises UsageError for a turn that it never had."""
    log = list(store.events(run))
    at = None if turn is None else _asked(log, run, turn)
    state = fold(run, log if at is None else log[:at])
    moment = now if at is None else log[at].recorded_at
    if at is None and state.terminal and state.updated_at is not None:
        moment = state.updated_at
    policies = [library.policy(bundle) for bundle in (state.bundle, *state.restricted_by.values())]

    def read(result: StoredResult) -> Json:
        text = None if result.digest is None else store.blob(result.digest)
        return result.value if text is None else parse_json(text)

    return Look(Vantage(policies, state, read), moment, turn)


def _asked(log: Sequence[e.Event], run: RunId, turn: int) -> int:
    """The place in the log of the last attempt at a turn."""
    found = [
        place
        for place, event in enumerate(log)
        if isinstance(event.body, e.ModelAttemptStarted) and event.body.turn == turn
    ]
    if not found:
        had = max(
            (event.body.turn for event in log if isinstance(event.body, e.ModelAttemptStarted)), default=0
        )
        raise UsageError(
            f"Run `{run}` has no turn {turn}", remedy=f"it has turns 1 to {had}" if had else "it has none"
        )
    return found[-1]
