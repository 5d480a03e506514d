"""Owns R209 unknown-output."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base

RULE = Rule(
    id="R209",
    name="unknown-output",
    severity=Severity.ERROR,
    summary="The output is not declared.",
    why="A gate over an output that does not exist could never be met, and the Run could never finish.",
    bad=base(("output_committed: answer", "output_committed: answers")),
    good=base(),
    answers=NAMES,
)
