"""Owns N104 unknown-label."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base

RULE = Rule(
    id="N104",
    name="unknown-label",
    severity=Severity.ERROR,
    summary="A label that is not declared.",
    why="A rule about a label that nothing carries protects nothing.",
    bad=base(
        ("    source: vault\n    handler", "    source: vault\n    labels: [privat]\n    handler"),
        ("limits:\n", "labels: [private]\nlimits:\n"),
    ),
    good=base(
        ("    source: vault\n    handler", "    source: vault\n    labels: [private]\n    handler"),
        ("limits:\n", "labels: [private]\nlimits:\n"),
    ),
    answers=NAMES,
)
