"""Owns the bench of the loop's tests: a shop policy, tools with a ledger outside the engine, a clock, crashes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.adapters.function_tools import FunctionTools, ToolContext
from engine.adapters.memory_store import MemoryStore
from engine.adapters.processes import this_process
from engine.adapters.scripted_gateway import ScriptedGateway
from engine.adapters.sql_store import SqlStore
from engine.domain.actors import Actor, Principal
from engine.domain.events import Event
from engine.domain.ids import CallId, RunId
from engine.domain.policy import Policy
from engine.domain.state import RunState
from engine.lifecycle.fold import fold
from engine.policy.compiler import load_policy
from engine.ports import EventStore, ModelGateway, ModelRequest, ModelResponse, ProposedCall
from engine.runtime.audit import verify
from engine.runtime.driver import Driven
from engine.runtime.runtime import Parts, Runtime

START = datetime(2026, 6, 30, 12, tzinfo=UTC)
CLERK = Principal(id="u1", roles=("clerk",))
ME = CLERK.actor()
LEAD = Actor(type="person", id="lead1", issuer="local", roles=("lead",))
OTHER_LEAD = Actor(type="person", id="lead2", issuer="local", roles=("lead",))

TOOLS = """
agentctl: tools/v1
id: shop
sources:
  stock: {title: "Stock"}
  papers: {title: "Papers"}
tools:
  get_stock:
    kind: read
    source: stock
    handler: "python:shop:get_stock"
    description: "How many are there."
    params: {sku: {type: int, min: 0, max: 1000}}
    result: {left: {type: int}}
    evidence:
      kind: stock_level
      id: "result.level"
      as_of: "receipt.at"
      figures: {left: {type: int, at: "result.left"}}
  search_docs:
    kind: read
    source: papers
    handler: "python:shop:search_docs"
    description: "Search papers."
    params:
      q: {type: text, max_len: 100}
      notes: {type: text, max_len: 500, required: false}
      ids: {type: list, of: {type: int, min: 0, max: 99}, max_items: 5, required: false}
    evidence: {kind: paper, id: "result.docs[].id", spans: "result.docs[].spans[].id"}
  ping: {kind: read, handler: "python:shop:ping", description: "No parameters.", params: {}}
  wipe_cache:
    kind: write
    handler: "python:shop:wipe_cache"
    description: "Empty the cache."
    params: {}
    effects: [cache.wipe]
    idempotency: {key: [call.id]}
    reconcile: {manual: "Look at the cache"}
  set_price:
    kind: write
    handler: "python:shop:set_price"
    description: "Change one price."
    params: {sku: {type: int, min: 0, max: 1000}, price: {type: int, min: 0, max: 100000}}
    effects: [price.set]
    idempotency: {key: [sku, price]}
    reconcile: {manual: "Look at the price list"}
  book_room:
    kind: write
    handler: "python:shop:book_room"
    description: "Book one room."
    params: {room: {type: int, min: 0, max: 1000}}
    effects: [room.book]
    idempotency: {key: [call.id]}
    reconcile: {probe: find_booking, args: {key: idempotency_key}, confirms: "result.found", refutes: "!result.found"}
  send_letter:
    kind: write
    handler: "python:shop:send_letter"
    description: "Send one letter."
    params: {to: {type: id}}
    effects: [letter.send]
    idempotency: {key: [call.id]}
    reconcile: {manual: "Ask the post room"}
  reserve:
    kind: hybrid
    handler: "python:shop:reserve"
    description: "Hold one item."
    params: {sku: {type: int, min: 0, max: 1000}}
    result: {hold: {type: id}}
    effects: [stock.hold]
    reversible: true
    holds: {ttl: 10m, consumed_by: letter.send}
    idempotency: {key: [call.id]}
    reconcile: {manual: "Look at the holds"}
    compensate: {tool: release, args: {hold: result.hold}, on: [run_failed, run_cancelled, run_finished]}
  find_booking:
    kind: read
    exposed: host
    handler: "python:shop:find_booking"
    params: {key: {type: id}}
    result: {found: {type: bool}}
  release:
    kind: write
    exposed: host
    handler: "python:shop:release"
    params: {hold: {type: id}}
    effects: [stock.release]
    idempotency: {key: [hold]}
    retry: same_key
    reconcile: {manual: "Look at the holds"}
