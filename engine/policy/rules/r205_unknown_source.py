"""Owns R205 unknown-source."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base

RULE = Rule(
    id="R205",
    name="unknown-source",
    severity=Severity.ERROR,
    summary="The source is not declared.",
    why=(
        "A source carries trust and a state. A tool that names one that does not exist would be trusted "
        "by accident."
    ),
    bad=base(("    source: vault\n", "    source: vaults\n")),
    good=base(),
    answers=NAMES,
)
