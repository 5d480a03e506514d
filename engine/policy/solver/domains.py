"""Owns the values that stand for all values of a term: enough of them to reach every answer of its comparisons."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from engine.domain.facts import Value
from engine.domain.types import TypeName, ValueType
from engine.policy.solver.terms import Bound

_STEP: Final[dict[type, Any]] = {
    int: 1,
    Decimal: Decimal(1),
    timedelta: timedelta(seconds=1),
    datetime: timedelta(seconds=1),
}
_ANY: Final = {
    TypeName.INT: 0,
    TypeName.DECIMAL: Decimal(0),
    TypeName.DURATION: timedelta(0),
    TypeName.TIMESTAMP: datetime.fromisoformat("2026-01-01T00:00:00+00:00"),
}
_OTHER: Final = {
    TypeName.EMAIL: "someone{}@other.example",
    TypeName.URL: "https://other{}.example/",
    TypeName.PATH: "other{}",
}


def representatives(type_: ValueType, constants: Iterable[Value], low: Bound, high: Bound) -> list[Value]:
    """Values such that each comparison with the constants has, for any value of the type, the answer of one.

    `low` and `high` bound numbers; a duration has at most a lower bound, of seconds.
    """
    if type_.name is TypeName.BOOL:
        return [True, False]
    if type_.name is TypeName.ENUM and type_.values:
        return list(type_.values)
    known = list(dict.fromkeys(constants))
    if type_.name in _ANY:
        return _ordered(type_.name, known, low, high)
    return [*known, *_elsewhere(type_.name, known)]


def _ordered(name: TypeName, constants: list[Any], low: Bound, high: Bound) -> list[Value]:
    bounds = [_bound(name, each) for each in (low, high) if each is not None]
    points = sorted({*constants, *bounds}) or [_ANY[name]]
    step = _STEP[type(points[0])]
    found: list[Any] = [_shifted(points[0], -step)]
    for one, two in pairwise(points):
        found.extend((one, one + 1 if name is TypeName.INT else one + (two - one) / 2))
    found.extend((points[-1], _shifted(points[-1], step)))
    at_least = _bound(name, low) if low is not None else None
    at_most = _bound(name, high) if high is not None else None
    return [
        each
        for each in dict.fromkeys(found)
        if (at_least is None or each >= at_least) and (at_most is None or each <= at_most)
    ]


def _shifted(point: Any, step: Any) -> Any:
    try:
        return point + step
    except OverflowError:
        return point


def _bound(name: TypeName, number: int | Decimal) -> Any:
    if name is TypeName.DURATION:
        return timedelta(seconds=int(number))
    return Decimal(number) if name is TypeName.DECIMAL else number


def _elsewhere(name: TypeName, constants: list[str]) -> list[str]:
    """A value that is none of the constants; for paths also one inside each of them."""
    inside = [f"{each}/inside" for each in constants if each] if name is TypeName.PATH else []
    pattern = _OTHER.get(name, "other{}")
    fresh = next(word for n in range(1000) if (word := pattern.format(n or "")) not in constants)
    return [*(each for each in inside if each not in constants), fresh]
