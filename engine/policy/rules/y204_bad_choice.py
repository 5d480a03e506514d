"""Owns Y204 bad-choice."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import SHAPE
from engine.policy.rules.examples import base

RULE = Rule(
    id="Y204",
    name="bad-choice",
    severity=Severity.ERROR,
    summary="A word that is not one of the choices.",
    why="A choice that is not known is never taken for another one: `alow` is neither allow nor deny.",
    bad=base(("  - id: look\n    effect: allow", "  - id: look\n    effect: alow")),
    good=base(),
    answers=SHAPE,
)
