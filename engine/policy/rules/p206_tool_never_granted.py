"""Owns P206 tool-never-granted."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base
from engine.policy.rules.grants import granted, rules_are_whole


def check(model: Model) -> Iterator[Diagnostic]:
    policy = model.policy_part
    if policy is None or not rules_are_whole(model):
        return
    permitted = granted(model)
    for name, tool in model.tools.items():
        if tool.exposed == "model" and name not in permitted and not tool.is_lost("exposed"):
            yield finding(
                "P206",
                tool.here,
                f"no rule of `{policy.id}` allows or asks for `{name}`",
                "grant it, mark it `exposed: host`, or delete it",
            )


RULE = Rule(
    id="P206",
    name="tool-never-granted",
    severity=Severity.WARNING,
    summary="No rule allows or asks for this tool.",
    why=(
        "Nothing is permitted unless a rule says so. A tool that no rule names is forgotten, or meant for "
        "the Host alone, which is said with `exposed: host`."
    ),
    bad=base(("tools: [find_books, read_page]", "tools: [read_page]")),
    good=base(),
    answers=DECLARED,
    check=check,
)
