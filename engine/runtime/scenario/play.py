"""Owns the playing of one case: its turns through the real driver, on a store of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from engine.domain import events as e
from engine.domain.actors import HOST, Actor, Principal
from engine.domain.calls import CallStatus, Outcome
from engine.domain.canonical import JsonObject
from engine.domain.errors import Refused
from engine.domain.ids import CallId, RunId
from engine.domain.policy import Policy
from engine.domain.state import CallState, RunState
from engine.lifecycle import steps
from engine.lifecycle.vantage import Vantage
from engine.policy.conditions.values import parse_timestamp
from engine.policy.contract import Contract
from engine.policy.documents.test import DecisionPart, GivenPart, PersonPart, ProposePart, TurnPart
from engine.policy.nodes import plain
from engine.policy.stages.cases import attributes
from engine.ports import EventStore, Owner
from engine.runtime import approvals, signals
from engine.runtime.dispatch import dispatch
from engine.runtime.driver import Driven, Driver
from engine.runtime.journal import Journal
from engine.runtime.library import PolicyLibrary
from engine.runtime.scenario.clock import START, TestClock
from engine.runtime.scenario.proposals import MODEL, TurnModel
from engine.runtime.scenario.tools import Answer, ScriptedTools
from engine.runtime.start import Beginning, record_start

ISSUER: Final = "test"
_APPLICATION: Final = Actor(type="application", id="test", issuer=ISSUER)
_OWNER: Final = Owner("test", 0, 0.0)


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision of a turn: the call it was about (None: no such call is held), and why it did not count."""

    tool: str
    call: CallId | None
    declined: str = ""


@dataclass(frozen=True, slots=True)
class Played:
    """What one turn left behind."""

    state: RunState
    contract: Contract
    """What the model was asked with, or would be."""
    decisions: tuple[Decided, ...] = ()
    proposals: tuple[CallId, ...] = ()
    not_asked: str = ""
    """Why the model could not be asked, where the turn proposes something."""


@dataclass(slots=True)
class _Late:
    due: datetime
    call: CallId
    answer: Answer


