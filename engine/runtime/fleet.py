"""Owns the driving of many Runs in one process: one event loop, one store, one commit for whoever is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from engine.domain.errors import AgentctlError
from engine.domain.ids import RunId
from engine.ports import Clock, EventStore, Owner
from engine.runtime.claims import Claims
from engine.runtime.commit_queue import CommitQueue
from engine.runtime.driver import Driven, Driver

AT_ONCE = 1000
"""Runs that are driven side by side; the others wait for their turn."""


class Fleet:
    """Drives each Run with a driver of its own. One that fails takes no other with it."""

    def __init__(
        self,
        store: EventStore,
        clock: Clock,
        owner: Owner,
        driver: Callable[[CommitQueue, Claims], Driver],
        *,
        at_once: int = AT_ONCE,
    ) -> None:
        self._store = store
        self._clock = clock
        self._owner = owner
        self._make = driver
        self._at_once = at_once
        self._drivers: dict[RunId, Driver] = {}
        self._stopping = False

    async def drive(self, runs: Iterable[RunId]) -> Mapping[RunId, Driven | AgentctlError]:
        """How each drive ended, or the error that kept it from working (a claim held elsewhere, a lost store)."""
        commits = CommitQueue(self._store)
        claims = Claims(self._store, self._clock, self._owner, commits)
        room = asyncio.Semaphore(self._at_once)
        found: dict[RunId, Driven | AgentctlError] = {}

        async def one(run: RunId) -> None:
            async with room:
                if self._stopping:
                    return
                driver = self._drivers[run] = self._make(commits, claims)
                try:
                    found[run] = await driver.drive(run)
                except AgentctlError as error:
                    found[run] = error
                finally:
                    del self._drivers[run]

        try:
            async with asyncio.TaskGroup() as group:
                for run in dict.fromkeys(runs):
                    group.create_task(one(run))
        finally:
            await commits.close()
        return MappingProxyType(found)

    def stop(self) -> None:
        """Leaves every Run resumable; those that wait for their turn are not begun, and not in the result."""
        self._stopping = True
        for driver in list(self._drivers.values()):
            driver.stop()
