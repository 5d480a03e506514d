"""Owns the lives of the crash matrix: a process that forks one child per order, and the life that a child leads.

`python -m tests.durable.crash_life` reads orders, one JSON object a line. Each child drives one Run to its end, does
what its people would do, and kills itself with SIGKILL at the point that the order names: before an append, within
its transaction, after it, and at each boundary around an effect, inside the tool too. Nothing of a life is kept in
memory between two children. Effects are counted in a file beside the database, which the engine does not know.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

from engine.adapters.function_tools import FunctionTools, ToolContext
from engine.adapters.processes import this_process
from engine.adapters.scripted_gateway import ScriptedGateway
from engine.adapters.sql_store import SqlStore
from engine.domain.calls import Outcome
from engine.domain.ids import RunId
from engine.domain.policy import Policy
from engine.domain.state import RunState
from engine.ports import Append, Claim, ModelResponse, Owner
from engine.runtime.reconcile import Finding
from engine.runtime.runtime import Parts, Runtime
from tests.runtime.bench import CLERK, LEAD, START, FakeClock, compiled, final, say

TOOLS = """
agentctl: tools/v1
id: depot
tools:
  look: {kind: read, handler: "python:depot:look", params: {n: {type: int}}, result: {seen: {type: int}}}
  find:
    kind: read
    exposed: host
    handler: "python:depot:find"
    params: {key: {type: id}}
    result: {found: {type: bool}}
  book:
    kind: write
    handler: "python:depot:book"
    params: {n: {type: int}}
    effects: [room.book]
    idempotency: {key: [call.id]}
    reconcile: {probe: find, args: {key: idempotency_key}, confirms: "result.found", refutes: "!result.found"}
  stamp:
    kind: write
    handler: "python:depot:stamp"
    params: {n: {type: int}}
    effects: [paper.stamp]
    idempotency: {key: [call.id]}
    reconcile: {manual: "Look at the paper"}
  mail:
    kind: write
    handler: "python:depot:mail"
    params: {n: {type: int}}
    effects: [mail.send]
    idempotency: {key: [call.id]}
    reconcile: {probe: find, args: {key: idempotency_key}, confirms: "result.found", refutes: "!result.found"}
  pay:
    kind: write
    handler: "python:depot:pay"
    params: {n: {type: int}}
    effects: [payment.charge]
    idempotency: {key: [call.id], window: 24h}
    retry: same_key
    reconcile: {manual: "Look at the account"}
  hold:
    kind: hybrid
    handler: "python:depot:hold"
    params: {n: {type: int}}
    effects: [stock.hold]
    reversible: true
    holds: {ttl: 8h, consumed_by: mail.send}
    idempotency: {key: [call.id]}
    reconcile: {probe: find, args: {key: idempotency_key}, confirms: "result.found", refutes: "!result.found"}
    compensate: {tool: free, args: {hold: idempotency_key}, on: [run_failed, run_cancelled, run_finished]}
  block:
    kind: hybrid
    handler: "python:depot:block"
    params: {n: {type: int}}
    effects: [gate.block]
    reversible: true
    idempotency: {key: [call.id]}
    reconcile: {manual: "Look at the gate"}
    compensate: {tool: unblock, args: {gate: idempotency_key}, on: [run_failed, run_cancelled, run_finished]}
  free:
    kind: write
    exposed: host
    handler: "python:depot:free"
    params: {hold: {type: id}}
    effects: [stock.release]
    idempotency: {key: [hold], window: 24h}
    retry: same_key
    reconcile: {manual: "Look at the stock"}
  unblock:
    kind: write
    exposed: host
    handler: "python:depot:unblock"
    params: {gate: {type: id}}
    effects: [gate.open]
    idempotency: {key: [gate]}
    reconcile: {manual: "Look at the gate"}
