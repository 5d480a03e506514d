"""Owns the scalar types of the documents: names, durations, money, dates, conditions."""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, Any, Final, TypeAlias

from pydantic import Field, PlainValidator, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

_DURATION: Final = re.compile(r"(?:(\d{1,7})d)?(?:(\d{1,7})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s)?", re.ASCII)
_MONEY: Final = re.compile(r"\d{1,12}(?:\.\d{1,8})?", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,12}(?:\.\d{1,8})?(?![\d.])", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def parse_duration(text: str) -> timedelta | None:
    """`90d`, `2h`, `10m`, `30s`, `1h30m`; None for anything else."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    try:
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        return None


def _bad(wanted: str, help_: str) -> PydanticCustomError:
    return PydanticCustomError(
        "bad_value", "`{key}` must be {wanted}, not {shown}", {"wanted": wanted, "help": help_}
    )


def _duration(value: Any) -> timedelta:
    found = parse_duration(value) if isinstance(value, str) else None
    if found is None or not found:
        raise _bad("a duration", "write a number and a unit: 30s, 10m, 2h or 90d")
    return found


def _money(value: Any) -> Decimal:
    if isinstance(value, str) and _MONEY.fullmatch(value):
        return Decimal(value)
    if isinstance(value, str) or value is None or isinstance(value, bool):
        number = _NUMBER.search(value.replace(",", ".")) if isinstance(value, str) else None
        raise _bad("an amount of money", f'write it as "{number[0] if number else "0.60"}"')
    raise _bad("an amount in quotes", 'write it in quotes, so that no digit is lost: "{text}"')


def _temperature(value: Any) -> Decimal:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2:
        return Decimal(str(value))
    raise _bad("a number from 0 to 2", "write a number such as 0 or 0.2")


def _date(value: Any) -> date:
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise _bad("a date", "write year, month and day: 2026-12-31")


Ident: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
"""A name that conditions can read or a provider can call."""
Id: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$")]
"""A name that is only cited."""
ToolName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$")]
"""The name of a tool; one that a provider would refuse is mapped on the wire, both ways."""
Text: TypeAlias = Annotated[str, StringConstraints(min_length=1)]
ConditionText: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
FilePath: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
FactPath: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$")
]
ResultPath: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^(result|receipt)(\.[A-Za-z_][A-Za-z0-9_]*(\[\])?)+$")
]
EffectName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$")]
EffectPattern: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z*][a-z0-9_*]*(\.[a-z0-9_*]+)*$")]
Count: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000_000)]
CountFromZero: TypeAlias = Annotated[int, Field(ge=0, le=1_000_000_000)]
Duration: TypeAlias = Annotated[
    timedelta,
    PlainValidator(_duration),
    WithJsonSchema(
        {"type": "string", "pattern": r"^(\d+d)?(\d+h)?(\d+m)?(\d+s)?$", "examples": ["30s", "10m", "2h"]}
    ),
]
Money: TypeAlias = Annotated[
    Decimal,
    PlainValidator(_money),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)?$", "examples": ["0.60"]}),
]
Temperature: TypeAlias = Annotated[
    Decimal, PlainValidator(_temperature), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 2})
]
Date: TypeAlias = Annotated[
    date, PlainValidator(_date), WithJsonSchema({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"})
]
