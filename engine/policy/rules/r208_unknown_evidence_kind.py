"""Owns R208 unknown-evidence-kind."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base

RULE = Rule(
    id="R208",
    name="unknown-evidence-kind",
    severity=Severity.ERROR,
    summary="No tool produces this evidence kind.",
    why=(
        "A reference is accepted only if an earlier result of the Run produced it. A kind that nothing "
        "produces makes the tool impossible to call."
    ),
    bad=base(("book: {type: ref, of: book}\n      note:", "book: {type: ref, of: books}\n      note:")),
    good=base(),
    answers=NAMES,
)
