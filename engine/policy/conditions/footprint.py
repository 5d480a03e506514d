"""Owns which facts an answer depends on."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.conditions import Call, Constant, Expr, History, Read, children


def footprint(expr: Expr) -> frozenset[str]:
    """Dotted paths of all facts that the expression reads, as `Condition.reads` describes them."""
    return frozenset(_paths(expr))


def _paths(expr: Expr) -> Iterator[str]:
    match expr:
        case Read():
            yield str(expr)
        case History(tool=tool, function=function):
            yield f"history.{tool}"
            if function == "last_age":
                yield "now"
        case Call(function="age"):
            yield "now"
        case Call(function="origin"):
            yield "origin"
        case Call(function="args_of", args=(Constant(value=class_),)):
            yield f"args_of.{class_}"
        case _:
            pass
    for child in children(expr):
        yield from _paths(child)
