"""Owns C107 substring-test."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base

RULE = Rule(
    id="C107",
    name="substring-test",
    severity=Severity.ERROR,
    summary="Substring tests are not part of the language.",
    why=(
        "`startsWith('src')` also lets `src-old/` and `src/../secret` through. Paths, addresses and "
        "links have typed tests that compare whole components."
    ),
    bad=base(
        ('item: {type: id, pattern: "[A-Z]{2}-[0-9]{4}", max_len: 7}', "item: {type: path}"),
        (
            "args.room == grant.archive.room",
            "args.room == grant.archive.room && args.item.startsWith('maps')",
        ),
    ),
    good=base(
        ('item: {type: id, pattern: "[A-Z]{2}-[0-9]{4}", max_len: 7}', "item: {type: path}"),
        ("args.room == grant.archive.room", "args.room == grant.archive.room && under(args.item, 'maps/')"),
    ),
    answers=CONDITION,
)
