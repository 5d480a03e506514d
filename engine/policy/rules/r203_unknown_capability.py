"""Owns R203 unknown-capability."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base

RULE = Rule(
    id="R203",
    name="unknown-capability",
    severity=Severity.ERROR,
    summary="The capability is not declared.",
    why=(
        "What a capability grants is derived from the rules that need it. A rule that needs one that "
        "does not exist can never match."
    ),
    bad=base(("needs: [archive]", "needs: [archives]")),
    good=base(),
    answers=NAMES,
)
