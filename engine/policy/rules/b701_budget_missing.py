"""Owns B701 budget-missing."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="B701",
    name="budget-missing",
    severity=Severity.ERROR,
    summary="A required budget is absent.",
    why=(
        "Budgets have no default: turns, money, time and calls are stated, because the loop that has no "
        "bound is found on the bill."
    ),
    bad=base(('  cost_usd: "0.60"\n', "")),
    good=base(),
    answers=DECLARED,
)
