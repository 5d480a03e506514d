"""Owns W206 cache-on-non-read."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="W206",
    name="cache-on-non-read",
    severity=Severity.ERROR,
    summary="Only reads may be cached.",
    why="A cached answer of a write is an effect that did not happen and a receipt that says it did.",
    bad=base(
        ("    effects: [book.borrow]\n", "    effects: [book.borrow]\n    cache: {ttl: 1m, key: [book]}\n")
    ),
    good=base(),
    answers=DECLARED,
)
