"""Owns the real clock: wall time in UTC and real waiting."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime


class SystemClock:
    """The Clock of every Run that is not a test."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
