"""Owns K303 capability-grants-nothing."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base
from engine.policy.rules.grants import rules_are_whole
from engine.policy.written import Written, written


def check(model: Model) -> Iterator[Diagnostic]:
    known = written(model)
    if known is None or not rules_are_whole(model) or not all(rule.whole for rule in known.rules):
        return
    used = _used(known)
    for name in known.part.capabilities:
        if name not in used:
            yield finding(
                "K303",
                known.part.key_place("capabilities", name),
                f"no rule needs the capability `{name}`, so it grants nothing",
                f"add `needs: [{name}]` to a rule, or delete the capability",
            )


def _used(known: Written) -> set[str]:
    """Capabilities that a rule needs, or that one that permits reads."""
    found = {name for rule in known.rules for name in rule.part.needs}
    for rule in known.rules:
        for condition in (rule.when, rule.unless) if rule.permits else ():
            reads = condition.reads if condition is not None else ()
            found.update(path.split(".")[1] for path in reads if path.startswith("grant."))
    return found


RULE = Rule(
    id="K303",
    name="capability-grants-nothing",
    severity=Severity.ERROR,
    summary="No rule needs this capability.",
    why=(
        "What a capability grants is derived from the rules that need it. One that no rule needs is "
        "requested, approved by a person, and changes nothing."
    ),
    bad=base(
        ('    needs: [archive]\n    when: "args.room == grant.archive.room"\n', ""),
    ),
    good=base(),
    answers=DECLARED,
    check=check,
)
