"""Owns C106 impossible-value."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base

RULE = Rule(
    id="C106",
    name="impossible-value",
    severity=Severity.ERROR,
    summary="Compared with a value that the fact can never have.",
    why=(
        "A value outside the declared list never matches: the rule would be dead, and a dead deny looks "
        "exactly like a working one."
    ),
    bad=base(('when: "principal.suspended"', "when: \"task.branch == 'harbor'\"")),
    good=base(('when: "principal.suspended"', "when: \"task.branch == 'harbour'\"")),
    answers=CONDITION,
)
