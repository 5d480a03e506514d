"""Owns W215 cache-key-incomplete."""

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
        if tool.cache is None or tool.kind != "read":
            continue
        missing = [param for param in tool.params if param not in tool.cache.key]
        if missing:
            key = [*(entry for entry in tool.cache.key if entry in tool.params), *missing]
            key += [entry for entry in tool.cache.key if entry not in tool.params]
            yield finding(
                "W215",
                tool.cache.place("key"),
                f"the cache key of `{name}` leaves out {', '.join(f'`{param}`' for param in missing)}",
                f"name every parameter: `key: [{', '.join(key)}]`",
            )


RULE = Rule(
    id="W215",
    name="cache-key-incomplete",
    severity=Severity.ERROR,
    summary="A parameter is missing from the cache key.",
    why="Two different questions with one key get one answer, and the second is wrong.",
    bad=base(("key: [words, before_year]", "key: [words]")),
    good=base(),
    answers=DECLARED,
    check=check,
)
