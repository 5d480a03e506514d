"""Owns R210 file-not-found."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base

RULE = Rule(
    id="R210",
    name="file-not-found",
    severity=Severity.ERROR,
    summary="A referenced file does not exist.",
    why=(
        "A tools file, an overlay, a prompt or a test that is not there is a fault of the policy, not "
        "something to go on without."
    ),
    bad=base(("tests: [loans.test.yaml]", "tests: [loan.test.yaml]")),
    good=base(),
    answers=NAMES,
)
