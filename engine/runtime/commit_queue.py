"""Owns the group commit: what many Runs of one process ask of their store goes there in batches, off the event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from engine.domain.errors import AgentctlError
from engine.domain.events import Event
from engine.domain.ids import RunId
from engine.ports import Append, EventStore

MAX_BATCH = 256
"""Items in one transaction: bounds how long a writer of another process waits for the lock."""
T = TypeVar("T")
R = TypeVar("R")


class Gathered(Generic[T, R]):
    """Items of one kind, for one event loop. While one batch is worked on, the next one collects.

    Each item succeeds or fails by itself; a store that cannot be used fails every item of its batch.
    """

    def __init__(
        self,
        call: Callable[[Callable[[], Sequence[R | AgentctlError]]], Awaitable[Sequence[R | AgentctlError]]],
        work: Callable[[Sequence[T]], Sequence[R | AgentctlError]],
    ) -> None:
        self._call = call
        self._work = work
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._worker: asyncio.Task[None] | None = None
        self.batches = 0
        self.items = 0

    def put(self, item: T) -> asyncio.Future[R]:
        """The answer to come; await it with `outcome`."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[R] = loop.create_future()
        self._waiting.append((item, done))
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._run())
        return done

    async def close(self) -> None:
        """Waits for what was asked for."""
        if self._worker is not None:
            await self._worker

    async def _run(self) -> None:
        while self._waiting:
            await asyncio.sleep(0)  # whoever is ready in this round of the loop comes along
            batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
            items = [item for item, _ in batch]
            try:
                results = await self._call(lambda items=items: self._work(items))  # type: ignore[misc]  # mypy#12557
            except AgentctlError as error:
                results = [error] * len(batch)
            except BaseException as error:
                for _, done in batch:
                    done.set_exception(error)
                raise
            self.batches += 1
            self.items += len(batch)
            for (_, done), result in zip(batch, results, strict=True):
                if isinstance(result, AgentctlError):
                    done.set_exception(result)
                else:
                    done.set_result(result)


class CommitQueue:
    """An async front of one store: one thread, in which batches of all kinds take turns."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="agentctl-commits")
        self._kinds: list[Gathered[object, object]] = []
        self.appends: Gathered[Append, None] = self.gathered(store.append_all)
        self._logs: Gathered[tuple[RunId, int], list[Event]] = self.gathered(self._read)

    def gathered(self, work: Callable[[Sequence[T]], Sequence[R | AgentctlError]]) -> Gathered[T, R]:
        """Batches of one more kind."""
        made: Gathered[T, R] = Gathered(self.call, work)
        self._kinds.append(made)  # type: ignore[arg-type]  # closed alike, whatever they hold
        return made

    async def append(self, item: Append) -> None:
        """Returns once the events are durable. Raises what `EventStore.append` raises for this item.

        A cancellation is raised only when the outcome is known, and an append that failed raises its own error.
        """
        await outcome(self.appends.put(item))

    async def events(self, run: RunId, after: int = 0) -> list[Event]:
        """The events of a Run with seq > after. Raises what `EventStore.events` raises."""
        return await outcome(self._logs.put((run, after)))

    async def call(self, work: Callable[[], R]) -> R:
        """Something else that the store does, in turn with the batches."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """Waits for what was asked for."""
        for kind in self._kinds:
            await kind.close()
        self._thread.shutdown()

    def _read(self, wanted: Sequence[tuple[RunId, int]]) -> list[list[Event] | AgentctlError]:
        return [self._log(run, after) for run, after in wanted]

    def _log(self, run: RunId, after: int) -> list[Event] | AgentctlError:
        try:
            return list(self._store.events(run, after))
        except AgentctlError as error:
            return error


async def outcome(done: asyncio.Future[R]) -> R:
    """The outcome of what is under way, whatever is asked of its task meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        with contextlib.suppress(Exception):
            try:
                await asyncio.shield(done)
            except asyncio.CancelledError as error:
                cancelled = error
    result = done.result()
    if cancelled is not None:
        raise cancelled
    return result
