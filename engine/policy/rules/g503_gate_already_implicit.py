"""Owns G503 gate-already-implicit."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="G503",
    name="gate-already-implicit",
    severity=Severity.NOTE,
    summary="An implicit gate is repeated.",
    why=(
        "Nothing unsettled, nothing pending and no unknown effect: these gates always apply. Writing them "
        "down suggests that they could be left out."
    ),
    bad=base(
        ("    - output_committed: answer\n", "    - output_committed: answer\n    - no_unknown_effects\n")
    ),
    good=base(),
    answers=DECLARED,
)
