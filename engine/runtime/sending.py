"""Owns what a drive has sent: dispatched together, waited for, and kept until its receipts are durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.domain.events import ExecutionStarted
from engine.domain.ids import CallId, RunId
from engine.domain.policy import ToolSpec
from engine.ports import Clock, Secrets, ToolExecutor
from engine.runtime.dispatch import Dispatched, dispatch
from engine.runtime.journal import Journal
from engine.runtime.late_answers import Expected, LateAnswers

GRACE = 5.0
"""Seconds that running tools get to answer after a stop was asked for."""


@dataclass(slots=True)
class Sent:
    """One dispatch until its receipt is durable."""

    start: ExecutionStarted
    expected: Expected | None
    answered: Dispatched | None = None


class Sending:
    """Of one drive. `stopping` says whether its end was asked for."""

    def __init__(
        self,
        run: RunId,
        executor: ToolExecutor,
        clock: Clock,
        secrets: Secrets | None,
        late: LateAnswers | None,
        stopping: Callable[[], bool],
    ) -> None:
        self._run = run
        self._executor = executor
        self._clock = clock
        self._secrets = secrets
        self._late = late
        self._stopping = stopping
        self._sent: list[Sent] = []

    def at_work(self, call: CallId) -> bool:
        """True while a handler of the call that nobody waits for any more still runs."""
        return self._late is not None and self._late.at_work(self._run, call)

    def expect(self, starts: Sequence[ExecutionStarted]) -> list[Sent]:
        """The dispatches of a step, before they are made."""
        sent = [Sent(start, self._late.expect(self._run, start) if self._late else None) for start in starts]
        self._sent += sent
        return sent

    async def dispatch(self, sent: Sequence[Sent], spec: Callable[[str], ToolSpec]) -> None:
        """Side by side. A stop lets running tools answer for a while; what has not answered by then, or by a
        cancellation, stays without a receipt."""
        task = asyncio.ensure_future(self._all(sent, spec))
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._stopping():
                await asyncio.wait({task}, timeout=GRACE)
            if not task.done():
                task.cancel()
            raise

    async def _all(self, sent: Sequence[Sent], spec: Callable[[str], ToolSpec]) -> None:
        if len(sent) == 1:
            await self._one(sent[0], spec)
        else:
            await asyncio.gather(*[self._one(each, spec) for each in sent])

    async def _one(self, sent: Sent, spec: Callable[[str], ToolSpec]) -> None:
        start = sent.start
        sent.answered = await dispatch(
            self._executor, self._clock, self._run, spec(start.tool), start, self._secrets, sent.expected
        )

    def record(self, journal: Journal, sent: Sequence[Sent]) -> None:
        """Receipts in proposal order, whatever the order in which they came."""
        for each in sent:
            if each.answered is not None:
                journal.stage(each.answered.receipt, fact=True, blobs=each.answered.blobs)

    def let_go(self) -> None:
        """What is known here of the effects that were sent is durable, or never will be by this drive."""
        sent, self._sent = self._sent, []
        for each in sent:
            if each.expected is not None:
                each.expected.let_go()

    def hand_over(self) -> None:
        """Receipts that came back and cannot be appended under this claim: others may settle the calls by them."""
        for each in self._sent:
            if each.answered is not None and each.expected is not None and self._late is not None:
                self._late.hand_over(self._run, each.start, each.answered)