"""

POLICY = """
agentctl: policy/v1
id: depot
version: 1
owner: me
tool_specs: [shop.tools.yaml]
principals: {roles: [clerk, lead], may_start: [clerk]}
permissions:
  - {id: looking, effect: allow, roles: [clerk], tools: [look]}
  - id: alone
    effect: allow
    roles: [clerk]
    tools: [book, stamp, pay, hold]
    unattended: {because: "test", max_per_run: 50}
  - id: asked
    effect: ask
    roles: [clerk]
    tools: [mail, block]
    approval: {by: {roles: [lead]}, expires: 8h}
gates: {finish: []}
budgets: {turns: 30, cost_usd: "1.00", wall_time: 24h, calls: {total: 60}, no_progress_turns: 9}
model: {primary: {id: openai/gpt-5-mini-2025-08-07}}
"""

Script = tuple[ModelResponse, ...]
SCENES: Mapping[str, Script] = {
    "reads": (say(("look", {"n": 1}), ("look", {"n": 2})), say(("look", {"n": 3})), final()),
    "a write with a probe": (say(("book", {"n": 1})), final()),
    "a write that nobody can ask about": (say(("stamp", {"n": 1})), final()),
    "a write with approval and probe": (say(("mail", {"n": 1})), final()),
    "a write that deduplicates by its key": (say(("pay", {"n": 1})), final()),
    "a hybrid with probe, hold and compensation": (say(("hold", {"n": 1})), final()),
    "a hybrid with approval and compensation": (say(("block", {"n": 1})), final()),
    "reads, writes and hybrids in one response": (
        say(
            ("look", {"n": 1}),
            ("hold", {"n": 1}),
            ("block", {"n": 2}),
            ("book", {"n": 3}),
            ("look", {"n": 4}),
        ),
        final(),
    ),
}
DEDUPLICATES = ("pay", "free")
RAN_OUT = timedelta(seconds=130)
"""Between two lives: more than twice a tool's time-out, so that a probe's "not there" counts."""


@dataclass(frozen=True, slots=True)
class Order:
    """One child: which Run, where, and at which of its points it dies (0: at none)."""

    db: str
    folder: str
    scene: str
    run: str
    kill_at: int = 0

    @property
    def effects(self) -> Path:
        return Path(self.folder) / f"{self.run}.effects"

    @property
    def points(self) -> Path:
        return Path(self.folder) / f"{self.run}.points"

    def line(self) -> str:
        return json.dumps(asdict(self)) + "\n"


class Fate:
    """Counts the points of a life, and ends it at the one that was named."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self.passed: list[str] = []

    def point(self, where: str) -> None:
        self.passed.append(where)
        if len(self.passed) == self._order.kill_at:
            self._order.points.write_text("\n".join(self.passed))
            os.kill(os.getpid(), signal.SIGKILL)


class MortalStore(SqlStore):
    """The store whose process may die before, within and after each of its commits."""

    fate: Fate

    def append(self, item: Append) -> None:
        self.fate.point("before append")
        super().append(item)
        self.fate.point("after append")

    def claim(self, run: RunId, owner: Owner, now: datetime, ttl: timedelta) -> Claim:
        claim = super().claim(run, owner, now, ttl)
        self.fate.point("after claim")
        return claim

    def watch(self, fate: Fate) -> None:
        """A transaction ends with this statement."""
        self.fate = fate
        dialect: Any = type(self._dialect)
        usual = dialect.perform

        def perform(dialect: Any, connection: Any, text: str, *values: Any) -> int:
            if text == "COMMIT":
                fate.point("before commit")
            return int(usual(dialect, connection, text, *values))

        dialect.perform = perform


