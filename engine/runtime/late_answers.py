"""Owns answers that come when nobody waits for them any more: the Host records each itself, as long as it lives.

Such an answer is of a tool whose thread was given up (a time-out, a stop), or it is a receipt that its driver could
no longer append (a claim that was lost, a store out of reach). It counts for the sending that it answers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

from engine.domain.actors import HOST
from engine.domain.calls import CallStatus, Failed, NotExecuted, Outcome
from engine.domain.errors import AgentctlError, StoreError
from engine.domain.events import ExecutionStarted, ReceiptRecorded
from engine.domain.ids import CallId, RunId
from engine.domain.policy import Kind, ToolSpec
from engine.domain.state import RunState
from engine.ports import Clock, EventStore, Left, Secrets
from engine.runtime.dispatch import Dispatched, sent_before
from engine.runtime.journal import Journal
from engine.runtime.library import PolicyLibrary
from engine.runtime.reconcile import late_receipt

_log = logging.getLogger("agentctl.tools")
TRY_AGAIN = (0.1, 1.0, 10.0, 60.0)
"""Seconds between tries to record an answer while the store is out of reach or the call is being sent again."""

_Made: TypeAlias = tuple[ReceiptRecorded, Mapping[str, str]]


class LateAnswers:
    """Of one Runtime. Safe to use from several threads."""

    def __init__(
        self, store: EventStore, clock: Clock, library: PolicyLibrary, secrets: Secrets | None
    ) -> None:
        self._store = store
        self._clock = clock
        self._library = library
        self._secrets = secrets
        self._lock = threading.Lock()
        self._working: set[tuple[RunId, CallId, int]] = set()
        """Dispatches that were given up and whose tool still works."""
        self._closed = False

    def expect(self, run: RunId, start: ExecutionStarted) -> Expected | None:
        """What hears of the dispatch if it is given up; None for a read, whose failure is known."""
        return None if start.tool_kind is Kind.READ else Expected(self, run, start)

    def at_work(self, run: RunId, call: CallId) -> bool:
        """True while a handler of the call that nobody waits for still runs in this process."""
        with self._lock:
            return any((run, call) == working[:2] for working in self._working)

    def close(self) -> None:
        """Nothing is recorded after this."""
        self._closed = True

    def hand_over(self, run: RunId, start: ExecutionStarted, answered: Dispatched) -> None:
        """A receipt that its driver could not append. Tried at once, then in the background."""
        receipt = answered.receipt
        if receipt.outcome is Outcome.UNKNOWN:
            return
        late = receipt.model_copy(update={"late": True, "settled_by": "tool"})

        def made(_: ToolSpec) -> _Made:
            return late, answered.blobs

        if not self._try(run, start, made):
            again = threading.Thread(
                target=self._record, args=(run, start, made), name="agentctl-late", daemon=True
            )
            again.start()

    # --- by `Expected` ------------------------------------------------------------------------------------

    def begin(self, expected: Expected) -> None:
        with self._lock:
            if not expected.over:
                self._working.add(expected.dispatch)

    def end(self, expected: Expected, answer: object) -> None:
        """The tool ended at last. What it raised, but for what says so, leaves the outcome as unknown as it was."""
        run, start = expected.run, expected.start
        try:
            if isinstance(answer, BaseException) and not isinstance(answer, Failed | NotExecuted):
                _log.error(
                    "call %s of run %s: given up, it raised %s", start.call, run, type(answer).__name__
                )
                return
            self._record(
                run, start, lambda spec: late_receipt(spec, start.call, answer, self._clock, self._secrets)
            )
        finally:
            with self._lock:
                expected.over = True
                self._working.discard(expected.dispatch)

    # --- the log ------------------------------------------------------------------------------------------

    def _record(self, run: RunId, start: ExecutionStarted, made: Callable[[ToolSpec], _Made]) -> None:
        for delay in (*TRY_AGAIN, None):
            if self._try(run, start, made):
                return
            if delay is None:
                _log.error("the late answer to call %s of run %s could not be recorded", start.call, run)
            else:
                time.sleep(delay)

    def _try(self, run: RunId, start: ExecutionStarted, made: Callable[[ToolSpec], _Made]) -> bool:
        """False: it is worth another try."""
        try:
            return self._append(run, start, made)
        except StoreError:
            return self._closed
        except AgentctlError as error:
            _log.error("the late answer to call %s of run %s cannot be recorded: %s", start.call, run, error)
            return True

    def _append(self, run: RunId, start: ExecutionStarted, made: Callable[[ToolSpec], _Made]) -> bool:
        if self._closed:
            return True
        journal = Journal(self._store, run, self._clock, secrets=self._secrets)
        journal.load()
        while True:
            spec = self._library.policy(journal.state.bundle).tools[start.tool]
            receipt, blobs = made(spec)
            wanted = _wanted(journal.state, spec, start, receipt.outcome)
            if not wanted:
                if wanted is False:
                    _log.info("call %s of run %s: a late answer was no news", start.call, run)
                return wanted is False
            if journal.say_with(receipt, HOST, blobs):
                return True


def _wanted(state: RunState, spec: ToolSpec, start: ExecutionStarted, outcome: Outcome) -> bool | None:
    """Whether the Run still wants to know; None: not before it is known what another sending of the call did.

    That one of several sendings had its effect settles the call. That one had none does not: another may have had it.
    """
    call = state.calls.get(start.call)
    if call is None or call.idempotency_key != start.idempotency_key:
        return False
    last = call.attempts == start.attempt
    settles = outcome is Outcome.CONFIRMED or (last and not sent_before(spec, start))
    if call.id in state.unknown_calls:
        return settles
    if call.status is not CallStatus.STARTED:
        return False
    return settles if last else None


class Expected(Left):
    """The dispatch of one effect: an answer that comes late waits here until its driver has let go of the call."""

    def __init__(self, late: LateAnswers, run: RunId, start: ExecutionStarted) -> None:
        self.run = run
        self.start = start
        self.over = False
        """The tool has ended, and what it answered is recorded if it can be."""
        self._late = late
        self._free = threading.Event()

    @property
    def dispatch(self) -> tuple[RunId, CallId, int]:
        return self.run, self.start.call, self.start.attempt

    def given_up(self) -> None:
        self._late.begin(self)

    def answered(self, answer: object) -> None:
        self._free.wait()
        self._late.end(self, answer)

    def let_go(self) -> None:
        """What its driver knows of the call is durable, or the driver is no more."""
        self._free.set()
