"""Owns W203 write-without-effects."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="W203",
    name="write-without-effects",
    severity=Severity.ERROR,
    summary="The effects of a write or hybrid are not named.",
    why=(
        "Overlays, holds and invariants speak about effects, so that they need not know the tools. A write "
        "that names none slips through all of them."
    ),
    bad=base(("    effects: [book.release]\n", "")),
    good=base(),
    answers=DECLARED,
)