"""

POLICY = """
agentctl: policy/v1
id: shop
version: 1
owner: me
tool_specs: [shop.tools.yaml]
principals: {roles: [clerk, lead], may_start: [clerk]}
sources:
  stock: {usable_when: [available]}
  papers: {usable_when: [available, degraded]}
capabilities:
  docs:
    request: {roles: [clerk]}
    approve: [{by: host}]
    expires: {after: 1h, calls: 3}
  ops:
    request: {roles: [clerk]}
    approve: [{by: {roles: [lead]}, timeout: 10m}]
    expires: {after: 1h}
permissions:
  - {id: reading, effect: allow, roles: [clerk], tools: [get_stock, ping]}
  - {id: papers, effect: allow, roles: [clerk], tools: [search_docs], needs: [docs]}
  - id: wiping
    effect: allow
    roles: [clerk]
    tools: [wipe_cache]
    needs: [ops]
    unattended: {because: "test", max_per_run: 9}
  - {id: letters, effect: ask, roles: [clerk], tools: [send_letter], approval: {by: {roles: [lead]}, expires: 90s}}
  - id: rooms
    effect: allow
    roles: [clerk]
    tools: [book_room, reserve, set_price]
    unattended: {because: "test", max_per_run: 50}
outputs:
  note:
    about: "The note"
    fields: {body: {type: rich_text, max_len: 2000, cites: true, figures: true}}
    citations: {kinds: [stock_level, paper], min: 1}
    figures: {kinds: [int], from: [stock_level], render: host}
  letter:
    about: "A plain text"
    fields: {body: {type: text, max_len: 2000}}
