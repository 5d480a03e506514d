"""Owns which operands fit together, and how a literal takes the type of what it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from engine.domain.conditions import Call, Constant, Expr
from engine.domain.diagnostics import suggest
from engine.domain.facts import Unknown
from engine.domain.types import Field, TypeName, ValueType
from engine.policy.conditions.environment import DECIMAL, DURATION, INT, STRING, TIMESTAMP
from engine.policy.conditions.values import converter

NAMES: Final = frozenset(
    {TypeName.ENUM, TypeName.ID, TypeName.REF, TypeName.PATH, TypeName.EMAIL, TypeName.URL}
)
"""Types whose values are whole names."""
ORDERED: Final = frozenset({TypeName.INT, TypeName.DECIMAL, TypeName.TIMESTAMP, TypeName.DURATION})
LISTS: Final = frozenset({TypeName.LIST, TypeName.ARGV})
PROSE: Final = frozenset({TypeName.TEXT, TypeName.RICH_TEXT})

_SUMS: Final[Mapping[tuple[str, TypeName, TypeName], ValueType]] = {
    ("+", TypeName.INT, TypeName.INT): INT,
    ("-", TypeName.INT, TypeName.INT): INT,
    ("*", TypeName.INT, TypeName.INT): INT,
    ("+", TypeName.DECIMAL, TypeName.DECIMAL): DECIMAL,
    ("-", TypeName.DECIMAL, TypeName.DECIMAL): DECIMAL,
    ("*", TypeName.DECIMAL, TypeName.DECIMAL): DECIMAL,
    ("+", TypeName.TIMESTAMP, TypeName.DURATION): TIMESTAMP,
    ("+", TypeName.DURATION, TypeName.TIMESTAMP): TIMESTAMP,
    ("-", TypeName.TIMESTAMP, TypeName.DURATION): TIMESTAMP,
    ("-", TypeName.TIMESTAMP, TypeName.TIMESTAMP): DURATION,
    ("+", TypeName.DURATION, TypeName.DURATION): DURATION,
    ("-", TypeName.DURATION, TypeName.DURATION): DURATION,
}
_WRITTEN: Final = {
    TypeName.DECIMAL: "decimal('1.50')",
    TypeName.DURATION: "duration('10m')",
    TypeName.TIMESTAMP: "timestamp('2026-01-31T00:00:00Z')",
}


class Misfit(NamedTuple):
    """Why a literal can never be the value of a fact."""

    message: str
    help: str


def element(type_: ValueType) -> ValueType:
    """The element type of a list type."""
    return type_.of if type_.of is not None else STRING


def computed(op: str, left: ValueType, right: ValueType) -> ValueType | None:
    """The type of `left op right`, or None if the two do not fit."""
    return _SUMS.get((op, left.name, right.name))


def comparable(left: ValueType, right: ValueType) -> bool:
    """True if `==` makes sense: one type, or two kinds of names of which one is a plain id or enum."""
    if left.name is right.name:
        return left.name not in LISTS | {TypeName.RECORD} and _kinds_agree(left, right)
    plain = {TypeName.ID, TypeName.ENUM}
    return left.name in NAMES and right.name in NAMES and bool(plain & {left.name, right.name})


def _kinds_agree(left: ValueType, right: ValueType) -> bool:
    return left.kind is None or right.kind is None or left.kind == right.kind


def disjoint(left: ValueType, right: ValueType) -> bool:
    """True for two enums without a common value."""
    both_enums = left.name is right.name is TypeName.ENUM
    return both_enums and not set(left.values) & set(right.values)


def fitted(literal: Constant, other: Expr, shown: str) -> Constant | Misfit:
    """The literal as a value of the other operand's type, or why that operand can never have it."""
    type_ = other.type
    if isinstance(literal.value, str) and type_.name in NAMES:
        return _fitted_name(literal, other, shown)
    if type_.name is TypeName.INT and isinstance(literal.value, int):
        low, high = type_.min, type_.max
        if (low is not None and literal.value < low) or (high is not None and literal.value > high):
            return Misfit(f"{shown} is never `{literal.value}`", f"{shown} is {_range(low, high)}")
    return literal


