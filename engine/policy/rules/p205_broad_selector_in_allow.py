"""Owns P205 broad-selector-in-allow."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="P205",
    name="broad-selector-in-allow",
    severity=Severity.ERROR,
    summary="Allow and ask name tools one by one.",
    why=(
        "A selector that grants would also grant the tool that somebody adds next month. Selectors "
        "restrict, where a new tool that falls under them is safe."
    ),
    bad=base(("tools: [find_books, read_page]", 'tools: ["source:shelf"]')),
    good=base(),
    answers=DECLARED,
    suppressible=False,
)
