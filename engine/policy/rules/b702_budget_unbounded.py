"""Owns B702 budget-unbounded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.base import Part
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

_MOST: Final[tuple[tuple[str, Any, str], ...]] = (
    ("turns", 1_000, "1000"),
    ("cost_usd", Decimal(1000), "1000 US dollars"),
    ("wall_time", timedelta(days=7), "7d"),
)
_MOST_CALLS: Final = 10_000
_MOST_TOKENS: Final = 1_000_000_000


def check(model: Model) -> Iterator[Diagnostic]:
    if model.policy_part is None:
        return
    budgets = model.policy_part.budgets
    for key, most, shown in _MOST:
        yield from _above(budgets, key, most, shown)
    yield from _above(budgets.calls, "total", _MOST_CALLS, f"{_MOST_CALLS}")
    if budgets.tokens is not None:
        for key in ("input", "output"):
            yield from _above(budgets.tokens, key, _MOST_TOKENS, f"{_MOST_TOKENS}")


def _above(part: Part, key: str, most: Any, shown: str) -> Iterator[Diagnostic]:
    value = getattr(part, key)
    if value is not None and value > most:
        yield finding(
            "B702",
            part.place(key),
            f"`{key}` is so large that it bounds nothing: more than {shown}",
            "write a number that would stop a loop",
        )


RULE = Rule(
    id="B702",
    name="budget-unbounded",
    severity=Severity.WARNING,
    summary="A budget so large that it does not bound anything.",
    why=(
        "A budget is there for the loop that nobody foresaw. One that is reached after a thousand turns, "
        "a thousand dollars or a week stops nothing that a person would not have stopped before."
    ),
    bad=base(("turns: 30", "turns: 100000")),
    good=base(),
    answers=DECLARED,
    check=check,
)
