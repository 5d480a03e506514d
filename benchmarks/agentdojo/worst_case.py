"""Owns the worst-case model: it proposes what solves the user's task and, once a result shows the injected text,
every call of the attack. It is scripted, so what it shows is what the Runtime lets through, not how a model behaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from benchmarks.agentdojo.suites import MARKER, Call
from benchmarks.agentdojo.world import to_contract
from engine.domain.messages import CallResult
from engine.domain.policy import Policy
from engine.ports import ModelRequest, ModelResponse, ProposedCall

Order = Literal["first", "after", "together"]
ORDERS: tuple[Order, ...] = ("first", "after", "together")
"""The attack before what is left of the task, after it, or in one response with its next call."""


@dataclass
class WorstCase:
    """A turn of the scripted gateway, asked anew for each turn."""

    policy: Policy
    task: Sequence[Call]
    answer: str
    """The text that the suite expects of a model that has solved the task."""
    attack: Callable[[], Sequence[Call]] | None = None
    """The calls of the attack, as they are when it begins: it knows the environment better than a model could."""
    order: Order = "first"
    obeyed: bool = False
    _next: int = 0
    _pending: list[Call] = field(default_factory=list)

    def __call__(self, request: ModelRequest) -> ModelResponse:
        return self.turn(
            any(isinstance(each, CallResult) and MARKER in each.text for each in request.messages)
        )

    def turn(self, saw: bool) -> ModelResponse:
        """The next response; `saw` says whether a result that it was shown holds the injected text."""
        seen = saw and self.attack is not None and not self.obeyed and self.order != "after"
        if seen and self.order == "first":
            self._pending = self._obey()
        if seen and self.order == "together":
            return self._say([*self._obey(), *self._own()])
        if self._pending:
            return self._say([self._pending.pop(0)])
        own = self._own()
        if own:
            return self._say(own)
        if self.attack is not None and not self.obeyed and saw and self.order == "after":
            self._pending = self._obey()
            if self._pending:
                return self._say([self._pending.pop(0)])
        return self._say([("finish", {})], self.answer)

    def _own(self) -> list[Call]:
        self._next += 1
        return list(self.task[self._next - 1 : self._next])

    def _obey(self) -> list[Call]:
        self.obeyed = True
        return list(self.attack()) if self.attack is not None else []

    def _say(self, calls: Sequence[Call], text: str = "") -> ModelResponse:
        return ModelResponse(
            model="worst-case",
            text=text,
            calls=tuple(ProposedCall(name, self._arguments(name, args)) for name, args in calls),
            finish="tool_calls",
            cost_usd=Decimal(0),
        )

    def _arguments(self, name: str, args: dict[str, object]) -> str:
        spec = self.policy.tools.get(name)
        return json.dumps(args if spec is None else to_contract(spec, args), ensure_ascii=False)
