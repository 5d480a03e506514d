"""Owns B705 write-without-call-budget."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.domain.policy import Policy
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base
from engine.policy.rules.grants import granted, rules_are_whole


def check(model: Model) -> Iterator[Diagnostic]:
    policy = model.policy_part
    if policy is None or model.policy is None or not rules_are_whole(model):
        return
    budgets = policy.budgets
    if budgets.is_lost("calls") or not budgets.is_written("calls") or budgets.calls.is_lost("per_tool"):
        return
    for name in sorted(granted(model) - set(model.policy.budgets.calls_per_tool)):
        if model.tools[name].kind == "write" and not _capped_by_rules(model.policy, name):
            yield finding(
                "B705",
                budgets.calls.key_place("per_tool"),
                f"the write `{name}` has no cap on how often one Run may call it",
                f"add it: `per_tool: {{{name}: 2}}`",
            )


def _capped_by_rules(policy: Policy, tool: str) -> bool:
    """True if every rule that permits it says how often, without a person, one Run may call it."""
    return all(rule.unattended is not None for rule in policy.rules_of.get(tool, ()) if rule.effect.permits)


RULE = Rule(
    id="B705",
    name="write-without-call-budget",
    severity=Severity.WARNING,
    summary="A write without a per-tool cap.",
    why=(
        "People approve call by call, and tire. How often one Run can need an irreversible effect is "
        "known when the policy is written, so the number belongs in it."
    ),
    bad=base(("per_tool: {borrow_book: 2, hold_book: 3}", "per_tool: {hold_book: 3}")),
    good=base(),
    answers=DECLARED,
    check=check,
)
