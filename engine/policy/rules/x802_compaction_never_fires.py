"""Owns X802 compaction-never-fires."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    context = model.policy_part.context if model.policy_part is not None else None
    if context is None or context.compact is None or context.max_input_tokens is None:
        return
    if context.compact.at_tokens >= context.max_input_tokens:
        yield finding(
            "X802",
            context.compact.place("at_tokens"),
            f"compaction at {context.compact.at_tokens} tokens never happens: the context ends at "
            f"{context.max_input_tokens}",
            "lower `at_tokens` below `max_input_tokens`",
        )


RULE = Rule(
    id="X802",
    name="compaction-never-fires",
    severity=Severity.WARNING,
    summary="at_tokens is not below max_input_tokens.",
    why=(
        "Compaction that is set above the size of the context never runs; instead the Host has to leave "
        "messages out, which the author meant to avoid."
    ),
    bad=base(("at_tokens: 45000", "at_tokens: 65000")),
    good=base(),
    answers=DECLARED,
    check=check,
)
