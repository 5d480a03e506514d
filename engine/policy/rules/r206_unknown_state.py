"""Owns R206 unknown-state."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base

RULE = Rule(
    id="R206",
    name="unknown-state",
    severity=Severity.ERROR,
    summary="The state slice or field is not declared.",
    why=(
        "App state is owned by the application and typed here. A binding to a field that does not exist "
        "would leave the argument empty."
    ),
    bad=base(("bind: state.account.id", "bind: state.account.owner")),
    good=base(),
    answers=NAMES,
)
