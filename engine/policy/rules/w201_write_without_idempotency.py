"""Owns W201 write-without-idempotency."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="W201",
    name="write-without-idempotency",
    severity=Severity.ERROR,
    summary="A write or hybrid without an idempotency key.",
    why=(
        "Without a key a repeated request is a second effect, and nobody can ask whether the first one "
        "happened."
    ),
    bad=base(("    idempotency: {key: [account, book]}\n", "")),
    good=base(),
    answers=DECLARED,
)
