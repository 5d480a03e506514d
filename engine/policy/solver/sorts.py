"""Owns the values of the SMT solver: typed constants to its constants and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib import import_module
from typing import Any, Final

from engine.domain.types import TypeName, ValueType

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class _Library:
    """The solver library, imported when first used: most files are linted without it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("z3"), name)


z3: Final[Any] = _Library()


def literal(value: Any, type_: ValueType) -> Any:
    """A typed value as a constant of the solver: times and durations in microseconds."""
    match value:
        case bool():
            return z3.BoolVal(value)
        case int() if type_.name is TypeName.DECIMAL:
            return z3.RealVal(value)
        case int():
            return z3.IntVal(value)
        case Decimal():
            return z3.RealVal(str(value))
        case datetime():
            return z3.IntVal((value - _EPOCH) // timedelta(microseconds=1))
        case timedelta():
            return z3.IntVal(value // timedelta(microseconds=1))
        case _:
            return z3.StringVal(value)


def plain(value: Any, type_: ValueType) -> Any:
    """A constant of the solver as a typed value; None for one that has no such value."""
    match type_.name:
        case TypeName.BOOL:
            return z3.is_true(value)
        case TypeName.INT:
            return value.as_long()
        case TypeName.TIMESTAMP:
            return _EPOCH + timedelta(microseconds=value.as_long())
        case TypeName.DURATION:
            return timedelta(microseconds=value.as_long())
        case TypeName.DECIMAL:
            return Decimal(value.numerator_as_long()) / Decimal(value.denominator_as_long())
        case _:
            return value.as_string()
