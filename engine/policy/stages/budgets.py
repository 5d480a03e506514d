"""Owns the budgets of a policy with its overlays: of each the smallest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from engine.domain.policy import Budgets
from engine.policy.documents.overlay import OverlayBudgetsPart
from engine.policy.documents.policy import BudgetsPart

_SINGLE: Final = (
    "turns",
    "cost_usd",
    "wall_time",
    "invalid_calls_in_a_row",
    "no_progress_turns",
    "no_call_turns",
    "questions_to_user",
)


def smallest_budgets(policy: BudgetsPart, overlays: Iterable[OverlayBudgetsPart | None]) -> Budgets:
    parts: list[BudgetsPart | OverlayBudgetsPart] = [policy, *(part for part in overlays if part is not None)]
    single = {key: _least(getattr(part, key) for part in parts) for key in _SINGLE}
    single["no_call_turns"] = single["no_call_turns"] or 0
    return Budgets(
        **single,
        calls_total=_least(part.calls.total for part in parts if part.calls),
        calls_per_tool=_per_tool(parts),
        tokens_input=_least(part.tokens.input for part in parts if part.tokens),
        tokens_output=_least(part.tokens.output for part in parts if part.tokens),
    )


def _least(values: Iterable[Any]) -> Any:
    return min((value for value in values if value is not None), default=None)


def _per_tool(parts: Iterable[BudgetsPart | OverlayBudgetsPart]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        for tool, cap in (part.calls.per_tool if part.calls else {}).items():
            found[tool] = min(cap, found.get(tool, cap))
    return found
