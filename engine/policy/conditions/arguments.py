"""Owns what the functions of the language ask of their arguments: how many, written out, of which type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.domain.conditions import Call, Expr, Index, Local, Read, Select
from engine.policy.conditions.functions import SIGNATURES
from engine.policy.conditions.syntax import Invoke, Scalar, Syntax

if TYPE_CHECKING:
    from engine.policy.conditions.checker import Checker


def arity(checker: Checker, node: Invoke, least: int, most: int | None = None) -> bool:
    """True if the number of arguments is right; else C104, after the arguments themselves are checked."""
    if least <= len(node.args) <= (most or least):
        return True
    for arg in node.args:
        checker.check(arg)
    message = f"`{node.name}` takes another number of arguments"
    checker.fault("C104", node.span, message, f"write `{SIGNATURES[node.name]}`")
    return False


def literal(checker: Checker, node: Invoke, arg: Syntax) -> Scalar | None:
    """A string written out, which some functions insist on."""
    if isinstance(arg, Scalar) and isinstance(arg.value, str):
        return arg
    message = f"`{node.name}` takes a quoted string here, not `{checker.shown(arg.span)}`"
    return checker.fault("C104", arg.span, message, f"write `{SIGNATURES[node.name]}`")


def wrong_type(checker: Checker, node: Invoke, expr: Expr) -> Expr | None:
    """C104, or S301 for free text, about an argument."""
    if not checker.prose(expr, f"{node.name}()", node.span):
        message = f"`{node.name}` does not take {expr.type}: `{checker.shown(expr.span)}`"
        checker.fault("C104", expr.span, message, f"write `{SIGNATURES[node.name]}`")
    return None


def is_of_call(checker: Checker, expr: Expr) -> bool:
    """True for arguments of the call and parts of them."""
    match expr:
        case Read(path=path):
            return path[0] == "args"
        case Local(slot=slot):
            return slot in checker.of_call
        case Select(operand=operand) | Index(operand=operand):
            return is_of_call(checker, operand)
        case Call(function="links", args=(text,)):
            return is_of_call(checker, text)
        case Call(function="args_of"):
            return True
        case _:
            return False
