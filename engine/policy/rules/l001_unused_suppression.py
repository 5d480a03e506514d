"""Owns L001 unused-suppression."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="L001",
    name="unused-suppression",
    severity=Severity.WARNING,
    summary="An ignore comment that suppresses nothing.",
    why="A comment that outlives the fault it excused hides the next one.",
    bad=base(
        (
            "    tools: [hold_book]\n",
            '    tools: [hold_book] # agentctl: ignore[B705] because="the shelf has a limit" until=2999-12-31\n',
        )
    ),
    good=base(),
    answers=DECLARED,
)
