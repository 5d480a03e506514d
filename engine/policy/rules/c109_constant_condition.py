"""Owns C109 constant-condition."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.conditions import Connect, Constant, Expr
from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.policy import BranchPart, RulePart
from engine.policy.model import Model, PlacedCondition
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base
from engine.policy.written import Written, written


def check(model: Model) -> Iterator[Diagnostic]:
    known = written(model)
    if known is None:
        return
    dead = {id(rule.part) for rule in known.rules if known.is_impossible(rule)}
    for placed in model.conditions.values():
        if id(placed.part) not in dead and "result" not in placed.environment.roots:
            yield from _constant(known, placed)


def _constant(known: Written, placed: PlacedCondition) -> Iterator[Diagnostic]:
    condition = placed.condition
    answer = _answer(known, condition.expr)
    if answer == "false" and isinstance(placed.part, BranchPart) and len(_branches(known, placed.part)) == 1:
        return
    if answer is not None:
        yield finding(
            "C109",
            placed.part.place_within(0, len(condition.text), placed.key),
            f"the condition is always {answer}",
            _help(placed, answer),
        )
        return
    for part in _operands(condition.expr):
        answer = _answer(known, part)
        if answer is not None:
            shown = condition.text[part.span.start : part.span.end]
            yield finding(
                "C109",
                placed.part.place_within(part.span.start, part.span.end, placed.key),
                f"`{shown}` is always {answer}",
                "delete it, or fix the operator",
            )


def _branches(known: Written, part: BranchPart) -> list[BranchPart]:
    """The branches of the capability that a branch belongs to."""
    for capability in known.part.capabilities.values():
        if any(branch is part for branch in capability.approve):
            return list(capability.approve)
    return []


def _help(placed: PlacedCondition, answer: str) -> str:
    kept_out = (answer == "true") == (placed.key == "unless")
    if isinstance(placed.part, RulePart) and kept_out:
        return "fix the condition: the rule can never match"
    return f"delete `{placed.key}`, or fix the operator"


def _operands(expr: Expr) -> Iterator[Expr]:
    for operand in expr.operands if isinstance(expr, Connect) else ():
        yield operand
        yield from _operands(operand)


def _answer(known: Written, expr: Expr) -> str | None:
    if isinstance(expr, Constant):
        return "true" if expr.value else "false"
    constant = known.solver.constant(expr, known.anywhere)
    return None if constant is None else str(constant).lower()


RULE = Rule(
    id="C109",
    name="constant-condition",
    severity=Severity.WARNING,
    summary="The condition, or a part of it, is always true or always false.",
    why=(
        "A condition that has one answer asks nothing: the rule looks as if it depended on a fact and does "
        "not. Unknown is not counted here; where a fact is missing, conditions restrict."
    ),
    bad=base(("<= limits.fine_cap_minor", "<= limits.fine_cap_minor || size(state.account.loans) >= 0")),
    good=base(("<= limits.fine_cap_minor", "<= limits.fine_cap_minor || size(state.account.loans) == 0")),
    answers=CONDITION,
    check=check,
)
