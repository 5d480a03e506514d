"""Owns the condition language: text and an environment to a checked condition, or to its faults."""

from __future__ import annotations

from engine.domain.conditions import Condition, ValuePath
from engine.domain.types import ValueType
from engine.policy.conditions.checker import Checker
from engine.policy.conditions.environment import (
    APPROVE_ROOTS,
    BASE_ROOTS,
    GATE_ROOTS,
    RESULT_ROOTS,
    RULE_ROOTS,
    Environment,
    ParamShape,
    ToolShape,
)
from engine.policy.conditions.evaluator import compile_read, compile_test
from engine.policy.conditions.footprint import footprint
from engine.policy.conditions.parser import parse
from engine.policy.conditions.paths import check_path
from engine.policy.conditions.presence import NOTHING, proved
from engine.policy.conditions.syntax import Fault, SyntaxFault
from engine.policy.conditions.values import parse_decimal, parse_duration, parse_timestamp

__all__ = [
    "APPROVE_ROOTS",
    "BASE_ROOTS",
    "GATE_ROOTS",
    "RESULT_ROOTS",
    "RULE_ROOTS",
    "Environment",
    "Fault",
    "ParamShape",
    "ToolShape",
    "compile_condition",
    "compile_value",
    "parse_decimal",
    "parse_duration",
    "parse_timestamp",
]


def compile_condition(
    text: str, env: Environment, *, present: frozenset[str] = NOTHING
) -> tuple[Condition | None, list[Fault]]:
    """The condition, and everything that is wrong with it, in the order of the text.

    There is a condition whenever no fault is an error (`Fault.warning`). `present` are fact paths known to be
    there: for an `unless`, the `Condition.present` of the `when` beside it.
    """
    checker = Checker(text, env, present)
    try:
        expr = checker.condition(parse(text))
    except SyntaxFault as stop:
        return None, [stop.fault]
    faults = sorted(dict.fromkeys(checker.faults), key=lambda fault: (fault.span, fault.code))
    if expr is None or not all(fault.warning for fault in faults):
        return None, faults
    reads = footprint(expr)
    condition = Condition(
        text=text,
        expr=expr,
        reads=reads,
        args_read=frozenset(path.split(".")[1] for path in reads if path.startswith("args.")),
        present=frozenset(path for path in proved(expr, True) if "#" not in path),
        test=compile_test(expr),
    )
    return condition, faults


def compile_value(
    text: str, env: Environment, wanted: ValueType | None = None
) -> tuple[ValuePath | None, list[Fault]]:
    """The path of one value, such as `state.cart.id`, and its faults; with `wanted`, of a type that fits it.

    A path has names, fields and elements by number, nothing else; free text may be moved by it.
    """
    checker = Checker(text, env, NOTHING)
    try:
        expr = check_path(checker, parse(text), wanted)
    except SyntaxFault as stop:
        return None, [stop.fault]
    if expr is None or checker.faults:
        return None, checker.faults
    return ValuePath(text, expr, expr.type, footprint(expr), compile_read(expr)), []
