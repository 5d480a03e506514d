"""Owns C103 unknown-field."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base

RULE = Rule(
    id="C103",
    name="unknown-field",
    severity=Severity.ERROR,
    summary="The condition reads a field that does not exist.",
    why=("In languages that answer `undefined` here, the rule loads, matches nothing and protects nothing."),
    bad=base(
        (
            'when: "state.account.fines_minor <= limits.fine_cap_minor"',
            'when: "state.account.fines <= limits.fine_cap_minor"',
        )
    ),
    good=base(),
    answers=CONDITION,
)
