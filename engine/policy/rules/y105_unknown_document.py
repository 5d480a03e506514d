"""Owns Y105 unknown-document."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import SHAPE
from engine.policy.rules.examples import base

RULE = Rule(
    id="Y105",
    name="unknown-document",
    severity=Severity.ERROR,
    summary="The first key does not name a known document type.",
    why=(
        "`agentctl:` says what a file is and in which version of the language it is written. A file that "
        "says neither is not guessed at."
    ),
    bad=base(("agentctl: policy/v1", "agentctl: polices/v1")),
    good=base(),
    answers=SHAPE,
)
