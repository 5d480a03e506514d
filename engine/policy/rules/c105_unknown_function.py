"""Owns C105 unknown-function."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base

RULE = Rule(
    id="C105",
    name="unknown-function",
    severity=Severity.ERROR,
    summary="The function or method is not in the language.",
    why="The functions are a closed list, each typed, none of which calls out or can fail.",
    bad=base(('when: "principal.suspended"', 'when: "len(state.account.loans) > 5"')),
    good=base(('when: "principal.suspended"', 'when: "size(state.account.loans) > 5"')),
    answers=CONDITION,
)
