"""Owns conditions as the solver reads them: constants filled in, and a name for each thing that is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Final, TypeAlias

from engine.domain.conditions import (
    Call,
    Compare,
    Compute,
    Connect,
    Constant,
    Expr,
    Has,
    History,
    Index,
    ListOf,
    Local,
    Negate,
    Not,
    Quantified,
    Read,
    Select,
    children,
)
from engine.domain.facts import Unknown
from engine.domain.types import TypeName, ValueType
from engine.policy.conditions.footprint import footprint
from engine.policy.conditions.values import converter
from engine.policy.solver.claims import View

Elements = Mapping[int, str]
"""Slot of a variable of `.exists` or `.all` -> the name of the element it stands for."""
NOTHING: Final[Elements] = {}
_NUMBERS: Final = frozenset({TypeName.INT, TypeName.DECIMAL})
_NOT_NEGATIVE: Final = frozenset({"turn", "calls", "cost_minor", "age"})


def grounded(expr: Expr, view: View) -> Expr:
    """The expression with limits and facts of the tool as constants, and bound arguments as what they are."""
    match expr:
        case Read():
            return _read(expr, view)
        case Constant() | Local():
            return expr
        case ListOf(items=items):
            return replace(expr, items=tuple(grounded(item, view) for item in items))
        case Select(operand=operand) | Not(operand=operand) | Negate(operand=operand):
            return replace(expr, operand=grounded(operand, view))
        case Has(operand=operand):
            inner = grounded(operand, view)
            if isinstance(inner, Read | Select):
                return replace(expr, operand=inner)
            return Constant(True, expr.type, expr.span)
        case Index(operand=operand, index=index):
            return replace(expr, operand=grounded(operand, view), index=grounded(index, view))
        case Compare(left=left, right=right) | Compute(left=left, right=right):
            return replace(expr, left=grounded(left, view), right=grounded(right, view))
        case Connect(operands=operands):
            return replace(expr, operands=tuple(grounded(each, view) for each in operands))
        case Quantified(operand=operand, body=body):
            return replace(expr, operand=grounded(operand, view), body=grounded(body, view))
        case Call(args=args):
            return replace(expr, args=tuple(grounded(each, view) for each in args))
        case History(args=args, result=result):
            return replace(
                expr,
                args=tuple(match._replace(value=grounded(match.value, view)) for match in args),
                result=tuple(match._replace(value=grounded(match.value, view)) for match in result),
            )


def _read(expr: Read, view: View) -> Expr:
    root, *rest = expr.path
    if root == "limits" and rest and rest[0] in view.limits:
        return _constant(expr, view.limits[rest[0]])
    if root == "tool" and rest and rest[0] in view.tool:
        return _constant(expr, view.tool[rest[0]])
    argument = view.args.get(rest[0]) if root == "args" and rest else None
    if argument is None:
        return expr
    if argument.bound is not None and isinstance(argument.bound, Read):
        bound = argument.bound
        return Read((*bound.path, *rest[1:]), expr.type if rest[1:] else bound.type, expr.span)
    return expr if rest[1:] else replace(expr, type=argument.type)


def _constant(expr: Read, value: object) -> Expr:
    converted = converter(expr.type)(value)
    return expr if isinstance(converted, Unknown) else Constant(converted, expr.type, expr.span)


# --- names ---------------------------------------------------------------------------------------------


def name_of(expr: Expr, elements: Elements = NOTHING) -> str:
    """Equal for expressions that always have the same value; what it stands for, not where it stands."""
    match expr:
        case Read():
            return str(expr)
        case Constant(value=value):
            return repr(value)
        case Local(slot=slot):
            return elements.get(slot, f"${slot}")
        case Select(operand=operand, field=field):
            return f"{name_of(operand, elements)}.{field}"
        case Index(operand=operand, index=index):
            return f"{name_of(operand, elements)}[{name_of(index, elements)}]"
        case History():
            return _history_name(expr, elements)
        case _:
            return f"{_word(expr)}({', '.join(name_of(each, elements) for each in children(expr))})"


def _word(expr: Expr) -> str:
    match expr:
        case Compare(op=op) | Compute(op=op) | Connect(op=op):
            return op
        case Quantified(kind=kind, variable=variable):
            return f"{kind}${variable.slot}"
        case Call(function=function):
            return function
        case _:
            return type(expr).__name__


def _history_name(expr: History, elements: Elements) -> str:
    given = [f"{match.name}={name_of(match.value, elements)}" for match in (*expr.args, *expr.result)]
    return f"{expr.function}({expr.tool}, {len(expr.args)}, {', '.join(given)}, {expr.outcome}, {expr.param})"


# --- what is known of a term -------------------------------------------------------------------------------


def is_closed(expr: Expr) -> bool:
    """True if no fact is read."""
    if isinstance(expr, Read | History | Local) or (isinstance(expr, Call) and expr.function in _FACTS):
        return False
    return all(is_closed(each) for each in children(expr))


_FACTS: Final = frozenset({"age", "origin", "args_of"})


Bound: TypeAlias = int | Decimal | None


def least(expr: Expr) -> Bound:
    """The value of a number or a duration (in seconds) that it is never below; None if nothing is known."""
    match expr:
        case Call(function="size") | History(function="count" | "last_age"):
            return 0
        case Read(path=("run", name, *_)) if name in _NOT_NEGATIVE or name == "budget_left":
            return 0
        case Read(path=("calls", _)) | Read(path=("state" | "source", _, "age")):
            return 0
        case Constant(value=value) if expr.type.name in _NUMBERS:
            return value  # type: ignore[no-any-return]  # a constant of a number type is a number
        case Negate(operand=operand):
            return _less(0, most(operand))
        case Compute(op="+", left=left, right=right) if expr.type.name in _NUMBERS:
            return _more(least(left), least(right))
        case Compute(op="-", left=left, right=right) if expr.type.name in _NUMBERS:
            return _less(least(left), most(right))
        case _:
            return expr.type.min if expr.type.name is TypeName.INT and _is_given(expr) else None


def most(expr: Expr) -> Bound:
    """The value of a number that it is never above; None if nothing is known."""
    match expr:
        case Call(function="size", args=(operand,)):
            return operand.type.max_items if operand.type.max_items is not None else operand.type.max_len
        case Constant(value=value) if expr.type.name in _NUMBERS:
            return value  # type: ignore[no-any-return]  # a constant of a number type is a number
        case Negate(operand=operand):
            return _less(0, least(operand))
        case Compute(op="+", left=left, right=right) if expr.type.name in _NUMBERS:
            return _more(most(left), most(right))
        case Compute(op="-", left=left, right=right) if expr.type.name in _NUMBERS:
            return _less(most(left), least(right))
        case _:
            return expr.type.max if expr.type.name is TypeName.INT and _is_given(expr) else None


def is_free(expr: Expr) -> bool:
    """True if the term can have any value between its bounds, whatever else is asked of other facts."""
    match expr:
        case Compute(op="+" | "-", left=left, right=right):
            return is_free(left) and is_free(right) and touched(left).isdisjoint(touched(right))
        case Negate(operand=operand):
            return is_free(operand)
        case Compute():
            return False
        case _:
            return True


def _is_given(expr: Expr) -> bool:
    return isinstance(expr, Read | Select | Index | Local)


def _more(one: Bound, two: Bound) -> Bound:
    return None if one is None or two is None else one + two


def _less(one: Bound, two: Bound) -> Bound:
    return None if one is None or two is None else one - two


def touched(expr: Expr) -> frozenset[str]:
    """What an expression depends on: fact paths, and fields of the variables of `.exists` and `.all`."""
    return footprint(expr) | frozenset(_locals(expr))


def _locals(expr: Expr) -> Iterator[str]:
    base = expr
    while isinstance(base, Select):
        base = base.operand
    if isinstance(base, Local):
        yield name_of(expr)
        return
    for each in children(expr):
        yield from _locals(each)


def are_independent(left: Expr, right: Expr) -> bool:
    """True if a comparison can have either answer: different facts, at least one of which can be anything."""
    unbounded = any(least(each) is None and most(each) is None for each in (left, right))
    return unbounded and is_free(left) and is_free(right) and touched(left).isdisjoint(touched(right))


def is_finite(type_: ValueType) -> bool:
    return type_.name is TypeName.BOOL or (type_.name is TypeName.ENUM and bool(type_.values))


def is_supplied(expr: Expr, view: View) -> bool:
    """True if the value depends on an argument that the model has still to supply when the contract is made."""
    if isinstance(expr, Read) and expr.path[0] == "args" and len(expr.path) > 1:
        argument = view.args.get(expr.path[1])
        return argument is None or argument.bound is None
    if isinstance(expr, Call) and expr.function == "args_of":
        return True
    return any(is_supplied(each, view) for each in children(expr))
