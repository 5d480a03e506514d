"""Owns W217 hold-without-end."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    for name, tool in model.tools.items():
        hold = tool.holds
        if hold is None or hold.ttl is not None or hold.is_lost("ttl") or tool.is_lost("compensate"):
            continue
        if tool.compensate is not None and "run_finished" in tool.compensate.on:
            continue
        never = " unless something consumes it" if hold.consumed_by is not None else ""
        yield finding(
            "W217",
            tool.key_place("holds"),
            f"the hold of `{name}` never ends{never}: it neither lapses nor is released when the Run ends",
            "add `ttl: 10m`, or `run_finished` to `compensate.on`",
        )


RULE = Rule(
    id="W217",
    name="hold-without-end",
    severity=Severity.ERROR,
    summary="A hold that neither lapses nor is released at the end.",
    why="What was put aside for a Run that is over stays away from everybody else.",
    bad=base(("holds: {ttl: 24h, consumed_by: book.borrow}", "holds: {consumed_by: book.borrow}")),
    good=base(),
    answers=DECLARED,
    check=check,
)