gates: {finish: []}
budgets: {turns: 30, cost_usd: "1.00", wall_time: 1h, calls: {total: 60}, no_progress_turns: 5, questions_to_user: 3}
model: {primary: {id: openai/gpt-5-mini-2025-08-07}}
"""


@lru_cache(maxsize=64)
def compiled(policy: str = POLICY, tools: str = TOOLS) -> Policy:
    return load_policy("shop.policy.yaml", {"shop.policy.yaml": policy, "shop.tools.yaml": tools})


def with_lines(**replaced: str) -> str:
    """The shop policy with whole top-level lines (`gates`, `budgets`, …) replaced."""
    lines = [
        next((f"{key}: {text}" for key, text in replaced.items() if line.startswith(f"{key}:")), line)
        for line in POLICY.splitlines()
    ]
    return "\n".join(lines)


class Crash(BaseException):
    """The process ends here, as far as a test can play it."""


class FakeClock:
    """Moves only when it is told to, and by what is slept."""

    def __init__(self) -> None:
        self.time = START
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.time

    def advance(self, **delay: float) -> None:
        self.time += timedelta(**delay)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += timedelta(seconds=seconds)
        await asyncio.sleep(0)


@dataclass
class Shop:
    """The world outside the engine: one line per effect, whatever the event log says."""

    ledger: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    """Idempotency key -> effect."""
    special: dict[str, Callable[..., object]] = field(default_factory=dict)
    """Tool -> what to do instead, given the usual function."""

    def effect(self, what: str, context: ToolContext) -> None:
        self.ledger.append(what)
        if context.idempotency_key:
            self.keys[context.idempotency_key] = what

    async def get_stock(self, sku: int) -> object:
        self.reads.append(f"get_stock {sku}")
        return {"left": sku * 10, "level": f"L{sku}"}

    async def search_docs(self, q: str, notes: str = "", ids: Sequence[int] = ()) -> object:
        self.reads.append(f"search_docs {q}")
        return {
            "docs": [{"id": "D1", "spans": [{"id": "s1", "text": f"{q} is 5"}]}, {"id": "D2", "spans": []}]
        }

    async def ping(self) -> object:
        self.reads.append("ping")
        return "pong"

    async def wipe_cache(self, context: ToolContext) -> object:
        self.effect("wipe", context)
        return None

    async def set_price(self, sku: int, price: int, context: ToolContext) -> object:
        self.effect(f"price {sku}={price}", context)
        return {}

    async def book_room(self, room: int, context: ToolContext) -> object:
        self.effect(f"room {room}", context)
        return {"booking": f"B{room}"}

    async def send_letter(self, to: str, context: ToolContext) -> object:
        self.effect(f"letter {to}", context)
        return {"sent": True}

    async def reserve(self, sku: int, context: ToolContext) -> object:
        self.effect(f"hold {sku}", context)
        return {"hold": f"H{sku}"}

    async def find_booking(self, key: str) -> object:
        self.reads.append("find_booking")
        return {"found": key in self.keys}

    async def release(self, hold: str, context: ToolContext) -> object:
        self.effect(f"release {hold}", context)
        return {}

    def handlers(self) -> Mapping[str, Callable[..., object]]:
        names = (
            "get_stock", "search_docs", "ping", "wipe_cache", "set_price", "book_room", "send_letter",
            "reserve", "find_booking", "release",
        )  # fmt: skip
        return {name: self.special.get(name, getattr(self, name)) for name in names}


def say(*calls: tuple[str, Any], text: str = "", finish: str = "") -> ModelResponse:
    """A closed response: each call is a tool and its arguments, as a mapping or as raw text."""
    import json

    proposed = tuple(
        ProposedCall(tool, args if isinstance(args, str) else json.dumps(args), f"p{index}")
        for index, (tool, args) in enumerate(calls)
    )
    ended: Any = finish or ("tool_calls" if proposed else "stop")
    return ModelResponse(model="m", text=text, calls=proposed, finish=ended, cost_usd=Decimal(0))


def final(text: str = "") -> ModelResponse:
    return say(("finish", {}), text=text)


Turn = ModelResponse | Mapping[str, Any] | Callable[[ModelRequest], ModelResponse]


class Bench:
    """One Run on one store; each `drive` is a fresh Runtime, as after a restart."""

    def __init__(
        self,
        *turns: Turn,
        policy: str = POLICY,
        tools: str = TOOLS,
        store: EventStore | None = None,
        shop: Shop | None = None,
        clock: FakeClock | None = None,
        gateway: ModelGateway | None = None,
        input: str = "please",  # noqa: A002 - the word of the design
        model: str = "scripted/test",
        check_fold: bool = True,
        run: str | None = None,
    ) -> None:
        self.policy = compiled(policy, tools)
        self.store: EventStore = store if store is not None else MemoryStore()
        self.shop = shop or Shop()
        self.clock = clock or FakeClock()
        self.requests: list[ModelRequest] = []
        """Each request with a copy of its messages."""
        self.gateway = gateway or ScriptedGateway.from_turns([self._noted(turn) for turn in turns])
        self.model = model
        self.newer: list[Policy] = []
        self._read: list[Event] = []
        self._state: RunState | None = None
        self.check_fold = check_fold
        self.run: RunId = self.runtime().start(input, principal=CLERK, run=run)

    def _noted(self, turn: Turn) -> Turn:
        if isinstance(turn, Mapping):
            return turn

        def play(request: ModelRequest) -> ModelResponse:
            self.requests.append(replace(request, messages=tuple(request.messages)))
            return turn if isinstance(turn, ModelResponse) else turn(request)

        return play

    def runtime(self) -> Runtime:
        parts = Parts(
            store=self.store, gateway=self.gateway, executor=FunctionTools(self.shop.handlers()),
            clock=self.clock, owner=this_process("test"), model=self.model,
        )  # fmt: skip
        runtime = Runtime(parts, self.policy)
        for known in (self.policy, *self.newer):
            runtime.library.add(known)
        return runtime

    def drive(self, crash_point: Callable[[str], None] | None = None) -> Driven:
        return asyncio.run(self.adrive(crash_point))

    async def adrive(self, crash_point: Callable[[str], None] | None = None) -> Driven:
        driven = await self.runtime().drive(self.run, crash_point=crash_point)
        if self.check_fold:
            assert driven.state == self.state, "the live state is not what the log folds to"
            assert driven.state == fold(self.run, self.store.events(self.run)), "folding twice differs"
        return driven

    @property
    def log(self) -> list[Event]:
        """Every event so far; those read before are not read again."""
        self._read += self.store.events(self.run, len(self._read))
        return list(self._read)

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.log]

    @property
    def state(self) -> RunState:
        """What the log folds to: folded anew where it grew, and never changed."""
        log = self.log
        if self._state is None or self._state.seq != len(log):
            self._state = fold(self.run, log)
        return self._state

    @property
    def status(self) -> str:
        return self.state.status

    @property
    def reason(self) -> str:
        ending = self.state.ending
        return ending[1] if ending else ""

    def of_kind(self, kind: str) -> list[Event]:
        return [event for event in self.log if event.kind == kind]

    def call(self, turn: int, ordinal: int) -> Any:
        return self.state.calls[CallId(turn, ordinal)]

    def outcome(self, turn: int, ordinal: int) -> str:
        """What became of a call, in one word."""
        call = self.call(turn, ordinal)
        if call.receipt is not None:
            return str(call.receipt.outcome.value)
        return str(call.status.value)

    def outcomes(self, turn: int) -> list[str]:
        return [self.outcome(call.turn, call.ordinal) for call in self.state.turns[turn - 1].calls]

    def results(self, turn: int) -> list[Any]:
        """What the model was shown as the results of that turn, in the last request."""
        from engine.domain.messages import CallResult

        shown = self.requests[-1].messages
        return [each for each in shown if isinstance(each, CallResult) and each.id.turn == turn]

    def approve(self, turn: int, ordinal: int, by: Actor = LEAD) -> RunState:
        return self.runtime().approve(self.run, CallId(turn, ordinal), by=by)

    def refuse(self, turn: int, ordinal: int, by: Actor = LEAD, because: str = "no") -> RunState:
        return self.runtime().refuse(self.run, CallId(turn, ordinal), by=by, because=because)

    def reply(self, text: str) -> RunState:
        return self.runtime().reply(self.run, text, by=ME)

    def cancel(self, because: str = "") -> RunState:
        return self.runtime().cancel(self.run, by=ME, because=because)

    def source(self, name: str, state: Any) -> RunState:
        from engine.runtime import signals

        return signals.set_source(self.store, self.clock, self.run, ME, name, state, "")

    def load(self, policy: str, *, drain: bool = False, tools: str = TOOLS) -> None:
        """A newer version of the policy becomes known to the Run."""
        from engine.domain import events as e
        from engine.runtime import signals
        from engine.runtime.library import bundle_text

        newer = compiled(policy, tools)
        self.newer.append(newer)
        bundle = self.store.put_blob(bundle_text(newer))
        body = e.PolicyLoaded(
            policy=newer.id, digest=newer.digest, bundle=bundle, version=newer.version, drain=drain
        )
        signals.append(self.store, self.clock, self.run, ME, lambda state: [body])

    def verified(self) -> None:
        assert verify(self.store, self.run).holds


class CrashAt:
    """Raises Crash at the n-th crash point; `points` says how many were passed."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.points: list[str] = []

    def __call__(self, where: str) -> None:
        self.points.append(where)
        if len(self.points) == self.n:
            raise Crash(where)


def sqlite(path: Path) -> SqlStore:
    return SqlStore.open(str(path / "runs.db"))


def one_result_per_proposal(log: Iterable[Event]) -> None:
    """Every proposal of a Run that is over has come to exactly one end."""
    state: RunState | None = None
    events = list(log)
    state = fold(events[0].run, events)
    assert state.terminal
    assert not state.open_calls
    for call in state.calls.values():
        assert call.status.final, call
