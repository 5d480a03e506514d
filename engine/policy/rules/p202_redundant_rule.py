"""Owns P202 redundant-rule."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.policy import RulePart
from engine.policy.model import Model
from engine.policy.nodes import data
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base
from engine.policy.solver import opposite
from engine.policy.written import Written, WrittenRule, written


def check(model: Model) -> Iterator[Diagnostic]:
    known = written(model)
    if known is None:
        return
    rules = [
        rule for rule in known.rules if rule.overlay is None and rule.whole and not known.is_impossible(rule)
    ]
    redundant: set[int] = set()
    for rule in reversed(rules):
        wider = next(
            (each for each in _candidates(known, rule) if _covers(known, each, rule, redundant)), None
        )
        if wider is not None:
            redundant.add(id(rule))
            yield finding(
                "P202",
                rule.part.place("id"),
                f"{rule.named} adds nothing: {wider.named} (line {wider.part.here.line}) always covers it",
                "delete the narrower rule, or make them differ",
            )


def _candidates(known: Written, rule: WrittenRule) -> Iterator[WrittenRule]:
    """Rules with the same effect that match every tool of this one."""
    first = min(rule.tools, default=None)
    for other in known.rules_of(first) if first is not None else ():
        alike = other.overlay is None and other.effect == rule.effect
        if other is not rule and alike and rule.tools <= other.tools:
            yield other


def _covers(known: Written, wider: WrittenRule, rule: WrittenRule, redundant: set[int]) -> bool:
    if id(wider) in redundant or not wider.whole or not _asks_no_less(wider.part, rule.part):
        return False
    return all(
        known.impossible(rule.matches, opposite(wider.matches), tool=tool) for tool in sorted(rule.tools)
    )


def _asks_no_less(wider: RulePart, narrower: RulePart) -> bool:
    """True if the narrower rule asks for nothing that the wider one does not ask for too."""
    asked = {(item.state, item.same_version_as, item.max_age) for item in wider.fresh}
    if any((item.state, item.same_version_as, item.max_age) not in asked for item in narrower.fresh):
        return False
    if wider.unattended is not None:
        return False
    return _said(wider, "approval") == _said(narrower, "approval")


def _said(part: RulePart, key: str) -> object:
    entry = part.node.entries.get(key)
    return data(entry.value) if entry is not None else None


RULE = Rule(
    id="P202",
    name="redundant-rule",
    severity=Severity.WARNING,
    summary="Another rule with the same effect always covers it.",
    why=(
        "Permissions add up, so a rule inside another one changes nothing: whoever edits the narrower rule "
        "to take something away takes nothing away."
    ),
    bad=base(
        (
            "  - id: archive\n    effect: allow",
            "  - id: look-in-main\n    effect: allow\n    roles: [reader]\n    tools: [read_page]\n"
            "    when: \"task.branch == 'main'\"\n  - id: archive\n    effect: allow",
        )
    ),
    good=base(
        (
            "  - id: archive\n    effect: allow",
            "  - id: page-in-main\n    effect: require\n    roles: [reader]\n    tools: [read_page]\n"
            "    when: \"task.branch == 'main'\"\n"
            "    approval: {by: {roles: [librarian]}, expires: 10m}\n  - id: archive\n    effect: allow",
        )
    ),
    answers=CONDITION,
    check=check,
)
