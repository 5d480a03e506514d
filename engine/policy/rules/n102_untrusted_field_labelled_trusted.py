"""Owns N102 untrusted-field-labelled-trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from engine.domain.diagnostics import Confidence, Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.types import FieldPart, TypePart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import WORDING
from engine.policy.rules.examples import base

_OF_MESSAGES: Final = frozenset(
    {"author", "bcc", "body", "cc", "comment", "content", "from", "from_", "message", "recipient", "reply_to",
     "sender", "subject", "text", "to"}
)  # fmt: skip


def check(model: Model) -> Iterator[Diagnostic]:
    for tool in model.tools.values():
        if tool.result is not None:
            yield from _record(tool.result)


def _record(fields: Mapping[str, FieldPart]) -> Iterator[Diagnostic]:
    is_message = len(_OF_MESSAGES.intersection(fields)) >= 2
    for name, field in fields.items():
        if (
            is_message
            and field.trust == "trusted"
            and _inner(field).type in ("text", "rich_text", "email", "url")
        ):
            yield finding(
                "N102",
                field.place("trust"),
                f"`{name}` is part of a message that somebody else wrote, and is marked trusted",
                "mark it `trust: untrusted`",
            )
        yield from _record(_inner(field).fields or {})


def _inner(part: TypePart) -> TypePart:
    return _inner(part.of) if isinstance(part.of, TypePart) else part


_RESULT: Final = """\
    result:
      sender: {{type: email, trust: {trust}}}
      subject: {{type: text, trust: untrusted}}
    evidence: {{kind: letter"""
_GUARD: Final = (
    'when: "principal.suspended"',
    'when: "principal.suspended || (run.read_untrusted && !tool.reversible)"',
)

RULE = Rule(
    id="N102",
    name="untrusted-field-labelled-trusted",
    severity=Severity.WARNING,
    summary="A sender, address or body of a message is marked trusted.",
    why=(
        "A trusted service returns what strangers wrote. Who sent a message and what it says is theirs, "
        "however well the mail server is run."
    ),
    bad=base(("    evidence: {kind: letter", _RESULT.format(trust="trusted")), _GUARD),
    good=base(("    evidence: {kind: letter", _RESULT.format(trust="untrusted")), _GUARD),
    answers=WORDING,
    confidence=Confidence.LIKELY,
    check=check,
)
