"""Owns W220 probe-that-cannot-tell."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.tools import ToolPart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    """The compiler finds arguments that do not exist or do not fit; here probes that ask about no call."""
    for name, tool in model.tools.items():
        part = tool.reconcile
        if part is None or part.probe is None or part.is_lost("args") or tool.is_lost("idempotency"):
            continue
        if tool.idempotency is not None and tool.idempotency.key and not _asks_about_the_call(tool):
            yield finding(
                "W220",
                part.key_place("args") if part.is_written("args") else part.place("probe"),
                f"the probe of `{name}` cannot tell: nothing that it is given belongs to this call",
                "pass `idempotency_key` or a part of the key, or settle it by hand with `manual`",
            )


def _asks_about_the_call(tool: ToolPart) -> bool:
    assert tool.reconcile is not None
    assert tool.idempotency is not None
    key = set(tool.idempotency.key) - {"run.id"}
    binds = {tool.params[entry].bind for entry in key if entry in tool.params}
    passed = tool.reconcile.args.values()
    return any(
        path == "idempotency_key" or path.removeprefix("args.") in key or path in binds for path in passed
    )


RULE = Rule(
    id="W220",
    name="probe-that-cannot-tell",
    severity=Severity.ERROR,
    summary="The probe's arguments do not fit, or none of them belongs to the call in question.",
    why=(
        "A probe answers whether this request had its effect. One that is not given the key, or a part of "
        "it, answers about the world in general and confirms what somebody else did."
    ),
    bad=base(
        (
            "{probe: find_loan, args: {key: idempotency_key}",
            "{probe: find_loan, args: {key: principal.id}",
        )
    ),
    good=base(),
    answers=DECLARED,
    check=check,
)
