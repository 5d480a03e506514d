"""Owns the names of the functions and what is said about those that the language does not have."""

from __future__ import annotations

from typing import Final

from engine.domain.diagnostics import suggest
from engine.domain.types import TypeName, ValueType
from engine.policy.conditions.operands import LISTS

SIGNATURES: Final = {
    "has": "has(args.x)",
    "size": "size(list or text)",
    "under": "under(path, 'folder/')",
    "domain": "domain(email)",
    "host": "host(url)",
    "scheme": "scheme(url)",
    "age": "age(timestamp)",
    "duration": "duration('10m')",
    "timestamp": "timestamp('2026-01-31T00:00:00Z')",
    "decimal": "decimal('1.50')",
    "done": "done('tool', {'argument': value}, {'result field': value})",
    "count": "count('tool', 'confirmed')",
    "last_age": "last_age('tool')",
    "sum": "sum('tool', 'argument')",
    "origin": "origin(args.x)",
    "links": "links(text)",
    "args_of": "args_of('address')",
}
MACROS: Final = ("exists", "all")
SUBSTRING_TESTS: Final = frozenset(
    {
        "contains",
        "startsWith",
        "endsWith",
        "matches",
        "starts_with",
        "ends_with",
        "startswith",
        "endswith",
        "match",
        "regex",
        "indexOf",
        "find",
    }
)
_INSTEAD: Final = {
    "len": "size",
    "length": "size",
    "count_of": "count",
    "any": "exists",
    "every": "all",
    "some": "exists",
}
_REFUSED: Final = {
    "map": "ask about the elements with `.exists(x, …)` or `.all(x, …)`",
    "filter": "ask about the elements with `.exists(x, …)` or `.all(x, …)`",
    "exists_one": "use `.exists(x, …)`",
    "lower": "compare the whole value, or several with `in`",
    "int": "values keep the type that they are declared with",
    "string": "values keep the type that they are declared with",
    "double": "there are no floats; a decimal is written `decimal('1.50')`",
}


def unknown_function_help(name: str, receiver: str | None) -> str:
    """What to write instead of a function or, with a receiver, a method."""
    if name in _REFUSED:
        return _REFUSED[name]
    word = _INSTEAD.get(name, name)
    if word in MACROS:
        return f"write `{receiver or 'list'}.{word}(x, …)`"
    if word in SIGNATURES:
        return f"write `{word}({receiver})`" if receiver else f"did you mean `{word}`?"
    if receiver is not None:
        return suggest(name, MACROS, "methods: exists, all")
    return suggest(name, SIGNATURES, f"functions: {', '.join(SIGNATURES)}")


def substring_help(type_: ValueType, shown: str) -> str:
    """What to ask instead of a part of a value, by the value's type."""
    match type_.name:
        case TypeName.PATH:
            return f"use `under({shown}, 'folder/')`"
        case TypeName.EMAIL:
            return f"use `domain({shown})`"
        case TypeName.URL:
            return f"use `host({shown})` or `scheme({shown})`"
        case name if name in LISTS:
            return f"use `value in {shown}`"
        case _:
            return "compare the whole value with `==` or `in`"
