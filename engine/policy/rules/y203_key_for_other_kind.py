"""Owns Y203 key-for-other-kind."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import SHAPE
from engine.policy.rules.examples import base

RULE = Rule(
    id="Y203",
    name="key-for-other-kind",
    severity=Severity.ERROR,
    summary="A key that belongs to another kind of tool, rule or type.",
    why=(
        "A key that would have no effect here misleads the reader: a `deny` is not approved, a read has "
        "no effects."
    ),
    bad=base(
        (
            '    when: "principal.suspended"\n',
            '    when: "principal.suspended"\n    fresh: [{state: account, max_age: 5s}]\n',
        )
    ),
    good=base(),
    answers=SHAPE,
)
