"""Owns the four questions about this Run's receipts: done, count, last_age, sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from engine.domain.conditions import Constant, Expr, History, Index, Match, Span
from engine.domain.diagnostics import suggest
from engine.domain.types import Field, Trust, TypeName, ValueType
from engine.policy.conditions import operands
from engine.policy.conditions.arguments import arity, literal
from engine.policy.conditions.environment import BOOL, DURATION, INT, OUTCOMES, STRING, ToolShape, enum
from engine.policy.conditions.syntax import Entries, Invoke, Scalar, Syntax

if TYPE_CHECKING:
    from engine.policy.conditions.checker import Checker

T = TypeVar("T")
_RESULT_HELP: Final = "`done` compares result fields that are declared, typed and of trusted trust"


def done(checker: Checker, node: Invoke) -> Expr | None:
    if not arity(checker, node, 1, 3):
        return None
    tool = _tool(checker, node)
    if tool is None:
        return None
    shape = checker.env.tools[tool]
    params = {name: Field(param.type) for name, param in shape.params.items()}
    wheres = [
        _matches(checker, arg, fields, what)
        for arg, fields, what in zip(
            node.args[1:], (params, shape.result), ("parameter", "result field"), strict=False
        )
    ]
    if len(node.args) == 3 and isinstance(node.args[2], Entries):
        _refuse_untrusted(checker, node.args[2], tool, shape)
    if None in wheres:
        return None
    args, result = ([*wheres, (), ()])[:2]
    return History("done", tool, args or (), result or (), None, None, BOOL, node.span)


def count(checker: Checker, node: Invoke) -> Expr | None:
    tool = _tool(checker, node) if arity(checker, node, 1, 2) else None
    outcome: str | None = "confirmed"
    if len(node.args) == 2:
        outcome = _word(checker, node, node.args[1], OUTCOMES, "an outcome")
    if tool is None or outcome is None:
        return None
    return History("count", tool, (), (), outcome, None, INT, node.span)


def last_age(checker: Checker, node: Invoke) -> Expr | None:
    tool = _tool(checker, node) if arity(checker, node, 1) else None
    return History("last_age", tool, (), (), None, None, DURATION, node.span) if tool else None


def total(checker: Checker, node: Invoke) -> Expr | None:
    tool = _tool(checker, node) if arity(checker, node, 2) else None
    name = literal(checker, node, node.args[1]) if tool else None
    if tool is None or name is None:
        return None
    param = checker.env.tools[tool].params.get(str(name.value))
    if param is None:
        return _no_field(checker, name, tool, checker.env.tools[tool].params, "parameter")
    if param.type.opaque:
        message = f"`sum()` looks into `{name.value}` of `{tool}`, which is free text"
        return checker.fault("S301", node.span, message, "add up an int or a decimal")
    if param.type.name not in (TypeName.INT, TypeName.DECIMAL):
        message = f"`{name.value}` of `{tool}` is {param.type}, not a number"
        return checker.fault("C104", name.span, message, "add up an int or a decimal")
    type_ = ValueType(param.type.name)
    return History("sum", tool, (), (), None, str(name.value), type_, node.span)


def _tool(checker: Checker, node: Invoke) -> str | None:
    word = literal(checker, node, node.args[0])
    if word is None or word.value in checker.env.tools:
        return str(word.value) if word else None
    known = checker.env.tools
    help_ = suggest(str(word.value), known, f"tools: {', '.join(known)}" if known else "no tool is declared")
    return checker.fault("R201", word.span, f"no tool is named `{word.value}`", help_)


def _word(checker: Checker, node: Invoke, arg: Syntax, values: tuple[str, ...], what: str) -> str | None:
    word = literal(checker, node, arg)
    if word is None:
        return None
    constant = Constant(word.value, STRING, word.span)
    fitted = operands.fitted(constant, Constant("", enum(values), word.span), what)
    if isinstance(fitted, operands.Misfit):
        return checker.fault("C106", word.span, *fitted)
    return str(word.value)


def _matches(
    checker: Checker, arg: Syntax, fields: Mapping[str, Field], what: str
) -> tuple[Match, ...] | None:
    if not isinstance(arg, Entries):
        checker.check(arg)
        message = f"`done` takes a map here, not `{checker.shown(arg.span)}`"
        return checker.fault("C104", arg.span, message, f"write `done('tool', {{'{what}': value}})`")
    seen: set[object] = set()
    found: list[Match | None] = []
    for key, value in arg.entries:
        if key.value in seen:
            checker.fault("C104", key.span, f"`{key.value}` is there twice", "keep one")
        seen.add(key.value)
        found.append(_match(checker, key, value, fields, what))
    return tuple(match for match in found if match) if None not in found else None


def _match(
    checker: Checker, key: Scalar, value: Syntax, fields: Mapping[str, Field], what: str
) -> Match | None:
    expr = checker.check(value)
    field = fields.get(str(key.value))
    if field is None:
        return _no_field(checker, key, "the tool", fields, what)
    span = Span(key.span.start, value.span.end)
    wanted = Index(Constant("", STRING, key.span), Constant(0, INT, key.span), field.type, _inside(key.span))
    if checker.prose(wanted, "done()", span) or checker.prose(expr, "done()", span):
        return None
    pair = checker.pair(wanted, expr, "==", span) if expr is not None else None
    return Match(str(key.value), field.type, pair[1]) if pair else None


def _refuse_untrusted(checker: Checker, where: Entries, tool: str, shape: ToolShape) -> None:
    for key, _ in where.entries:
        field = shape.result.get(str(key.value))
        if field is not None and (field.trust or shape.trust) is Trust.UNTRUSTED:
            message = f"result field `{key.value}` of `{tool}` is of untrusted trust"
            checker.fault("C104", key.span, message, _RESULT_HELP)


def _no_field(checker: Checker, key: Scalar, tool: str, fields: Mapping[str, object], what: str) -> T | None:
    shown = tool if " " in tool else f"`{tool}`"
    known = f"{what}s: {', '.join(fields)}" if fields else f"it declares no {what}"
    help_ = suggest(str(key.value), fields, known)
    return checker.fault("C103", key.span, f"{shown} has no {what} `{key.value}`", help_)


def _inside(quoted: Span) -> Span:
    """The string without its quotes, as messages show it."""
    return Span(quoted.start + 1, quoted.end - 1)
