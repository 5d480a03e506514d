"""Owns the time of a test: it moves only when the test says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
"""The time of a test that does not say `now`."""


class TestClock:
    """A Clock that stands still between two `advance`; nobody waits in a test."""

    __test__ = False

    def __init__(self, at: datetime = START) -> None:
        self._now = at

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Back-offs of a model that is never out of reach: there are none."""

    def advance(self, delay: timedelta) -> None:
        self._now += delay
