"""Owns the names that the Host has taken: its tools, and the budgets that conditions can ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.domain.types import TypeName, ValueType

HOST_TOOLS: Final = frozenset({"ask_user", "request_capability", "finish"})
"""No tool of a policy may have one of these names; nor may one begin with PUBLISH."""
PUBLISH: Final = "publish_"
_INT: Final = ValueType(TypeName.INT)
BUDGETS: Final[Mapping[str, ValueType]] = {
    "turns": _INT,
    "cost_usd": ValueType(TypeName.DECIMAL),
    "wall_time": ValueType(TypeName.DURATION),
    "calls": _INT,
    "tokens_input": _INT,
    "tokens_output": _INT,
    "questions_to_user": _INT,
}
"""`run.budget_left.<name>` and its type."""
