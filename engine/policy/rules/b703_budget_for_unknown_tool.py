"""Owns B703 budget-for-unknown-tool."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base
from engine.policy.rules.grants import granted


def check(model: Model) -> Iterator[Diagnostic]:
    """The compiler finds names that are no tool; here caps that can count nothing."""
    if model.policy_part is None:
        return
    calls, tools, permitted = model.policy_part.budgets.calls, model.tools, granted(model)
    for name, cap in calls.per_tool.items():
        if name in tools and tools[name].exposed == "host":
            yield finding(
                "B703",
                calls.key_place("per_tool", name),
                f"`{name}` is called by the Host alone, which no budget counts",
                "delete the cap",
            )
        elif cap == 0 and name in tools and name not in permitted:
            yield finding(
                "B703",
                calls.key_place("per_tool", name),
                f"the cap of `{name}` is 0, and no rule permits it anyway",
                "delete the cap: what no rule permits is not shown",
            )


RULE = Rule(
    id="B703",
    name="budget-for-unknown-tool",
    severity=Severity.ERROR,
    summary="A per-tool budget names no tool, or one whose calls it cannot count.",
    why="A cap on a misspelled name caps nothing, and the tool that was meant has no cap.",
    bad=base(("per_tool: {borrow_book: 2, hold_book: 3}", "per_tool: {borrow_book: 2, hold_books: 3}")),
    good=base(),
    answers=NAMES,
    check=check,
)
