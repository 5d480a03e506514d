"""Owns M405 recovery-from-model-text."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Location, Severity
from engine.policy.codes import finding
from engine.policy.documents.tools import ToolPart
from engine.policy.documents.types import TypePart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    for name, tool in model.tools.items():
        for place, param, what in _recovery(tool):
            if param in tool.params and tool.params[param].bind is None and _is_prose(tool.params[param]):
                yield finding(
                    "M405",
                    place,
                    f"{what} of `{name}` depends on `{param}`, which is what the model wrote",
                    "use Host facts and typed arguments: run.id, call.id, ids, enums",
                )


def _recovery(tool: ToolPart) -> Iterator[tuple[Location, str, str]]:
    """(place, parameter, what reads it) of everything that recovery goes by."""
    if tool.idempotency is not None:
        for at, entry in enumerate(tool.idempotency.key):
            yield tool.idempotency.place("key", at), entry, "the idempotency key"
    if tool.reconcile is not None:
        for name, path in tool.reconcile.args.items():
            yield tool.reconcile.place("args", name), path.removeprefix("args."), "the probe"
    if tool.compensate is not None:
        for name, path in tool.compensate.args.items():
            yield tool.compensate.place("args", name), path.removeprefix("args."), "the compensation"


def _is_prose(part: TypePart) -> bool:
    if isinstance(part.of, TypePart):
        return _is_prose(part.of)
    return part.type in ("text", "rich_text") or any(_is_prose(each) for each in (part.fields or {}).values())


RULE = Rule(
    id="M405",
    name="recovery-from-model-text",
    severity=Severity.ERROR,
    summary="Idempotency, reconciliation or compensation depends on what the model wrote.",
    why=(
        "The same call worded differently is a different key, so the repetition goes through. Recovery "
        "goes by what the Host knows and by typed arguments."
    ),
    bad=base(("key: [account, book]", "key: [account, book, note]")),
    good=base(),
    answers=DECLARED,
    suppressible=False,
    check=check,
)
