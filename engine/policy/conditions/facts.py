"""Owns paths to facts: roots, fields, arguments of the named tools, optional ones read without `has()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from engine.domain.conditions import Expr, Local, Read, Select, Span
from engine.domain.diagnostics import did_you_mean, suggest
from engine.domain.types import Field, TypeName, ValueType
from engine.policy.conditions.environment import ALL_ROOTS, ToolShape
from engine.policy.conditions.operands import merged
from engine.policy.conditions.presence import key_of
from engine.policy.conditions.syntax import Member, Name, Syntax

if TYPE_CHECKING:
    from engine.policy.conditions.checker import Checker

NAMES: Final = ALL_ROOTS
_WORDS_OF_PROSE: Final = frozenset(
    {
        "answer",
        "assistant",
        "chat",
        "confidence",
        "input",
        "message",
        "messages",
        "output",
        "plan",
        "prompt",
        "question",
        "reason",
        "reply",
        "response",
        "text",
        "user",
        "user_input",
        "user_text",
    }
)
_LITERALS: Final = {"True": "true", "False": "false", "None": "!has(…)"}
_ARGS: Final = ValueType(TypeName.RECORD)
_SELECTOR_HELP: Final = "name the tools one by one, or ask about `args_of('address')` or `tool.kind`"


def path(checker: Checker, node: Syntax) -> Expr | None:
    """A name, a field of something, or any other operand, not yet asked whether it is there."""
    if isinstance(node, Name):
        return _name(checker, node)
    if not isinstance(node, Member):
        return checker.check(node)
    operand = path(checker, node.operand)
    if operand is None:
        return None
    if isinstance(operand, Read) and operand.path == ("args",):
        return _argument(checker, node)
    return _field(checker, node, operand)


def guarded(checker: Checker, expr: Expr | None, node: Syntax) -> Expr | None:
    """The same expression; raises C108 if it, or what it is a field of, is optional and not asked for."""
    inner = expr
    while inner is not None:
        key = key_of(inner)
        if key in checker.optional and key not in checker.present:
            _unguarded(checker, inner, node)
            break
        inner = _container(inner)
    return expr


def guarded_container(checker: Checker, expr: Expr, node: Syntax) -> None:
    """As `guarded`, for what `expr` is a field of: `has(a.b)` asks for `a.b`, not for `a`."""
    guarded(checker, _container(expr), node)


def _container(expr: Expr) -> Expr | None:
    match expr:
        case Read(path=path_, span=span) if len(path_) > 2:
            return Read(path_[:-1], _ARGS, Span(span.start, span.end))
        case Select(operand=operand):
            return operand
        case _:
            return None


def _unguarded(checker: Checker, expr: Expr, node: Syntax) -> None:
    shown = str(expr) if isinstance(expr, Read) else checker.shown(expr.span)
    what = "argument" if shown.startswith("args.") else "field"
    checker.fault(
        "C108",
        node.span,
        f"`{shown}` is an optional {what}, read without has()",
        f"write `has({shown}) && …`: where it is absent, the condition is unknown, which restricts",
    )


# --- roots -----------------------------------------------------------------------------------------------


def _name(checker: Checker, node: Name) -> Expr | None:
    local = checker.scope.get(node.name)
    if local is not None:
        return Local(local.name, local.slot, local.type, node.span)
    if node.name == "args" and "args" in checker.env.roots:
        if checker.env.selects:
            message = "`args` differ from tool to tool where a rule selects its tools"
            return checker.fault("C104", node.span, message, _SELECTOR_HELP)
        return Read(("args",), _ARGS, node.span)
    type_ = checker.env.root_types.get(node.name)
    return Read((node.name,), type_, node.span) if type_ is not None else _unknown_name(checker, node)


def _unknown_name(checker: Checker, node: Name) -> Expr | None:
    here = sorted(checker.env.roots)
    readable = f"a condition reads here: {', '.join(here)}"
    if node.name in ALL_ROOTS:
        return checker.fault("C102", node.span, f"`{node.name}` cannot be read here", readable)
    if node.name in _LITERALS:
        help_ = f"write `{_LITERALS[node.name]}`"
    elif (near := did_you_mean(node.name, (*here, *checker.scope))) is not None:
        help_ = f"did you mean `{near}`?"
    elif node.name in _WORDS_OF_PROSE:
        help_ = f"what people or the model wrote is not a fact; {readable}"
    else:
        help_ = f"{readable}; a value is quoted: '{node.name}'"
    return checker.fault("C102", node.span, f"`{node.name}` is not a Host fact", help_)


# --- fields ----------------------------------------------------------------------------------------------


def _field(checker: Checker, node: Member, operand: Expr) -> Expr | None:
    shown = checker.shown(operand.span)
    if checker.prose(operand if operand.type.opaque else None, f".{node.field}", node.span):
        return None
    if operand.type.name is not TypeName.RECORD:
        message = f"`{shown}` is {operand.type}, it has no field `{node.field}`"
        help_ = "ask about the elements: `.exists(x, …)`" if operand.type.of else "only records have fields"
        return checker.fault("C104", node.span, message, help_)
    field = operand.type.fields.get(node.field)
    if field is None:
        message = f"`{shown}` has no field `{node.field}`"
        return checker.fault("C103", node.field_span, message, _fields_help(node.field, operand.type.fields))
    return _reached(checker, node, operand, field)


def _reached(checker: Checker, node: Member, operand: Expr, field: Field) -> Expr:
    expr: Expr
    if isinstance(operand, Read):
        expr = Read((*operand.path, node.field), field.type, node.span)
    else:
        expr = Select(operand, node.field, field.type, node.span)
    key = key_of(expr)
    if not field.required and key is not None:
        checker.optional.add(key)
    return expr


def _fields_help(name: str, fields: Mapping[str, object]) -> str:
    return suggest(name, fields, f"fields: {', '.join(fields)}" if fields else "no fields are declared")


def _argument(checker: Checker, node: Member) -> Expr | None:
    shapes = {name: checker.env.tools[name] for name in checker.env.named if name in checker.env.tools}
    if not shapes:
        return None
    for tool, shape in shapes.items():
        if node.field not in shape.params:
            message = f"`{tool}` has no parameter `{node.field}`"
            return checker.fault("C103", node.field_span, message, _params_help(node.field, shape))
    params = [shape.params[node.field] for shape in shapes.values()]
    type_ = merged([param.type for param in params])
    if isinstance(type_, int):
        tools = list(shapes)
        both = f"{params[0].type} in `{tools[0]}` and {params[type_].type} in `{tools[type_]}`"
        message = f"`args.{node.field}` is {both}"
        return checker.fault("C104", node.span, message, "write one rule per tool")
    required = all(param.required or param.bound for param in params)
    return _reached(checker, node, Read(("args",), _ARGS, node.span), Field(type_, required=required))


def _params_help(name: str, shape: ToolShape) -> str:
    known = f"parameters: {', '.join(shape.params)}" if shape.params else "it has no parameters"
    return suggest(name, shape.params, known)
