"""Owns L002 suppression-without-reason."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="L002",
    name="suppression-without-reason",
    severity=Severity.ERROR,
    summary="An ignore comment without a reason and an end date, or for a rule that cannot be ignored.",
    why=(
        "An exception that says neither why nor until when stays for ever. S301, S303, M404, M405, P205, "
        "P210, P211, W207, W208, I901 and I903 cannot be ignored in a file: only `agentctl.yaml` can "
        "lower them, with an owner and an end date."
    ),
    bad=base(("mini-2025-08-07}]", "mini}] # agentctl: ignore[X803]")),
    good=base(("mini-2025-08-07}]", 'mini}] # agentctl: ignore[X803] because="on trial" until=2999-12-31')),
    answers=DECLARED,
)
