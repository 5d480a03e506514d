"""Owns W209 weak-idempotency-key."""

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
    for name, tool in model.tools.items():
        part = tool.idempotency
        if part is not None and part.key and tool.exposed == "model" and not _has_host_fact(tool, part.key):
            yield finding(
                "W209",
                part.place("key"),
                f"the idempotency key of `{name}` has only what the model says",
                f"add a Host fact: `key: [run.id, {', '.join(part.key)}]`",
            )


def _has_host_fact(tool: ToolPart, key: list[str]) -> bool:
    """A dotted entry is a fact; a parameter is one if the Host fills it in."""
    return any(
        "." in entry or entry not in tool.params or tool.params[entry].bind is not None for entry in key
    )


RULE = Rule(
    id="W209",
    name="weak-idempotency-key",
    severity=Severity.ERROR,
    summary="The idempotency key has no Host fact.",
    why=(
        "Two Runs, or two principals, whose models say the same would share one key, and the second request "
        "would be taken for a repetition of the first."
    ),
    bad=base(("key: [run.id, book]", "key: [book]")),
    good=base(),
    answers=DECLARED,
    check=check,
)
