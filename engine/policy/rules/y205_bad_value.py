"""Owns Y205 bad-value."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import SHAPE
from engine.policy.rules.examples import base

RULE = Rule(
    id="Y205",
    name="bad-value",
    severity=Severity.ERROR,
    summary="A value of the wrong form.",
    why=(
        "Money is text in quotes so that no digit is lost, durations carry their unit, and what YAML 1.1 "
        "and 1.2 read differently must be quoted."
    ),
    bad=base(('cost_usd: "0.60"', "cost_usd: 0.60")),
    good=base(),
    answers=SHAPE,
)