def effects_of(file: Path) -> list[tuple[str, str]]:
    """(tool, idempotency key) of every effect that happened, in order."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [(tool, key) for tool, _, key in (line.partition(" ") for line in lines)]


class Depot:
    """The world: one line per effect; a tool that deduplicates looks for the key first."""

    def __init__(self, file: Path, fate: Fate) -> None:
        self._file = file
        self._fate = fate

    def _effect(self, tool: str, context: ToolContext) -> object:
        key = str(context.idempotency_key)
        self._fate.point(f"in {tool}, before its effect")
        if not (tool in DEDUPLICATES and (tool, key) in effects_of(self._file)):
            with self._file.open("a") as ledger:
                ledger.write(f"{tool} {key}\n")
        self._fate.point(f"in {tool}, after its effect")
        return {}

    def handlers(self) -> dict[str, Callable[..., object]]:
        async def look(n: int) -> object:
            return {"seen": n}

        async def find(key: str) -> object:
            return {"found": any(known == key for _, known in effects_of(self._file))}

        def counted(tool: str, name: str) -> Callable[..., object]:
            async def by_number(n: int, context: ToolContext) -> object:
                return self._effect(tool, context)

            async def by_hold(hold: str, context: ToolContext) -> object:
                return self._effect(tool, context)

            async def by_gate(gate: str, context: ToolContext) -> object:
                return self._effect(tool, context)

            return {"n": by_number, "hold": by_hold, "gate": by_gate}[name]

        named = {"free": "hold", "unblock": "gate"}
        effects = ("book", "stamp", "mail", "pay", "hold", "block", "free", "unblock")
        return {"look": look, "find": find, **{tool: counted(tool, named.get(tool, "n")) for tool in effects}}


def depot() -> Policy:
    return compiled(POLICY, TOOLS)


def lead(order: Order) -> None:
    """One life: from whatever the log says to the end of the Run."""
    fate = Fate(order)
    store = MortalStore.open(order.db)
    assert isinstance(store, MortalStore)
    store.watch(fate)
    clock, run = FakeClock(), RunId(order.run)
    clock.time = _later(store, run)
    runtime = Runtime(
        Parts(
            store=store, gateway=ScriptedGateway.from_turns(SCENES[order.scene]),
            executor=FunctionTools(Depot(order.effects, fate).handlers()),
            clock=clock, owner=this_process("crash matrix"), model="scripted/crash-matrix",
        ),
        depot(),
    )  # fmt: skip
    if store.head(run) is None:
        runtime.start("please", principal=CLERK, run=run)
    for _ in range(40):
        # The appends have points of their own; the driver's hook adds those around an effect.
        driven = asyncio.run(runtime.drive(run, crash_point=lambda where: _around(fate, where)))
        if driven.state.terminal:
            break
        _act(runtime, order, driven.state)
        clock.advance(seconds=70)
    order.points.write_text("\n".join(fate.passed))


def _around(fate: Fate, where: str) -> None:
    if where.endswith("effect"):
        fate.point(where)


def _later(store: SqlStore, run: RunId) -> datetime:
    events = list(store.events(run))
    return events[-1].recorded_at + RAN_OUT if events else START


def _act(runtime: Runtime, order: Order, state: RunState) -> None:
    """A lead approves what waits; an operator looks what happened where no probe can."""
    for id_ in state.open_calls:
        approval = state.calls[id_].approval
        if approval is not None and not approval.decided:
            runtime.approve(state.run, id_, by=LEAD)
    if state.status != "awaiting_reconciliation":
        return
    happened = {key for _, key in effects_of(order.effects)}
    undone = {key for tool, key in effects_of(order.effects) if tool in ("free", "unblock")}
    for id_ in state.unknown_calls:
        call = state.calls[id_]
        if call.tool in ("book", "mail", "hold"):
            continue  # its probe says
        there = call.idempotency_key in (undone if call.host is not None else happened)
        found = Outcome.CONFIRMED if there else Outcome.NOT_EXECUTED
        runtime.reconcile(state.run, id_, by=LEAD, finding=Finding(found, "I looked"))


def serve(orders: Any, answers: Any) -> None:
    """One child per order, forked from a process that has everything loaded and nothing open; answers its status."""
    depot()
    for line in orders:
        child = os.fork()
        if child == 0:
            _child(Order(**json.loads(line)))
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        answers.flush()


def _child(order: Order) -> NoReturn:
    status = 1
    try:
        lead(order)
        status = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the child must not go on as its parent
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def loaded() -> Sequence[str]:
    """What a child must not load anew: the drivers of both databases."""
    import sqlite3

    import psycopg

    return (sqlite3.__name__, psycopg.__name__)


if __name__ == "__main__":
    loaded()
    serve(sys.stdin, sys.stdout)
