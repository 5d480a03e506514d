"""Owns Y102 yaml-tag-ate-value."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import SHAPE
from engine.policy.rules.examples import base

RULE = Rule(
    id="Y102",
    name="yaml-tag-ate-value",
    severity=Severity.ERROR,
    summary="A value that starts with `!` was read as a YAML tag and is empty.",
    why=(
        "YAML takes `!principal.suspended` for a tag, and the value that follows it is empty: the rule "
        "would have no condition at all and would match always, or never."
    ),
    bad=base(('when: "principal.suspended"', "when: !principal.suspended")),
    good=base(('when: "principal.suspended"', 'when: "!principal.suspended"')),
    answers=SHAPE,
)
