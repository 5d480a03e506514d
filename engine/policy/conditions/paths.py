"""Owns paths that move one value, as in `bind: state.cart.id`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.domain.conditions import Expr, Index
from engine.domain.types import ValueType
from engine.policy.conditions import facts, operands
from engine.policy.conditions.syntax import At, Member, Name, Scalar, Syntax

if TYPE_CHECKING:
    from engine.policy.conditions.checker import Checker

_HELP = "a path looks like `state.cart.id` or `result.items[0].sku`"


def check_path(checker: Checker, node: Syntax, wanted: ValueType | None) -> Expr | None:
    """The typed path, or None with a fault raised. Optional facts need no `has()`: absent, nothing is moved."""
    expr = _path(checker, node)
    if expr is None or wanted is None or movable(expr.type, wanted):
        return expr
    message = f"`{checker.text}` is {expr.type}, {wanted} is needed"
    return checker.fault("C104", expr.span, message, "name a fact of that type")


def movable(source: ValueType, target: ValueType) -> bool:
    """True if every value of `source` has the shape of `target`."""
    if source.name in operands.LISTS and target.name in operands.LISTS:
        return movable(operands.element(source), operands.element(target))
    if source.name is target.name:
        return True
    return (source.name in operands.NAMES and target.opaque) or operands.comparable(source, target)


def _path(checker: Checker, node: Syntax) -> Expr | None:
    match node:
        case Name() | Member() if _is_plain(node):
            return facts.path(checker, node)
        case At(operand=operand, index=Scalar(value=int())) if _is_plain(operand):
            return _element(checker, node)
        case _:
            return checker.fault("C104", node.span, f"`{checker.text}` is not a path", _HELP)


def _is_plain(node: Syntax) -> bool:
    match node:
        case Name():
            return True
        case Member(operand=operand) | At(operand=operand, index=Scalar()):
            return _is_plain(operand)
        case _:
            return False


def _element(checker: Checker, node: At) -> Expr | None:
    operand, index = _path(checker, node.operand), checker.check(node.index)
    if operand is None or index is None:
        return None
    if operand.type.name not in operands.LISTS:
        return checker.fault("C104", node.span, f"`{checker.shown(operand.span)}` is not a list", _HELP)
    return Index(operand, index, operands.element(operand.type), node.span)
