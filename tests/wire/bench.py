"""Owns the shop on which the tests of the model port drive whole Runs: a policy, three tools, a ledger of effects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from engine.adapters.function_tools import FunctionTools
from engine.adapters.memory_store import MemoryStore
from engine.adapters.processes import this_process
from engine.domain import events as e
from engine.domain.actors import Principal
from engine.domain.ids import RunId
from engine.domain.policy import Policy
from engine.domain.state import RunState
from engine.policy.compiler import compile_policy
from engine.ports import EventStore, InputMeter, ModelGateway, Secrets
from engine.runtime.driver import Driven
from engine.runtime.runtime import Parts, Runtime

T = TypeVar("T", bound=e.Body)
GPT = "openai/gpt-4o"
CLAUDE = "anthropic/claude-sonnet-4-5"
CLERK = Principal(id="kim", roles=("clerk",))
TOOLS = """
agentctl: tools/v1
id: shop
tools:
  get_stock:
    kind: read
    handler: "python:nowhere:get_stock"
    description: "How much of an item is there."
    params: {item: {type: text, max_len: 200}}
  list_items: {kind: read, handler: "python:nowhere:list_items", description: "All items."}
  order:
    kind: write
    handler: "python:nowhere:order"
    description: "Order an item."
    params:
      item: {type: text, max_len: 200}
      count: {type: int, min: 1, max: 100}
      note: {type: text, max_len: 500, required: false}
    effects: [shop.order]
    idempotency: {key: [call.id]}
    reconcile: {manual: "look into the shop's books"}
  reserve:
    kind: hybrid
    handler: "python:nowhere:reserve"
    description: "Set an item aside."
    params: {item: {type: text, max_len: 200}}
    effects: [shop.reserve]
    idempotency: {key: [call.id]}
    reconcile: {manual: "look into the shop's books"}
    reversible: false
"""


def policy(
    model: str = GPT,
    fallbacks: str = "[]",
    budgets: str = "",
    use: str = "",
    more: str = "",
    money: str = "100.00",
    calls: int = 10000,
    turns: int = 100,
) -> Policy:
    """The shop's policy. `budgets` are more keys of `budgets`, `use` of `model.primary`, `more` of the document."""
    text = f"""
agentctl: policy/v1
id: shop
version: 1
owner: shop
tool_specs: [t.tools.yaml]
principals: {{roles: [clerk], may_start: [clerk]}}
permissions:
  - {{id: look, effect: allow, roles: [clerk], tools: [get_stock, list_items]}}
  - id: act
    effect: allow
    roles: [clerk]
    tools: [order, reserve]
    unattended: {{because: tests, max_per_run: 100000}}
gates: {{finish: []}}
budgets: {{turns: {turns}, cost_usd: "{money}", wall_time: 24h, calls: {{total: {calls}}}, no_call_turns: 3{budgets}}}
model: {{primary: {{id: {model}{use}}}, fallbacks: {fallbacks}}}
{more}
"""
    compiled = compile_policy("p.policy.yaml", {"p.policy.yaml": text, "t.tools.yaml": TOOLS})
    assert compiled.policy is not None, [str(fault) for fault in compiled.diagnostics]
    return compiled.policy


@dataclass
class Shop:
    """The tools. `ledger` keeps what was really done."""

    ledger: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    answers: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def tools(self) -> FunctionTools:
        async def get_stock(item: str) -> Any:
            return self._said("get_stock", {"item": item}, item=item)

        async def list_items() -> Any:
            return self._said("list_items", ["apples", "pears"])

        async def order(item: str, count: int, note: str = "") -> Any:
            self.ledger.append(("order", {"item": item, "count": count}))
            return self._said("order", {"ordered": count}, item=item, count=count)

        async def reserve(item: str) -> Any:
            self.ledger.append(("reserve", {"item": item}))
            return self._said("reserve", {"reserved": item}, item=item)

        return FunctionTools(
            {"get_stock": get_stock, "list_items": list_items, "order": order, "reserve": reserve}
        )

    def _said(self, tool: str, otherwise: Any, **args: Any) -> Any:
        made = self.answers.get(tool)
        return otherwise if made is None else made(**args)


class QuickClock:
    """A clock that moves a microsecond at each look, and at once by what somebody would sleep."""

    def __init__(self) -> None:
        self.time = datetime(2026, 6, 30, 12, tzinfo=UTC)
        self.slept: list[float] = []

    def now(self) -> datetime:
        self.time += timedelta(microseconds=1)
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += timedelta(seconds=seconds)


class Bench:
    """One Run of the shop with a gateway of the test's choice."""

    def __init__(
        self,
        gateway: ModelGateway,
        chosen: Policy | None = None,
        *,
        model: str = "",
        store: EventStore | None = None,
        secrets: Secrets | None = None,
        meter: InputMeter | None = None,
        clock: Any = None,
    ) -> None:
        self.shop = Shop()
        self.store = store or MemoryStore()
        self.clock = clock or QuickClock()
        self.policy = chosen or policy()
        self.runtime = Runtime(
            Parts(
                self.store,
                gateway,
                self.shop.tools(),
                self.clock,
                this_process(),
                model or self.policy.model.primary.id,
                secrets,
                meter,
            ),
            self.policy,
        )
        self.run: RunId | None = None

    def start(self, text: str = "Order two apples.") -> RunId:
        self.run = self.runtime.start(text, principal=CLERK)
        return self.run

    def drive(self, **how: Any) -> Driven:
        return asyncio.run(self.drive_here(**how))

    async def drive_here(self, **how: Any) -> Driven:
        return await self.runtime.drive(self.run or self.start(), **how)

    @property
    def state(self) -> RunState:
        assert self.run is not None
        return self.runtime.state(self.run)

    def bodies(self, kind: type[T]) -> list[T]:
        assert self.run is not None
        return [event.body for event in self.store.events(self.run) if isinstance(event.body, kind)]

    def kinds(self) -> list[str]:
        assert self.run is not None
        return [event.kind for event in self.store.events(self.run)]

    def log(self) -> str:
        """Everything that is stored of the Run, as text."""
        assert self.run is not None
        rows = "\n".join(f"{row.actor} {row.payload}" for row in self.store.rows(self.run))
        blobs = [
            self.store.blob(event.body.result.digest) or ""
            for event in self.store.events(self.run)
            if isinstance(event.body, e.ReceiptRecorded) and event.body.result and event.body.result.digest
        ]
        return "\n".join([rows, *blobs])
