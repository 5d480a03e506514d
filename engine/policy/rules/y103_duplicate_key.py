"""Owns Y103 duplicate-key."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import SHAPE
from engine.policy.rules.examples import base

RULE = Rule(
    id="Y103",
    name="duplicate-key",
    severity=Severity.ERROR,
    summary="One mapping has the same key twice.",
    why=(
        "Readers of YAML keep one of the two without a word, most of them the last. Of two `roles:` "
        "lists, which one counts would be an accident."
    ),
    bad=base(("owner: library\n", "owner: library\nowner: desk\n")),
    good=base(),
    answers=SHAPE,
)
