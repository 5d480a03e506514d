"""Owns X803 unpinned-model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.policy import ModelPart, ModelUsePart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

_PINNED: Final = re.compile(
    r"20\d\d-?[01]\d-?[0-3]\d"  # a date
    r"|[-@]\d{3,4}(?![\d.])(?![bk])"  # a revision: -0613, -002, -2411
    r"|@sha256:[0-9a-f]{12,}"
)


def check(model: Model) -> Iterator[Diagnostic]:
    policy = model.policy_part
    for use in _uses(policy.model) if policy is not None and policy.is_written("model") else ():
        if use.is_written("id") and not _PINNED.search(use.id):
            yield finding(
                "X803",
                use.place("id"),
                f"`{use.id}` names no dated snapshot of the model",
                "write the id with its date or revision, as in openai/gpt-5-mini-2025-08-07",
            )


def _uses(part: ModelPart) -> list[ModelUsePart]:
    return [part.primary, *part.fallbacks, *([part.fast] if part.fast is not None else [])]


RULE = Rule(
    id="X803",
    name="unpinned-model",
    severity=Severity.WARNING,
    summary="A model alias without a date or revision.",
    why=(
        "An alias moves to another model without a change of the policy: yesterday's tests and records "
        "say nothing about today's proposals."
    ),
    bad=base(("openai/gpt-5-mini-2025-08-07", "openai/gpt-5-mini")),
    good=base(),
    answers=DECLARED,
    check=check,
)
