"""Owns C101 condition-syntax."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base

RULE = Rule(
    id="C101",
    name="condition-syntax",
    severity=Severity.ERROR,
    summary="The condition does not parse.",
    why=("A condition is a closed subset of CEL. What does not parse has no meaning that could be enforced."),
    bad=base(('when: "principal.suspended"', 'when: "principal.suspended &&"')),
    good=base(),
    answers=CONDITION,
)
