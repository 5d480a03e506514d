"""Owns one played task: a scripted model that proposes the gold actions, and the operator who settles what is lost."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.tau2.specs import policy_of
from benchmarks.tau2.world import Call, WorldTools
from engine.adapters.memory_store import MemoryStore
from engine.adapters.processes import this_process
from engine.adapters.scripted_gateway import ScriptedGateway
from engine.domain.actors import Actor, Principal
from engine.domain.calls import Outcome
from engine.domain.messages import CallResult, HostBlock
from engine.domain.state import RunState
from engine.ports import EventStore, ModelRequest, ModelResponse, ProposedCall
from engine.runtime.reconcile import Finding
from engine.runtime.runtime import Parts, Runtime
from tau2.data_model.tasks import Task

DESK = Principal(id="desk1", roles=("desk",))
OPERATOR = Actor(type="person", id="operator1", issuer="local", roles=())
LONGEST = 60
"""Turns that a script can be asked for; no gold trajectory comes near."""
RESTART = timedelta(minutes=2)
"""By our clock, between a crash and the next drive: longer than a request can still arrive."""


LATER = re.compile(r"the outcome of call (\d+\.\d+) \(\w+\) is now known: (\w+)")


class Crash(BaseException):
    """The process ends here, as far as one process can play it."""


class Clock:
    """Stands still unless it is moved: two plays of one task differ in nothing but what is done to them."""

    def __init__(self, start: datetime = datetime(2026, 6, 30, 12, tzinfo=UTC)) -> None:
        self.time = start

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)
        await asyncio.sleep(0)


def gold_of(task: Task) -> list[tuple[str, str]]:
    """(tool, arguments as JSON) in the suite's order; a float travels as our decimals do."""
    actions = (task.evaluation_criteria.actions if task.evaluation_criteria else None) or []
    return [
        (each.name, json.dumps({k: str(v) if isinstance(v, float) else v for k, v in each.arguments.items()}))
        for each in actions
    ]


def gold_model(gold: list[tuple[str, str]]) -> ScriptedGateway:
    """One gold action a turn, then `finish`. It reads what became of its calls: what was not executed it proposes
    again, and while an outcome is unknown it asks instead of going on."""

    def respond(request: ModelRequest) -> ModelResponse:
        outcomes = _outcomes(request)
        if "unknown" in outcomes:
            return _one("ask_user", json.dumps({"question": "I do not know what became of it. Go on?"}))
        done = sum(1 for each in outcomes if each != "not_executed")
        return _one(*gold[done]) if done < len(gold) else _one("finish", "{}")

    return ScriptedGateway.from_turns([respond] * LONGEST)


def _outcomes(request: ModelRequest) -> list[str]:
    """What became of each gold call, as the model was told: its result, or the Host's later word about it."""
    told: dict[str, str] = {}
    for each in request.messages:
        if isinstance(each, CallResult) and each.tool != "ask_user":
            told[str(each.id)] = each.outcome
        elif isinstance(each, HostBlock):
            told.update(LATER.findall(each.text))
    return list(told.values())


def _one(tool: str, arguments: str) -> ModelResponse:
    return ModelResponse("gold", calls=(ProposedCall(tool, arguments),), finish="tool_calls")


@dataclass
class Play:
    """One Run of one task; each `drive` is a new Runtime, as after a restart."""

    domain: str
    gold: list[tuple[str, str]]
    call: Call
    happened: Callable[[str], bool]
    """Whether an effect with this idempotency key is in the world: how the operator finds out."""
    store: EventStore = field(default_factory=MemoryStore)
    clock: Clock = field(default_factory=Clock)
    run: Any = ""
    by_operator: int = 0

    def runtime(self) -> Runtime:
        parts = Parts(
            store=self.store, gateway=gold_model(self.gold), executor=WorldTools(self.call), clock=self.clock,
            owner=this_process("tau2"), model="scripted/gold",
        )  # fmt: skip
        runtime = Runtime(parts, policy_of(self.domain))
        runtime.library.add(policy_of(self.domain))
        return runtime

    def start(self, run: str | None = None) -> None:
        self.run = self.runtime().start("Help the customer.", principal=DESK, run=run)

    def to_the_end(self, crash_point: Callable[[str], None] | None = None) -> RunState:
        """Drives, again after each crash, and does what people do while the Run waits for them."""
        for _ in range(40):
            try:
                state = asyncio.run(self.runtime().drive(self.run, crash_point=crash_point)).state
            except Crash:
                self.clock.time += RESTART
                continue
            if state.terminal:
                return state
            self._act(state)
        raise AssertionError(f"Run {self.run} never ends")

    def _act(self, state: RunState) -> None:
        """An operator looks up the idempotency key; then the customer says to go on."""
        if state.unknown_calls:
            for id_ in list(state.unknown_calls):
                key = state.calls[id_].idempotency_key or ""
                outcome = Outcome.CONFIRMED if self.happened(key) else Outcome.NOT_EXECUTED
                self.runtime().reconcile(
                    self.run,
                    id_,
                    by=OPERATOR,
                    finding=Finding(outcome, "looked it up in the domain's database"),
                )
                self.by_operator += 1
        elif state.status == "awaiting_input":
            self.runtime().reply(self.run, "Yes.", by=DESK.actor())
        else:
            raise AssertionError(f"Run {self.run} waits as {state.status}, which no gold action asks for")
