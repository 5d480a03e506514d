"""Owns W208 unattended-irreversible."""

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
    tools = model.tools
    for rule in model.policy_part.permissions if model.policy_part is not None else ():
        for name in rule.tools if rule.unattended is not None else ():
            tool = tools.get(name)
            if tool is None or not _is_final(tool):
                continue
            yield finding(
                "W208",
                rule.key_place("unattended"),
                f"nobody approves `{name}` under rule `{rule.id}`, and nothing can undo it",
                "use `effect: ask`",
            )


def _is_final(tool: ToolPart) -> bool:
    """A hybrid that does not say whether it can be undone has its own finding."""
    unsaid = tool.kind == "hybrid" and tool.reversible is None
    return not (tool.kind == "read" or tool.reversible or tool.is_lost("reversible") or unsaid)


RULE = Rule(
    id="W208",
    name="unattended-irreversible",
    severity=Severity.ERROR,
    summary="Nobody approves the call and nothing can undo it.",
    why="What can be undone may run first and be looked at later. What cannot is looked at first.",
    bad=base(
        (
            "effect: allow\n    roles: [reader]\n    tools: [hold_book]",
            "effect: allow\n    roles: [reader]\n    tools: [hold_book, borrow_book]\n"
            "    fresh:\n      - {state: account, same_version_as: proposal}",
        )
    ),
    good=base(),
    answers=DECLARED,
    suppressible=False,
    check=check,
)
