"""Owns Y201 unknown-key."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import SHAPE
from engine.policy.rules.examples import base

RULE = Rule(
    id="Y201",
    name="unknown-key",
    severity=Severity.ERROR,
    summary="A key that the language does not have at this place.",
    why=(
        "An ignored key is a restriction that does nothing. Keys are a closed list at every level; where "
        "a key is near to a known one, the finding says which."
    ),
    bad=base(("    unattended: {because", "    unatended: {because")),
    good=base(),
    answers=SHAPE,
)
