"""Owns M403 self-reported-status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from engine.domain.diagnostics import Confidence, Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.types import TypePart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import WORDING
from engine.policy.rules.examples import base

_CLAIMS: Final = frozenset(
    """
    done is_done all_done task_done completed is_completed is_complete task_completed task_complete completed_ok
    finished is_finished success succeeded successful is_success was_successful ok verified is_verified
    confirmed is_confirmed executed was_executed resolved_ok sent was_sent delivered validated
    answer_complete
    """.split()  # noqa: SIM905 - forty quoted words would be harder to read
)
_OUTCOMES: Final = frozenset({"status", "outcome", "result", "result_status", "task_status", "exit_status"})
_WORKED: Final = frozenset({"success", "succeeded", "successful", "ok", "worked", "passed"})
_FAILED: Final = frozenset({"failure", "failed", "error", "unsuccessful"})


def check(model: Model) -> Iterator[Diagnostic]:
    for tool in model.tools.values():
        if tool.exposed == "model" and tool.kind != "read":
            yield from _claims({name: part for name, part in tool.params.items() if part.bind is None})
    for output in model.policy_part.outputs.values() if model.policy_part is not None else ():
        yield from _claims(output.fields)


def _claims(params: Mapping[str, TypePart]) -> Iterator[Diagnostic]:
    for name, part in params.items():
        if _is_claim(name, part):
            yield finding(
                "M403",
                part.here,
                f"`{name}` asks the model what happened or whether it is done",
                "delete the parameter: the receipt says it",
            )


def _is_claim(name: str, part: TypePart) -> bool:
    """A status that the model sets, such as open or closed, is no claim; success or failure is one."""
    if part.type == "bool":
        return name in _CLAIMS
    values = {value.lower() for value in part.values or ()}
    return name in _OUTCOMES and bool(values & _WORKED) and bool(values & _FAILED)


RULE = Rule(
    id="M403",
    name="self-reported-status",
    severity=Severity.WARNING,
    summary="A parameter asks the model what happened or whether it is done.",
    why=(
        "What happened is in the receipts, whether it is over in the gates. A parameter for it collects "
        "claims, and sooner or later somebody reads them as facts."
    ),
    bad=base(("note: {type: text, max_len: 300, required: false}", "completed: {type: bool}")),
    good=base(
        (
            "note: {type: text, max_len: 300, required: false}",
            "status: {type: enum, values: [open, closed]}",
        )
    ),
    answers=WORDING,
    confidence=Confidence.LIKELY,
    check=check,
)
