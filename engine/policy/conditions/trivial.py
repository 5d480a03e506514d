"""Owns which values say nothing by occurring somewhere, because they occur everywhere."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final

from engine.domain.facts import Value

SHORTEST: Final = 4
"""Strings with fewer characters have no origin."""
SMALLEST: Final = 1000
"""Whole numbers nearer to zero have no origin."""


def originless(value: Value) -> bool:
    """True for values whose origin is unknown whatever was recorded."""
    if isinstance(value, str):
        return len(value.strip()) < SHORTEST or _small_number(value.strip())
    if isinstance(value, datetime):
        return False
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return True
    return -SMALLEST < value < SMALLEST and value == int(value)


def _small_number(text: str) -> bool:
    """`0007` and `12.00` are small numbers, however long they are written."""
    if len(text) > 20 or not text.lstrip("-").replace(".", "", 1).isascii():
        return False
    try:
        return originless(Decimal(text))
    except ArithmeticError:
        return False
