"""Owns W214 cache-outlives-source."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.nodes import data
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    sources = model.policy_part.sources if model.policy_part is not None else {}
    for name, tool in model.tools.items():
        use = sources.get(tool.source or "")
        if tool.cache is None or use is None or use.max_age is None or tool.kind != "read":
            continue
        if tool.cache.ttl > use.max_age:
            shown = data(use.node.entries["max_age"].value)
            yield finding(
                "W214",
                tool.cache.place("ttl"),
                f"the cache of `{name}` outlives the `max_age` {shown} of its source `{tool.source}`",
                f"lower it: `ttl: {shown}`",
            )


RULE = Rule(
    id="W214",
    name="cache-outlives-source",
    severity=Severity.WARNING,
    summary="The cache `ttl` is longer than the `max_age` of the source.",
    why="The policy says how old a reading of the source may be. A cache that keeps it longer says otherwise.",
    bad=base(
        ("shelf: {usable_when: [available, degraded]}", "shelf: {usable_when: [available], max_age: 30m}")
    ),
    good=base(
        ("shelf: {usable_when: [available, degraded]}", "shelf: {usable_when: [available], max_age: 1h}")
    ),
    answers=DECLARED,
    check=check,
)
