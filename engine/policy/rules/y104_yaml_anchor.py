"""Owns Y104 yaml-anchor."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import SHAPE
from engine.policy.rules.examples import base

RULE = Rule(
    id="Y104",
    name="yaml-anchor",
    severity=Severity.ERROR,
    summary="Anchors, aliases, merge keys and second documents are not allowed.",
    why=(
        "Readers of YAML disagree about what a merge means: some lists are replaced, some are joined, "
        "and a rule that reuses another may end with more than its author wrote."
    ),
    bad=base(("  - id: look\n", "  - &look\n    id: look\n")),
    good=base(),
    answers=SHAPE,
)
