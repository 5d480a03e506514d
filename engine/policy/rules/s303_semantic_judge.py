"""Owns S303 semantic-judge."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import SHAPE
from engine.policy.rules.examples import base

RULE = Rule(
    id="S303",
    name="semantic-judge",
    severity=Severity.ERROR,
    summary="A key asks a model or a pattern to judge meaning.",
    why=(
        "Whether an answer is complete, polite or supported is a judgement. Nothing that owns an effect "
        "may depend on one: a review is a step that somebody owns, whose verdict arrives as app state "
        "and can be cited."
    ),
    bad=base(("    - output_committed: answer", '    - llm_judge: "is the answer complete?"')),
    good=base(),
    answers=SHAPE,
    suppressible=False,
)
