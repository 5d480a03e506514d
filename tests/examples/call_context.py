"""Owns the call context that tests hand to example tools."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

START = datetime(2026, 6, 30, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Call:
    idempotency_key: str | None = "k-1"
    run: str = "r-1"
    call: str = "3.1"
    now: datetime = START
    attempt: int = 1


def call(key: str | None = "k-1", minutes: float = 0) -> Call:
    """A call with the key, `minutes` after the start."""
    return Call(idempotency_key=key, now=START + timedelta(minutes=minutes))
