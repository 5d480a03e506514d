"""Owns the daemon threads that plain functions run in: reused, and abandoned where one hangs."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from engine.domain.calls import NotExecuted
from engine.ports import Left

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

    async def run(self, function: Callable[[], object], left: Left | None = None) -> object:
        """Runs `function` in a thread, in the caller's context. A caller that stops waiting abandons it; `left` is
        then told what it answers. One that nobody waits for any more is not begun."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[object] = loop.create_future()
        context = contextvars.copy_context()

        def job() -> None:
            if future.cancelled():
                _tell(left, NotExecuted("given up before it began"))
                return
            try:
                answer = context.run(function)
            except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
                settle(_harmless(error), None)
            else:
                settle(None, answer)

        def settle(error: BaseException | None, answer: object) -> None:
            if future.cancelled():  # nobody waits: the loop may be busy, or about to close
                _tell(left, answer if error is None else error)
                return
            try:
                loop.call_soon_threadsafe(deliver, error, answer)
            except RuntimeError:  # the loop is closed: nobody waits any more
                _tell(left, answer if error is None else error)

        def deliver(error: BaseException | None, answer: object) -> None:
            if not future.done():
                _deliver(future, error, answer)
            elif left is not None:
                self._submit(lambda: _tell(left, answer if error is None else error))

        self._submit(job)
        try:
            return await future
        except asyncio.CancelledError:
            if left is not None:
                left.given_up()
            raise

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
    if error is None:
        future.set_result(answer)
    else:
        future.set_exception(error)


def _tell(left: Left | None, answer: object) -> None:
    """An awaitable is no answer: nobody is left to await it."""
    if inspect.iscoroutine(answer):
        answer.close()
    if left is not None:
        left.answered(RuntimeError("no answer but an awaitable") if inspect.isawaitable(answer) else answer)
