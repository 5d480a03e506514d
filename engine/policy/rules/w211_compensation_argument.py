"""Owns W211 compensation-argument."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="W211",
    name="compensation-argument",
    severity=Severity.ERROR,
    summary="A compensation passes a value that does not exist or does not fit.",
    why="A compensation runs when a Run has failed, which is a bad time to learn that it undoes nothing.",
    bad=base(("hold_id: result.hold_id", "hold_id: result.holdid")),
    good=base(),
    answers=DECLARED,
)
