"""Anthropic's own types, offline, as judges of contracts and histories. Slow, because `anthropic` is loaded."""

from __future__ import annotations

import pytest

from engine.adapters.anthropic_types import check_history, check_tools
from engine.domain.messages import AssistantTurn, ToolSchema, UserInput
from tests.adapters.build import STOCK
from tests.adapters.test_wire import CLAUDE, PARTS, history

pytestmark = pytest.mark.slow


def test_the_vendors_types_accept_our_contracts_and_histories() -> None:
    assert check_tools([STOCK]) == []
    assert check_history(history(parts=PARTS), CLAUDE) == []


def test_the_vendors_types_name_what_does_not_fit() -> None:
    faults = check_tools([STOCK, ToolSchema("x", "d", {"type": "array"})])
    assert len(faults) == 1
    assert faults[0].startswith("input_schemas[1].type: ")
    unknown = AssistantTurn(
        1, "m", "x", ({"model": CLAUDE, "field": "thinking_blocks", "value": {"type": "odd"}},)
    )
    assert check_history([UserInput("x"), unknown], CLAUDE)[0].startswith("messages[1]")
