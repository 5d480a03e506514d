"""Owns W207 unattended-write."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    tools = model.tools
    for rule in model.policy_part.permissions if model.policy_part is not None else ():
        if rule.effect != "allow" or rule.unattended is not None or rule.is_lost("unattended"):
            continue
        changes = [name for name in rule.tools if name in tools and tools[name].kind != "read"]
        for name in changes[:1]:
            yield finding(
                "W207",
                rule.place("effect"),
                f"`{name}` is a {tools[name].kind} and rule `{rule.id}` allows it with no human",
                "use `effect: ask`, or state `unattended: {because, max_per_run}`",
            )


RULE = Rule(
    id="W207",
    name="unattended-write",
    severity=Severity.ERROR,
    summary="A write is allowed without a human and without saying why.",
    why=(
        "Letting a write run without anybody looking is a decision. It is written down with its reason and "
        "its cap, and the receipt names the rule in the place of an approver."
    ),
    bad=base(('    unattended: {because: "Lapses by itself after a day", max_per_run: 3}\n', "")),
    good=base(),
    answers=DECLARED,
    suppressible=False,
    check=check,
)
