"""Owns R202 unknown-role."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base

RULE = Rule(
    id="R202",
    name="unknown-role",
    severity=Severity.ERROR,
    summary="The role is not declared.",
    why="Roles are a closed list of the policy. A rule for a role that nobody can have never matches.",
    bad=base(
        (
            "  - id: hold\n    effect: allow\n    roles: [reader]",
            "  - id: hold\n    effect: allow\n    roles: [reader, readers]",
        )
    ),
    good=base(),
    answers=NAMES,
)
