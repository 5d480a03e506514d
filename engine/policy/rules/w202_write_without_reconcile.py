"""Owns W202 write-without-reconcile."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="W202",
    name="write-without-reconcile",
    severity=Severity.ERROR,
    summary="A write or hybrid without a way to find out what happened.",
    why=(
        "An answer that got lost leaves an unknown effect. A probe, or a person who is told where to look, "
        "settles it; without either the Run cannot end."
    ),
    bad=base(('    reconcile: {manual: "Look at the shelf of held books"}\n', "")),
    good=base(),
    answers=DECLARED,
)
