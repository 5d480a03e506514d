"""Owns Y202 missing-key."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import SHAPE
from engine.policy.rules.examples import base

RULE = Rule(
    id="Y202",
    name="missing-key",
    severity=Severity.ERROR,
    summary="A key that is needed at this place is missing.",
    why="Where the language has no safe default it has none: the author says it.",
    bad=base(("owner: library\n", "")),
    good=base(),
    answers=SHAPE,
)
