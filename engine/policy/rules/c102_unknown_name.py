"""Owns C102 unknown-name."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base

RULE = Rule(
    id="C102",
    name="unknown-name",
    severity=Severity.ERROR,
    summary="The condition reads a name that is not a Host fact.",
    why=(
        "Conditions read facts that the Host owns, through a closed list of roots. There is no root for "
        "what the model, the user or an undeclared result says."
    ),
    bad=base(('when: "principal.suspended"', 'when: "principle.suspended"')),
    good=base(),
    answers=CONDITION,
)
