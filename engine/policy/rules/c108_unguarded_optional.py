"""Owns C108 unguarded-optional."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base

RULE = Rule(
    id="C108",
    name="unguarded-optional",
    severity=Severity.WARNING,
    summary="An optional argument is read without `has()`.",
    why=(
        "Where the argument is absent the comparison is unknown, which restricts. Saying `has()` states "
        "which of the two was meant."
    ),
    bad=base(
        ('effect: deny\n    tools: ["kind:write", "kind:hybrid"]', "effect: deny\n    tools: [find_books]"),
        ('when: "principal.suspended"', 'when: "args.before_year < 1900"'),
    ),
    good=base(
        ('effect: deny\n    tools: ["kind:write", "kind:hybrid"]', "effect: deny\n    tools: [find_books]"),
        ('when: "principal.suspended"', 'when: "has(args.before_year) && args.before_year < 1900"'),
    ),
    answers=CONDITION,
)
