"""Owns E603 citation-older-than-cache."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.policy import CitationsPart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base
from engine.policy.rules.grants import granted


def check(model: Model) -> Iterator[Diagnostic]:
    policy = model.policy_part
    for output in policy.outputs.values() if policy is not None else ():
        if output.citations is not None and output.citations.max_age is not None:
            yield from _caches(model, output.citations, output.citations.max_age)


def _caches(model: Model, citations: CitationsPart, max_age: timedelta) -> Iterator[Diagnostic]:
    for name in sorted(granted(model)):
        tool = model.tools[name]
        if tool.evidence is None or tool.cache is None or tool.evidence.kind not in citations.kinds:
            continue
        if tool.cache.ttl > max_age:
            yield finding(
                "E603",
                citations.place("max_age"),
                f"`{name}` may answer from a cache that is older than a citation may be",
                f"raise `max_age`, or lower the cache ttl of `{name}`",
            )


RULE = Rule(
    id="E603",
    name="citation-older-than-cache",
    severity=Severity.WARNING,
    summary="Citations must be younger than the cache that feeds them.",
    why=(
        "A cached answer keeps the time at which it was first obtained. With a cache that lives longer "
        "than a citation may, reading again does not help and the publication is refused."
    ),
    bad=base(("max_age: 24h}", "max_age: 30m}")),
    good=base(),
    answers=DECLARED,
    check=check,
)
