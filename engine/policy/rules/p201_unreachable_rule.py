"""Owns P201 unreachable-rule."""

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
        lost = {
            tool: known.swallowed[id(rule), tool]
            for tool in sorted(rule.tools)
            if (id(rule), tool) in known.swallowed and tool not in known.never_permitted
        }
        yield from _lost(rule, lost)


def _lost(rule: WrittenRule, lost: dict[str, WrittenRule]) -> Iterator[Diagnostic]:
    if lost and len(lost) == len(rule.tools):
        deny = next(iter(lost.values()))
        message = f"{rule.named} can never permit anything: {_wins(deny)}"
        yield finding("P201", rule.part.place("id"), message, _help(deny))
        return
    for tool, deny in lost.items():
        message = f"{rule.named} can never permit `{tool}`: {_wins(deny)}"
        yield finding("P201", rule.place_of(tool), message, _help(deny))


def _wins(deny: WrittenRule) -> str:
    place = deny.part.here
    return f"deny `{deny.id}` ({place.file}:{place.line}) always wins"


def _help(deny: WrittenRule) -> str:
    return f"a deny has no exceptions elsewhere: add the exception to the `unless` of `{deny.id}`"


RULE = Rule(
    id="P201",
    name="unreachable-rule",
    severity=Severity.ERROR,
    summary="A deny always wins over this rule.",
    why=(
        "Any deny decides, and neither order nor being more specific matters. A permission that a deny "
        "always covers looks like an exception and is none."
    ),
    bad=base(
        ('    when: "principal.suspended"\n', ""),
        ('effect: deny\n    tools: ["kind:write", "kind:hybrid"]', "effect: deny\n    tools: [borrow_book]"),
    ),
    good=base(),
    answers=CONDITION,
    check=check,
)