@dataclass(slots=True)
class Play:
    """One case under one policy. `start` first, then `turn` for each turn, in order."""

    policy: Policy
    store: EventStore
    clock: TestClock = field(default_factory=TestClock)
    model: TurnModel = field(default_factory=TurnModel)
    slices: dict[str, JsonObject] = field(default_factory=dict)
    """What the application's state is now."""
    answers: dict[CallId, Answer] = field(default_factory=dict)
    scripts: dict[CallId, ProposePart] = field(default_factory=dict)
    late: list[_Late] = field(default_factory=list)
    starts: dict[CallId, e.ExecutionStarted] = field(default_factory=dict)
    library: PolicyLibrary = field(init=False)
    run: RunId = field(init=False)

    # --- the beginning ------------------------------------------------------------------------------------

    def start(self, given: GivenPart) -> None:
        """Starts the Run and records what is given. Raises UsageError or Refused."""
        at = parse_timestamp(given.now) if given.now else START
        self.clock = TestClock(at if isinstance(at, datetime) else START)
        self.library = PolicyLibrary(self.store)
        principal = principal_of(given.principal)
        beginning = Beginning(self.policy, "", principal, plain(given.task), MODEL)
        self.run = record_start(self.store, self.library, self.clock, beginning)
        for name, value in given.state.items():
            self._update(name, plain(value))
        self._sources(given.sources)
        bodies = [
            self._grant(f"G{number}", name, plain(params))
            for number, (name, params) in enumerate(given.grant.items(), start=1)
        ]
        signals.append(self.store, self.clock, self.run, HOST, lambda _: bodies)

    def _grant(self, id_: str, name: str, params: JsonObject) -> e.Body:
        capability = self.policy.capabilities[name]
        after = capability.expires_after
        return e.CapabilityGranted(
            grant=id_,
            capability=name,
            params=params,
            by="start",
            expires_at=None if after is None else self.clock.now() + after,
            calls=capability.expires_calls,
        )

    # --- one turn -----------------------------------------------------------------------------------------

    async def turn(self, part: TurnPart) -> Played:
        """In the order advance, source, set, reply, approve or refuse, propose. Raises Refused once the Run is over."""
        if part.advance is not None:
            self.clock.advance(part.advance)
            await self._answer_late()
        self._sources(part.source or {})
        self._set(part.set or {})
        if part.reply is not None:
            requester = self._state().principal
            actor = requester.actor() if requester is not None else _APPLICATION
            signals.reply(self.store, self.clock, self.run, actor, part.reply)
        decisions = tuple(self._decisions(part))
        driven = await self._drive()
        contract = Vantage([self.policy], driven.state).contract(self.clock.now())
        if part.propose is None:
            return Played(driven.state, contract, decisions)
        if not isinstance(driven.step, steps.AskModel | steps.Measure):
            return Played(driven.state, contract, decisions, not_asked=_why_not_asked(driven))
        return await self._propose(part.propose, driven.state, contract, decisions)

    async def _propose(
        self,
        proposals: Sequence[ProposePart],
        before: RunState,
        contract: Contract,
        decisions: tuple[Decided, ...],
    ) -> Played:
        number = len(before.turns) + 1
        calls = tuple(CallId(number, ordinal) for ordinal in range(1, len(proposals) + 1))
        for call, proposal in zip(calls, proposals, strict=True):
            self.scripts[call] = proposal
            self.answers[call] = _answer(proposal)
        self.model.give(proposals)
        driven = await self._drive()
        return Played(driven.state, contract, decisions, calls)

    async def _drive(self) -> Driven:
        driver = Driver(
            self.store, self.model, self._tools(self.answers), self.clock, self.library, _OWNER,
            observers=(self._saw,), may_ask=lambda: self.model.ready,
        )  # fmt: skip
        return await driver.drive(self.run)

    def _tools(self, answers: Mapping[CallId, Answer]) -> ScriptedTools:
        return ScriptedTools(answers, self.slices.get, self._purpose)

    def _purpose(self, call: CallId) -> e.HostPurpose | None:
        started = self.starts.get(call)
        return None if started is None else started.host

    def _saw(self, event: e.Event, _: RunState) -> None:
        body = event.body
        if not isinstance(body, e.ExecutionStarted):
            return
        self.starts[body.call] = body
        script = self.scripts.get(body.call)
        if script is not None and script.late is not None:
            late = script.late
            answer = Answer(Outcome(late.outcome), plain(late.result), late.is_written("result"))
            self.late.append(_Late(event.recorded_at + late.after, body.call, answer))

    def _state(self) -> RunState:
        return Journal(self.store, self.run, self.clock).load()

    # --- the outside --------------------------------------------------------------------------------------

    async def _answer_late(self) -> None:
        """Answers that come late, in the order of their times, to calls whose outcome is still unknown."""
        due = sorted((late for late in self.late if late.due <= self.clock.now()), key=lambda late: late.due)
        for late in due:
            self.late.remove(late)
            journal = Journal(self.store, self.run, self.clock)
            state = journal.load()
            if late.call not in state.unknown_calls or late.answer.outcome is Outcome.UNKNOWN:
                continue
            start = self.starts[late.call]
            tools = self._tools({late.call: late.answer})
            came = await dispatch(tools, self.clock, self.run, self.policy.tools[start.tool], start)
            journal.stage(came.receipt.model_copy(update={"late": True}), fact=True, blobs=came.blobs)
            journal.flush()

    def _sources(self, given: Mapping[str, e.SourceState]) -> None:
        for name, state in given.items():
            signals.set_source(self.store, self.clock, self.run, _APPLICATION, name, state, "the test")

    def _set(self, given: Mapping[str, object]) -> None:
        """Fields of one slice that a turn sets become one update."""
        changed: dict[str, JsonObject] = {}
        for path, value in given.items():
            _, name, key = path.split(".", 2)
            changed.setdefault(name, dict(self.slices.get(name, {})))[key] = plain(value)
        for name, whole in changed.items():
            self._update(name, whole)

    def _update(self, name: str, value: JsonObject) -> None:
        """The Host gives the version: an equal value renews the age and keeps it."""
        self.slices[name] = value

        def say(state: RunState) -> list[e.Body]:
            if state.terminal:
                raise Refused("the Run is over and takes no state", remedy="end the case before")
            held = state.state.get(name)
            version = 1 if held is None else held.version + (held.value != value)
            return [e.StateUpdated(slice=name, value=value, version=version, by=_APPLICATION.id)]

        signals.append(self.store, self.clock, self.run, _APPLICATION, say)

    # --- people -------------------------------------------------------------------------------------------

    def _decisions(self, part: TurnPart) -> Iterator[Decided]:
        if part.approve is not None:
            yield self._decide(part.approve, approves=True)
        if part.refuse is not None:
            yield self._decide(part.refuse, approves=False)

    def _decide(self, decision: DecisionPart, *, approves: bool) -> Decided:
        held = oldest_held(self._state(), decision.call)
        if held is None:
            return Decided(decision.call, None, f"no call of `{decision.call}` is held")
        person = decision.by
        actor = Actor(type="person", id=person.id, issuer=ISSUER, roles=tuple(person.roles))
        try:
            if approves:
                said = approvals.Approval()
                approvals.approve(self.store, self.clock, self.library, self.run, held.id, actor, said)
            else:
                approvals.refuse(self.store, self.clock, self.run, held.id, actor, "the test")
        except Refused as refused:
            return Decided(decision.call, held.id, refused.message)
        return Decided(decision.call, held.id)


def principal_of(person: PersonPart) -> Principal:
    return Principal(id=person.id, roles=tuple(person.roles), attrs=attributes(person), issuer=ISSUER)


def oldest_held(state: RunState, tool: str) -> CallState | None:
    """The oldest held call of a tool; one that waits for a decision before one that only queues."""
    held = [
        call
        for id_ in sorted(state.open_calls)
        if (call := state.calls[id_]).status is CallStatus.HELD and call.tool == tool
    ]
    waiting = [call for call in held if call.approval is not None and not call.approval.decided]
    return next(iter([*waiting, *held]), None)


def _answer(proposal: ProposePart) -> Answer:
    return Answer(Outcome(proposal.outcome), plain(proposal.result), proposal.is_written("result"))


def _why_not_asked(driven: Driven) -> str:
    if isinstance(driven.step, steps.Wait):
        return f"the Run waits for {driven.step.waiting_for}: {driven.step.detail}"
    if driven.state.ending is not None:
        return f"the Run is {driven.state.ending[0]} ({driven.state.ending[1]})"
    return "the Run cannot go on"
