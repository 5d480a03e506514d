"""Owns P204 permitted-never-visible."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Location, Severity
from engine.policy.codes import finding
from engine.policy.documents.base import Part
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base
from engine.policy.solver import opposite, some
from engine.policy.written import Written, WrittenHide, WrittenRule, written


def check(model: Model) -> Iterator[Diagnostic]:
    known = written(model)
    if known is None:
        return
    for tool in known.tools:
        permits = [each for each in known.permits_of(tool) if not known.is_impossible(each)]
        if permits:
            yield from _never_shown(known, tool, permits)


def _never_shown(known: Written, tool: str, permits: list[WrittenRule]) -> Iterator[Diagnostic]:
    rule = permits[0]
    if known.tools[tool].exposed == "host":
        if tool not in rule.part.tools:
            return  # a selector in a permission has its own finding
        message = f"rule `{rule.id}` permits `{tool}`, which is for the Host alone (`exposed: host`)"
        yield finding(
            "P204", rule.place_of(tool), message, "remove it from the rule, or expose it to the model"
        )
        return
    cap = _cap(known, tool)
    if cap is not None:
        message = f"the cap of `{tool}` is 0, and rule `{rule.id}` permits it"
        yield finding("P204", cap, message, "raise the cap, or remove the permission")
        return
    source = known.part.sources.get(known.tools[tool].source or "")
    never = source is not None and source.is_written("usable_when") and not source.usable_when
    if source is not None and never and not source.is_lost("usable_when"):
        message = f"the source of `{tool}` is never usable, and rule `{rule.id}` permits it"
        yield finding("P204", source.place("usable_when"), message, "name a state, or remove the permission")
        return
    hide = _hide(known, tool) if known.read_whole(tool) else None
    if hide is not None:
        message = f"`{hide.part.id}` always hides `{tool}`, which rule `{rule.id}` permits"
        help_ = "narrow the hide with `when`, or remove the permission"
        yield finding("P204", hide.part.place("id"), message, help_)


def _cap(known: Written, tool: str) -> Location | None:
    """Where a budget of the policy or of an overlay says 0."""
    calls: list[Part | None] = [known.part.budgets.calls]
    calls.extend(each.budgets.calls for each in known.model.overlay_parts.values() if each.budgets)
    for part in calls:
        if part is not None and getattr(part, "per_tool", {}).get(tool) == 0:
            return part.place("per_tool", tool)
    return None


def _hide(known: Written, tool: str) -> WrittenHide | None:
    """A hide rule that takes the tool away wherever a rule may permit it."""
    hides = [hide for hide in known.hides if tool in hide.tools]
    if not hides or known.is_shown(tool, with_denies=False):
        return None
    offered = some(rule.may_match for rule in known.permits_of(tool))
    alone = (
        hide
        for hide in hides
        if known.impossible(offered, opposite(hide.hides_surely), tool=tool, offered=True)
    )
    return next(alone, hides[0])


RULE = Rule(
    id="P204",
    name="permitted-never-visible",
    severity=Severity.ERROR,
    summary="A rule permits a tool that can never be shown.",
    why=(
        "What is not in the contract cannot be called, so the permission is dead: a cap of 0, a hide without "
        "a condition, a source that is never usable, or a tool that only the Host calls."
    ),
    bad=base(
        (
            "state:\n",
            "visibility:\n  hide:\n    - {id: no-holds, tools: [hold_book]}\nstate:\n",
        )
    ),
    good=base(
        (
            "state:\n",
            "visibility:\n  hide:\n    - {id: no-holds, tools: [hold_book], when: \"task.branch == 'main'\"}\nstate:\n",
        )
    ),
    answers=CONDITION,
    check=check,
)
