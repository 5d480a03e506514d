"""Owns the daemon threads that plain functions run in: reused, and abandoned where one hangs."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

IDLE_SECONDS = 10.0
"""How long a thread waits for more work before it ends."""
_ENDS_THE_CALLER = (SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration, asyncio.CancelledError)


class WorkerThreads:
    """Grows by a thread only when all are busy. Threads are daemons: none of them delays the end of the process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        """Waiting threads that no queued job is meant for."""

    async def run(self, function: Callable[[], object]) -> object:
        """Runs `function` in a thread, in the caller's context. A caller that stops waiting abandons it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[object] = loop.create_future()
        context = contextvars.copy_context()

        def job() -> None:
            try:
                answer = context.run(function)
            except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
                settle(_harmless(error), None)
            else:
                settle(None, answer)

        def settle(error: BaseException | None, answer: object) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_deliver, future, error, answer)

        self._submit(job)
        return await future

    def _submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            spare = self._idle > 0
            self._idle -= spare
        self._jobs.put(job)
        if not spare:
            threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                if self._retired():
                    return
                continue
            job()
            del job  # what it holds must not live until the next one comes
            with self._lock:
                self._idle += 1

    def _retired(self) -> bool:
        with self._lock:
            if not self._idle:
                return False  # a job is on its way to this thread
            self._idle -= 1
            return True


def _harmless(error: BaseException) -> BaseException:
    """What would end or confuse the caller's loop becomes an ordinary error of the function."""
    if not isinstance(error, _ENDS_THE_CALLER):
        return error
    wrapped = RuntimeError(f"the handler raised {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped


def _deliver(future: asyncio.Future[object], error: BaseException | None, answer: object) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(answer)
    else:
        future.set_exception(error)
