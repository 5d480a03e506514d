"""Owns E604 prose-output-without-citations."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    policy = model.policy_part
    for name, output in policy.outputs.items() if policy is not None else ():
        prose = any(field.type == "rich_text" for field in output.fields.values())
        if prose and output.citations is None and not output.is_lost("citations"):
            yield finding(
                "E604",
                output.here,
                f"output `{name}` is prose and has no citation rule",
                "add `citations: {kinds: [KIND], min: 1}`, or `{kinds: [], min: 0}` to say it on purpose",
            )


RULE = Rule(
    id="E604",
    name="prose-output-without-citations",
    severity=Severity.WARNING,
    summary="A rich_text output with no citation rule.",
    why=(
        "The Host cannot judge whether prose is right; it can refuse prose that cites nothing. Whoever "
        "does not want that says so with `min: 0`."
    ),
    bad=base(("    citations: {kinds: [page, letter], min: 1, max_age: 24h}\n", ""), (", cites: true", "")),
    good=base(),
    answers=DECLARED,
    check=check,
)
