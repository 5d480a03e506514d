"""Owns P213 impossible-rule."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base
from engine.policy.written import WrittenRule, written


def check(model: Model) -> Iterator[Diagnostic]:
    known = written(model)
    if known is None:
        return
    for rule in known.rules:
        if known.is_impossible(rule):
            yield _impossible(rule)


def _impossible(rule: WrittenRule) -> Diagnostic:
    keys = [key for key in ("when", "unless") if getattr(rule, key) is not None]
    place = rule.part.place(keys[0]) if len(keys) == 1 else rule.part.place("id")
    how = "whatever the facts" if len(keys) == 1 else "`when` and `unless` leave nothing"
    return finding(
        "P213",
        place,
        f"{rule.named} can never match: {how}",
        "fix the condition, or delete the rule",
    )


RULE = Rule(
    id="P213",
    name="impossible-rule",
    severity=Severity.ERROR,
    summary="The rule can never match.",
    why=(
        "A rule that never matches permits nothing or forbids nothing, and reads as if it did. A rule that "
        "only cannot match for some of the tools that it selects is not meant here."
    ),
    bad=base(('when: "principal.suspended"', 'when: "principal.suspended && size(state.account.loans) < 0"')),
    good=base(
        ('when: "principal.suspended"', 'when: "principal.suspended && size(state.account.loans) < 9"')
    ),
    answers=CONDITION,
    check=check,
)
