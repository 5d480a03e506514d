"""Owns K304 capability-never-expires."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="K304",
    name="capability-never-expires",
    severity=Severity.ERROR,
    summary="The capability has no expiry.",
    why="What was granted for one afternoon is still there in spring. A grant ends by time, by calls, or by both.",
    bad=base(("    expires: {after: 2h, calls: 20}\n", "")),
    good=base(),
    answers=DECLARED,
)
