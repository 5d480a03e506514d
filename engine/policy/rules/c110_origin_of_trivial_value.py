"""Owns C110 origin-of-trivial-value."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base

RULE = Rule(
    id="C110",
    name="origin-of-trivial-value",
    severity=Severity.WARNING,
    summary="`origin` is asked of a value that is too short or too small to have one.",
    why=(
        "The origin of a value is where it literally occurs in what the Host recorded. Values under four "
        "characters and numbers below a thousand occur everywhere, so their origin is always unknown."
    ),
    bad=base(
        ("max: 9999", "max: 999"),
        ('effect: deny\n    tools: ["kind:write", "kind:hybrid"]', "effect: deny\n    tools: [read_page]"),
        ('when: "principal.suspended"', "when: \"'model' in origin(args.number)\""),
    ),
    good=base(
        ("max: 9999", "max: 999"),
        ('effect: deny\n    tools: ["kind:write", "kind:hybrid"]', "effect: deny\n    tools: [read_page]"),
        ('when: "principal.suspended"', 'when: "args.number > 900"'),
    ),
    answers=CONDITION,
)
