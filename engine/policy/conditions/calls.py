"""Owns what each function of the language takes and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from engine.domain.conditions import Call, Constant, Expr, Function, Has, Read, Select
from engine.domain.facts import Unknown
from engine.domain.types import ArgClass, TypeName, ValueType
from engine.policy.conditions import facts, operands, receipts
from engine.policy.conditions.arguments import arity, is_of_call, literal, wrong_type
from engine.policy.conditions.environment import (
    BOOL,
    DECIMAL,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    enum,
    list_of,
)
from engine.policy.conditions.syntax import Fault, Invoke, Member
from engine.policy.conditions.trivial import SHORTEST, SMALLEST
from engine.policy.conditions.values import as_path, parse_decimal, parse_duration, parse_timestamp

if TYPE_CHECKING:
    from engine.policy.conditions.checker import Checker

_WITH_ORIGIN: Final = frozenset(
    {
        TypeName.ID,
        TypeName.REF,
        TypeName.EMAIL,
        TypeName.URL,
        TypeName.PATH,
        TypeName.INT,
        TypeName.DECIMAL,
        TypeName.TIMESTAMP,
    }
)


def _has(checker: Checker, node: Invoke) -> Expr | None:
    if not arity(checker, node, 1):
        return None
    if not isinstance(node.args[0], Member):
        checker.check(node.args[0])
        message = f"`has` takes a path such as `args.x`, not `{checker.shown(node.args[0].span)}`"
        return checker.fault("C104", node.args[0].span, message, "for a list ask `size(x) > 0`")
    operand = facts.path(checker, node.args[0])
    if not isinstance(operand, Read | Select):
        return None
    facts.guarded_container(checker, operand, node.args[0])
    return Has(operand, BOOL, node.span)


def _size(checker: Checker, node: Invoke) -> Expr | None:
    expr = checker.check(node.args[0]) if arity(checker, node, 1) else None
    if expr is None or expr.type.opaque or expr.type.name in operands.LISTS:
        return Call("size", (expr,), INT, node.span) if expr is not None else None
    return wrong_type(checker, node, expr)


def _under(checker: Checker, node: Invoke) -> Expr | None:
    if not arity(checker, node, 2):
        return None
    path, folder = checker.check(node.args[0]), checker.check(node.args[1])
    if path is None or folder is None:
        return None
    if path.type.name is not TypeName.PATH:
        return wrong_type(checker, node, path)
    if isinstance(folder, Constant) and isinstance(folder.value, str):
        place = as_path(folder.value)
        if isinstance(place, Unknown):
            message = f"no path is under `{folder.value}`"
            return checker.fault(
                "C106", folder.span, message, "a path is relative, without `..`, as in 'src/'"
            )
        folder = Constant(place, path.type, folder.span)
    if folder.type.name is not TypeName.PATH:
        return wrong_type(checker, node, folder)
    return Call("under", (path, folder), BOOL, node.span)


def _of_one(
    name: Function, accepted: TypeName, result: ValueType
) -> Callable[[Checker, Invoke], Expr | None]:
    def check(checker: Checker, node: Invoke) -> Expr | None:
        expr = checker.check(node.args[0]) if arity(checker, node, 1) else None
        if expr is None or expr.type.name is accepted:
            return Call(name, (expr,), result, node.span) if expr is not None else None
        return wrong_type(checker, node, expr)

    return check


def _written(
    parse: Callable[[str], Any], result: ValueType, form: str
) -> Callable[[Checker, Invoke], Expr | None]:
    def check(checker: Checker, node: Invoke) -> Expr | None:
        word = literal(checker, node, node.args[0]) if arity(checker, node, 1) else None
        if word is None:
            return None
        value = parse(cast("str", word.value))
        if value is None:
            return checker.fault("C104", word.span, f"`{word.value}` is not a {result}", form)
        return Constant(value, result, node.span)

    return check


def _links(checker: Checker, node: Invoke) -> Expr | None:
    expr = checker.check(node.args[0]) if arity(checker, node, 1) else None
    if expr is None:
        return None
    if expr.type.opaque:
        return Call("links", (expr,), list_of(ValueType(TypeName.URL)), node.span)
    message = f"`links` takes free text, `{checker.shown(expr.span)}` is {expr.type}"
    return checker.fault("C104", expr.span, message, "compare the value itself")


def _args_of(checker: Checker, node: Invoke) -> Expr | None:
    word = literal(checker, node, node.args[0]) if arity(checker, node, 1) else None
    if word is None or "args" not in checker.env.roots:
        if word is not None:
            checker.fault("C102", node.name_span, "`args_of` cannot be asked here", "no call is judged here")
        return None
    classes = tuple(ArgClass)
    class_ = Constant(word.value, STRING, word.span)
    fitted = operands.fitted(class_, Constant("", enum(classes), word.span), "an argument class")
    if isinstance(fitted, operands.Misfit):
        return checker.fault("C106", word.span, *fitted)
    return Call("args_of", (class_,), list_of(_type_of_class(checker, str(word.value))), node.span)


def _type_of_class(checker: Checker, class_: str) -> ValueType:
    """Free text as soon as one parameter of the class is: what holds for all must hold for it."""
    env = checker.env
    names = tuple(env.tools) if env.selects or not env.named else env.named
    shapes = [env.tools[name] for name in names if name in env.tools]
    params = [param for shape in shapes for param in shape.params.values() if param.arg_class == class_]
    prose = any(param.type.opaque for param in params if not param.bound)
    if prose or (class_ == ArgClass.PAYLOAD and not params):
        return ValueType(TypeName.TEXT)
    return STRING


# --- origin ----------------------------------------------------------------------------------------------


def _origin(checker: Checker, node: Invoke) -> Expr | None:
    expr = checker.check(node.args[0]) if arity(checker, node, 1) else None
    if expr is None or checker.prose(expr if expr.type.opaque else None, "origin()", node.span):
        return None
    if not is_of_call(checker, expr):
        message = f"`{checker.shown(expr.span)}` is not an argument of the call"
        return checker.fault("C104", expr.span, message, "ask `origin(args.x)`")
    if expr.type.name in operands.LISTS | {TypeName.RECORD}:
        shown = checker.shown(expr.span)
        message = f"`{shown}` is {expr.type}; only a single value has an origin"
        return checker.fault("C104", expr.span, message, f"write `{shown}.all(x, 'user' in origin(x))`")
    checker.faults.extend(_trivial(checker, node, expr))
    return Call("origin", (expr,), list_of(enum(checker.env.origins)), node.span)


def _trivial(checker: Checker, node: Invoke, expr: Expr) -> list[Fault]:
    type_, shown = expr.type, checker.shown(expr.span)
    if _is_bound(checker, expr):
        why = "the Host fills it in"
    elif type_.name not in _WITH_ORIGIN:
        why = f"a value of type {type_.name} occurs everywhere"
    elif type_.name is TypeName.INT and _is_small(type_):
        why = f"integers below {SMALLEST:,} occur everywhere"
    elif type_.max_len is not None and type_.max_len < SHORTEST:
        why = f"values of fewer than {SHORTEST} characters occur everywhere"
    else:
        return []
    message = f"`{shown}` has no origin: {why}"
    return [Fault("C110", node.span, message, "constrain the value itself; its origin is always unknown")]


def _is_small(type_: ValueType) -> bool:
    small_above = type_.max is not None and type_.max < SMALLEST
    return small_above and (type_.min is None or type_.min > -SMALLEST)


def _is_bound(checker: Checker, expr: Expr) -> bool:
    if not isinstance(expr, Read) or len(expr.path) != 2:
        return False
    tools = [checker.env.tools[name] for name in checker.env.named if name in checker.env.tools]
    return all(tool.params[expr.path[1]].bound for tool in tools)


CHECKS: Final[Mapping[str, Callable[[Checker, Invoke], Expr | None]]] = {
    "has": _has,
    "size": _size,
    "under": _under,
    "domain": _of_one("domain", TypeName.EMAIL, STRING),
    "host": _of_one("host", TypeName.URL, STRING),
    "scheme": _of_one("scheme", TypeName.URL, STRING),
    "age": _of_one("age", TypeName.TIMESTAMP, DURATION),
    "duration": _written(parse_duration, DURATION, "write '1h30m', '10m', '15s', '250ms'; a day is '24h'"),
    "timestamp": _written(parse_timestamp, TIMESTAMP, "write '2026-01-31T00:00:00Z'"),
    "decimal": _written(parse_decimal, DECIMAL, "write '1.50'"),
    "done": receipts.done,
    "count": receipts.count,
    "last_age": receipts.last_age,
    "sum": receipts.total,
    "origin": _origin,
    "links": _links,
    "args_of": _args_of,
}
