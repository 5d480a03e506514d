"""Owns W216 shared-cache-of-private-data."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="W216",
    name="shared-cache-of-private-data",
    severity=Severity.ERROR,
    summary="A shared cache would hold data that belongs to one principal.",
    why="What one principal was allowed to read, another would be handed without a decision.",
    bad=base(("key: [words, before_year]}", "key: [words, before_year], scope: shared}")),
    good=base(("key: [words, before_year]}", "key: [words, before_year], scope: run}")),
    answers=DECLARED,
)
