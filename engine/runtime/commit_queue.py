"""Owns the group commit: appends of many Runs in one process share a transaction."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from engine.domain.errors import AgentctlError
from engine.ports import Append, EventStore

MAX_BATCH = 256
"""Appends in one transaction: bounds how long a writer of another process waits for the lock."""
T = TypeVar("T")


class CommitQueue:
    """An async front of one store, for one event loop. While one batch is written, the next one collects.

    Each append succeeds or fails by itself; a store that cannot be used fails every append of its batch.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._waiting: list[tuple[Append, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="agentctl-commits")
        self.commits = 0
        """Transactions so far."""
        self.appends = 0

    async def append(self, item: Append) -> None:
        """Returns once the events are durable. Raises what `EventStore.append` raises for this item.

        A cancellation is raised only when the outcome is known, and an append that failed raises its own error.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append((item, done))
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write())
        await _outcome(done)

    async def call(self, work: Callable[[], T]) -> T:
        """Something else that the store does, in turn with the appends and off the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """Waits for what was asked for."""
        if self._writer is not None:
            await self._writer
        self._thread.shutdown()

    async def _write(self) -> None:
        while self._waiting:
            await asyncio.sleep(0)  # whoever is ready in this round of the loop comes along
            batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
            items = [item for item, _ in batch]
            try:
                results = await self.call(lambda items=items: self._store.append_all(items))  # type: ignore[misc]
            except AgentctlError as error:
                results = [error] * len(batch)
            except BaseException as error:
                for _, done in batch:
                    done.set_exception(error)
                raise
            self.commits += 1
            self.appends += len(batch)
            for (_, done), result in zip(batch, results, strict=True):
                if result is None:
                    done.set_result(None)
                else:
                    done.set_exception(result)


async def _outcome(done: asyncio.Future[None]) -> None:
    """The outcome of an append that is under way, whatever is asked of its task meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        with contextlib.suppress(Exception):
            try:
                await asyncio.shield(done)
            except asyncio.CancelledError as error:
                cancelled = error
    done.result()
    if cancelled is not None:
        raise cancelled
