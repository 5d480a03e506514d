"""Owns R207 unknown-effect."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base

RULE = Rule(
    id="R207",
    name="unknown-effect",
    severity=Severity.ERROR,
    summary="No tool has this effect.",
    why=(
        "Effects tie holds, gates, overlays and invariants together. A misspelled one waits for "
        "something that never happens."
    ),
    bad=base(
        ("    - output_committed: answer", "    - output_committed: answer\n    - holds_closed: book.holds")
    ),
    good=base(
        ("    - output_committed: answer", "    - output_committed: answer\n    - holds_closed: book.hold")
    ),
    answers=NAMES,
)
