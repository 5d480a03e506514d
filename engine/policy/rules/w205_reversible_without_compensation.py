"""Owns W205 reversible-without-compensation."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="W205",
    name="reversible-without-compensation",
    severity=Severity.ERROR,
    summary="The tool is reversible and nothing undoes it.",
    why="Reversible means that the Host can undo it: with which tool, from which arguments, and when.",
    bad=base(
        (
            "    compensate: {tool: release_hold, args: {hold_id: result.hold_id}, on: [run_failed, run_cancelled]}\n",
            "",
        )
    ),
    good=base(),
    answers=DECLARED,
)
