"""Owns P207 rule-without-roles."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="P207",
    name="rule-without-roles",
    severity=Severity.ERROR,
    summary="Allow and ask must say for which roles.",
    why=(
        "A permission without roles is one for everybody, also for roles that are added later. Who is meant"
        " is written down."
    ),
    bad=base(
        (
            "effect: allow\n    roles: [reader]\n    tools: [find_books",
            "effect: allow\n    tools: [find_books",
        )
    ),
    good=base(),
    answers=DECLARED,
)
