"""Owns S302 prose-disguised-as-id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.domain.diagnostics import Confidence, Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.types import TypePart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import WORDING
from engine.policy.rules.examples import base

_PROSE: Final = frozenset(
    {"answer", "body", "comment", "content", "description", "details", "explanation", "instructions",
     "message", "note", "notes", "prompt", "query", "question", "reason", "remark", "subject", "summary",
     "text", "title"}
)  # fmt: skip


def check(model: Model) -> Iterator[Diagnostic]:
    for tool in model.tools.values():
        for name, param in tool.params.items():
            if name.split("_")[-1] in _PROSE and param.bind is None and _is_bare_id(param):
                yield finding(
                    "S302",
                    param.here,
                    f"`{name}` sounds like prose and is typed so that conditions can read it",
                    "make it {type: text}, or give the id a `pattern`",
                )


def _is_bare_id(part: TypePart) -> bool:
    inner = part.of if part.type == "list" and isinstance(part.of, TypePart) else part
    return inner.type == "id" and inner.pattern is None and not inner.is_lost("pattern")


RULE = Rule(
    id="S302",
    name="prose-disguised-as-id",
    severity=Severity.WARNING,
    summary="A prose-like parameter is typed so that conditions can read it.",
    why=(
        "Free text is opaque to conditions so that no rule can depend on wording. Calling prose an `id` "
        "opens it again. An id with a pattern is a name that somebody gave out."
    ),
    bad=base(("note: {type: text, max_len: 300, required: false}", "note: {type: id, required: false}")),
    good=base(),
    answers=WORDING,
    confidence=Confidence.LIKELY,
    check=check,
)
