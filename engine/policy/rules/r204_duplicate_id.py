"""Owns R204 duplicate-id."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base

RULE = Rule(
    id="R204",
    name="duplicate-id",
    severity=Severity.ERROR,
    summary="Two things share one id.",
    why=(
        "Ids are cited in receipts, in approvals and by `why`. With two rules of one id, nobody can tell "
        "which of them decided."
    ),
    bad=base(("  - id: borrow\n", "  - id: hold\n")),
    good=base(),
    answers=NAMES,
)
