"""Owns made-up values: one of each declared type, and those that the literals of a condition suggest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from engine.domain.canonical import Json
from engine.domain.types import TypeName, ValueType
from engine.policy.values import fits

_SAMPLES: Final[Mapping[TypeName, Json]] = {
    TypeName.BOOL: False,
    TypeName.INT: 1,
    TypeName.DECIMAL: "1.00",
    TypeName.PATH: "notes/a.txt",
    TypeName.EMAIL: "ann@example.org",
    TypeName.URL: "https://example.org/a",
    TypeName.TIMESTAMP: "2026-01-01T00:00:00Z",
    TypeName.DURATION: "1h",
    TypeName.TEXT: "text",
    TypeName.RICH_TEXT: "text",
}
_LARGE: Final = 1_000_000
_LITERAL: Final = re.compile(r"'([^']*)'")
_PIECE: Final = re.compile(r"(\[(?P<set>[^\]]+)\]|\\(?P<class>[dw])|(?P<char>[A-Za-z0-9_/:@-]|\\[.\-/]))"
                           r"(?:\{(?P<times>\d+)(?:,\d*)?\}|(?P<mark>[+*?]))?")  # fmt: skip


def sample(type_: ValueType, name: str) -> Json:
    """A value of the type that a reader recognises as made up."""
    match type_.name:
        case TypeName.ENUM:
            return type_.values[0] if type_.values else ""
        case TypeName.INT:
            return 1 if type_.min is None else type_.min
        case TypeName.RECORD:
            return {key: sample(field.type, key) for key, field in type_.fields.items()}
        case TypeName.LIST:
            return [sample(type_.of, name)] if type_.of is not None else []
        case TypeName.ARGV:
            return ["true"]
        case _ if type_.pattern is not None:
            return matching(type_.pattern) or f"{name}1"
        case _:
            return _SAMPLES.get(type_.name, f"{name or 'x'}1")


def candidates(type_: ValueType, literals: Sequence[str]) -> list[Json]:
    """Values to try for a fact that a condition with these literals reads."""
    match type_.name:
        case TypeName.ENUM:
            return [*type_.values]
        case TypeName.BOOL:
            return [False, True]
        case TypeName.INT:
            return [sample(type_, ""), type_.max if type_.max is not None else _LARGE]
        case TypeName.LIST if type_.of is not None:
            return [[sample(type_.of, "item")], []]
        case TypeName.ARGV:
            return [[word, "status"] for word in literals] or [["true"]]
        case TypeName.PATH:
            return [f"{word.rstrip('/')}/a.txt" for word in literals] + [sample(type_, "")]
        case _:
            suggested: list[Json] = [word for word in literals if fits(word, type_)]
            return [*suggested, sample(type_, "value")]


def literals_of(conditions: Sequence[str]) -> list[str]:
    """The quoted texts of conditions, in order."""
    return [*dict.fromkeys(found for text in conditions for found in _LITERAL.findall(text) if found)]


def matching(pattern: str) -> str | None:
    """A text that a simple pattern accepts (sets, classes, counts); None for a pattern with more to it."""
    made, at, body = "", 0, pattern.removeprefix("^").removesuffix("$")
    while at < len(body):
        piece = _PIECE.match(body, at)
        if piece is None:
            return None
        made += _character(piece) * _times(piece)
        at = piece.end()
    return made if re.fullmatch(pattern, made) else None


def _character(piece: re.Match[str]) -> str:
    if piece["set"] is not None:
        return piece["set"].removeprefix("\\")[0]
    if piece["class"] is not None:
        return "1" if piece["class"] == "d" else "a"
    return piece["char"].removeprefix("\\")


def _times(piece: re.Match[str]) -> int:
    if piece["times"] is not None:
        return int(piece["times"])
    return 0 if piece["mark"] in ("*", "?") else 1
