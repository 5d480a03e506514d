"""Owns C104 condition-type."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base

RULE = Rule(
    id="C104",
    name="condition-type",
    severity=Severity.ERROR,
    summary="The types of the operands do not fit.",
    why=(
        "A comparison of a list with a number has no answer, and a condition without an answer restricts "
        "silently."
    ),
    bad=base(('when: "principal.suspended"', 'when: "state.account.loans > 5"')),
    good=base(('when: "principal.suspended"', 'when: "size(state.account.loans) > 5"')),
    answers=CONDITION,
)