def _fitted_name(literal: Constant, other: Expr, shown: str) -> Constant | Misfit:
    type_, word = other.type, literal.value
    if type_.name is TypeName.ENUM and word not in type_.values:
        return Misfit(f"`{word}` is not a value of {shown}", _values_help(word, type_.values))
    if type_.max_len is not None and len(word) > type_.max_len:
        return Misfit(f"{shown} has at most {type_.max_len} characters", "shorten the value")
    if isinstance(other, Call) and word != word.lower():
        return Misfit(f"{shown} is always in lower case", f"write '{word.lower()}'")
    value = converter(type_)(word)
    if isinstance(value, Unknown):
        return Misfit(f"`{word}` is not {_article(type_)}", _FORM[type_.name])
    return replace(literal, value=value, type=type_)


_FORM: Final = {
    TypeName.PATH: "a path is relative, without `..`, as in 'src/main.py'",
    TypeName.EMAIL: "an e-mail address looks like 'ann@example.org'",
    TypeName.URL: "a url looks like 'https://example.org/a'",
}


def _article(type_: ValueType) -> str:
    return f"{'an' if type_.name.value[0] in 'aei' else 'a'} {type_.name.value}"


def _range(low: int | None, high: int | None) -> str:
    if low is not None and high is not None:
        return f"between {low} and {high}"
    return f"at least {low}" if high is None else f"at most {high}"


def _values_help(word: str, values: Sequence[str]) -> str:
    known = f"values: {', '.join(values)}" if values else "no values are declared"
    near = suggest(word, values, "")
    return f"{near} {known}" if near else known


def misfit_help(left: ValueType, right: ValueType, shown: str) -> str:
    """How to mend a comparison of two types that do not fit; `shown` is the left operand's text."""
    for type_, other in ((left, right), (right, left)):
        if type_.name in _WRITTEN and other.name in (TypeName.ID, TypeName.INT):
            return f"a {type_.name.value} is written {_WRITTEN[type_.name]}"
    if left.name in LISTS and right.name is TypeName.INT:
        return f"did you mean `size({shown})`?"
    if LISTS & {left.name, right.name}:
        return "ask for one element with `in`, `.exists(x, …)` or `.all(x, …)`"
    if TypeName.RECORD in (left.name, right.name):
        return "compare the fields of the record"
    return "compare values of one type"


def merged(types: Sequence[ValueType]) -> ValueType | int:
    """One type for an argument of several tools, or the index of the first that does not fit the first."""
    result = types[0]
    for at, other in enumerate(types[1:], 1):
        both = _merged_pair(result, other)
        if both is None:
            return at
        result = both
    return result


def _merged_pair(left: ValueType, right: ValueType) -> ValueType | None:
    names = {left.name, right.name}
    if left.name is not right.name:
        return STRING if names == {TypeName.ID, TypeName.REF} else None
    result = replace(
        left,
        values=tuple(dict.fromkeys((*left.values, *right.values))),
        kind=left.kind if left.kind == right.kind else None,
        min=_widest(min, left.min, right.min),
        max=_widest(max, left.max, right.max),
        max_len=_widest(max, left.max_len, right.max_len),
        max_items=_widest(max, left.max_items, right.max_items),
        pattern=left.pattern if left.pattern == right.pattern else None,
    )
    if left.of is not None and right.of is not None:
        of = _merged_pair(left.of, right.of)
        return replace(result, of=of) if of is not None else None
    return replace(result, fields=_common_fields(left, right)) if TypeName.RECORD in names else result


def _common_fields(left: ValueType, right: ValueType) -> dict[str, Field]:
    found: dict[str, Field] = {}
    for name in left.fields.keys() & right.fields.keys():
        one, two = left.fields[name], right.fields[name]
        type_ = _merged_pair(one.type, two.type)
        if type_ is not None:
            found[name] = Field(type_, required=one.required and two.required)
    return found


def _widest(pick: Callable[[int, int], int], left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    return pick(left, right)
