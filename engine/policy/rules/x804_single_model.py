"""Owns X804 single-model."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    policy = model.policy_part
    if policy is None or not policy.is_written("model"):
        return
    part = policy.model
    if not part.fallbacks and not part.is_lost("fallbacks") and part.is_written("primary"):
        yield finding(
            "X804",
            part.key_place("primary"),
            "there is no model to fall back on when this one does not answer",
            "add `fallbacks: [{id: …}]`, or leave it: the Run then parks until the model answers",
        )


RULE = Rule(
    id="X804",
    name="single-model",
    severity=Severity.NOTE,
    summary="No fallback.",
    why="With one model, an outage of its provider stops every Run. That may well be what is wanted.",
    bad=base(("  fallbacks: [{id: openai/gpt-5-mini-2025-08-07}]\n", "")),
    good=base(),
    answers=DECLARED,
    check=check,
)
