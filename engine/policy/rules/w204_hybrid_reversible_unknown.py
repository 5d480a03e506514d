"""Owns W204 hybrid-reversible-unknown."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="W204",
    name="hybrid-reversible-unknown",
    severity=Severity.ERROR,
    summary="A hybrid does not say whether it can be undone.",
    why=(
        "A hybrid is a tool that observes and changes, or changes for a while. What the Host may do by "
        "itself depends on whether it can be undone, so it is stated."
    ),
    bad=base(("    reversible: true\n", "")),
    good=base(),
    answers=DECLARED,
)
