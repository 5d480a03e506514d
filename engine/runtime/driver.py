"""Owns the only loop: does what `decide` says, makes facts durable, asks again.

Start and recovery are the same call: `drive`. Nothing says "recovering"; the log says what is so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from engine.domain import events as e
from engine.domain.actors import HOST, MODEL
from engine.domain.canonical import NotJson
from engine.domain.errors import AgentctlError, ClaimLost, Fault
from engine.domain.ids import RunId
from engine.domain.policy import ModelUse
from engine.domain.state import RunState
from engine.lifecycle import steps
from engine.lifecycle.context import Count
from engine.policy.contract import Contract
from engine.ports import (
    AttemptFailed,
    Clock,
    EventStore,
    InputMeter,
    ModelGateway,
    ModelRequest,
    ModelResponse,
    Owner,
    Secrets,
    ToolExecutor,
)
from engine.runtime.claims import Claims
from engine.runtime.commit_queue import CommitQueue
from engine.runtime.hearing import Hearing
from engine.runtime.journal import Journal, Observer
from engine.runtime.late_answers import LateAnswers
from engine.runtime.library import PolicyLibrary
from engine.runtime.loading import missed
from engine.runtime.outlook import View, estimate
from engine.runtime.responses import attempt_failed, closed_turn
from engine.runtime.sending import Sending
from engine.runtime.summaries import summary_failed, summary_of, summary_request

T = TypeVar("T")
LOOK_AFTER = 0.002
"""Seconds of a wait after which the log is looked at for what others appended: a look costs a hundredth of that."""


@dataclass(frozen=True, slots=True)
class Driven:
    """How a drive ended: over (`Done`), waiting (`Wait`), the model out of reach (`Stop`), or interrupted."""

    state: RunState
    step: steps.Step
    interrupted: bool = False


class Driver:
    """Drives Runs of one store with one gateway and one executor; one `drive` at a time per Driver."""

    def __init__(
        self,
        store: EventStore,
        gateway: ModelGateway,
        executor: ToolExecutor,
        clock: Clock,
        library: PolicyLibrary,
        owner: Owner,
        *,
        observers: Iterable[Observer] = (),
        on_text: Callable[[str], None] | None = None,
        crash_point: Callable[[str], None] | None = None,
        secrets: Secrets | None = None,
        count: Count = estimate,
        meter: InputMeter | None = None,
        commits: CommitQueue | None = None,
        claims: Claims | None = None,
        may_ask: Callable[[], bool] | None = None,
        model: str = "",
        late: LateAnswers | None = None,
    ) -> None:
        self._late = late
        self._model = model
        self._may_ask = may_ask
        self._meter = meter
        self._commits = commits
        self._claims = claims if claims is not None else Claims(store, clock, owner, commits)
        self._undivided = False
        self._interrupt_later = False
        self._store = store
        self._secrets = secrets
        self._count = count
        self._gateway = gateway
        self._executor = executor
        self._clock = clock
        self._library = library
        self._observers = tuple(observers)
        self._on_text = on_text
        self._crash_point = crash_point
        self._task: asyncio.Task[object] | None = None
        self._stopping = False
        self._lost: ClaimLost | None = None

    def stop(self) -> None:
        """Asks the loop to leave the Run resumable: no new step, the model is not waited for, tools get a grace."""
        self._stopping = True
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._interrupt)

    def _interrupt(self) -> None:
        """A commit is not interrupted: what it makes durable decides what was done."""
        if self._undivided:
            self._interrupt_later = True
        elif self._task is not None and not self._task.done():
            self._task.cancel()

    async def _whole(self, work: Coroutine[object, object, T]) -> T:
        """A stop waits until this is through."""
        self._undivided = True
        try:
            return await work
        finally:
            self._undivided = False
            if self._interrupt_later:
                self._interrupt_later = False
                asyncio.get_running_loop().call_soon(self._interrupt)

    async def _commit(self, journal: Journal) -> bool:
        durable = await self._whole(journal.commit())
        if durable:
            self._sending.let_go()
        return durable

    async def _hear(self, journal: Journal, began: float) -> bool:
        """After a wait that began at `began` (monotonic seconds): folds what others said meanwhile, before what came
        back is staged, so that its commit meets no newer log. True if there was anything."""
        if time.monotonic() - began < LOOK_AFTER:
            return False
        try:
            return await self._whole(journal.catch_up())
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            task.cancel()  # at the next wait: what came back is staged and made durable first
            return False

    async def drive(self, run: RunId) -> Driven:
        """Works on the Run until it is over or must wait. Raises ClaimHeld, ClaimLost, StoreError."""
        claim = await self._claims.take(run, self._lose)
        journal = Journal(
            self._store, run, self._clock,
            claim=claim, observers=self._observers, crash_point=self._crash_point,
            secrets=self._secrets, commits=self._commits,
        )  # fmt: skip
        self._sending = Sending(
            run, self._executor, self._clock, self._secrets, self._late, lambda: self._stopping
        )
        self._task = asyncio.current_task()
        try:
            driven = await self._loop(journal)
            if self._lost is not None and not driven.state.terminal:
                raise self._lost
            return driven
        except AgentctlError:
            self._sending.hand_over()
            raise
        finally:
            self._sending.let_go()
            self._task = None
            await self._claims.give_back(claim)

    def _lose(self, lost: ClaimLost) -> None:
        """Stops the loop at once: somebody else drives the Run."""
        self._lost = lost
        self.stop()

    async def _loop(self, journal: Journal) -> Driven:
        await self._whole(self._open(journal))
        find = self._secrets.find if self._secrets is not None else None
        view = View(
            self._library, self._gateway, journal, journal.read_result, self._count, find, self._meter,
            self._model, self._sending.at_work,
        )  # fmt: skip
        while True:
            view.refresh(journal)
            step = view.decider.next_step(journal.state, self._clock.now())
            if self._stopping or self._held_off(step) or _ends_the_drive(step):
                if not await self._commit(journal):
                    continue
                return Driven(journal.state, step, interrupted=self._stopping)
            await self._perform(journal, view, step)

    async def _open(self, journal: Journal) -> None:
        await journal.open()
        if not journal.state.terminal:
            for body, texts in await self._missed(journal.state):
                journal.stage(body, blobs=texts)

    async def _missed(self, state: RunState) -> Sequence[tuple[e.PolicyLoaded, Mapping[str, str]]]:
        if self._commits is None:
            return missed(self._store, self._library, state)
        return await self._commits.call(lambda: missed(self._store, self._library, state))

    def _held_off(self, step: steps.Step) -> bool:
        """True where the model would be asked next and whoever drives wants to stop just before that."""
        asks = isinstance(step, steps.AskModel | steps.Measure)
        return asks and self._may_ask is not None and not self._may_ask()

    async def _perform(self, journal: Journal, view: View, step: steps.Step) -> None:
        match step:
            case steps.Record(bodies):
                for body in bodies:
                    journal.stage(body)
            case steps.AskModel():
                await self._ask(journal, view, step)
            case steps.Measure(model, contract):
                await self._measure(journal, view, model, contract)
            case steps.Compact():
                await self._compact(journal, step)
            case steps.Execute(starts, before):
                await self._execute(journal, view, before, starts)
            case steps.Reconcile(start) | steps.Compensate(start):
                await self._execute(journal, view, (), (start,))
            case _:
                raise Fault(f"the driver cannot perform {step!r}", remedy="please report this")

    # --- the model ----------------------------------------------------------------------------------------

    async def _ask(self, journal: Journal, view: View, step: steps.AskModel) -> None:
        if step.wait > 0 and not await self._pause(journal, step.wait):
            return
        blobs = {step.contract.digest: step.contract.text}
        for body in (*step.bodies, step.start):
            journal.stage(body, blobs=blobs if isinstance(body, e.ContractCompiled) else None)
        if not await self._commit(journal):
            return
        hearing = Hearing(self._on_text, self._secrets) if self._on_text is not None else None
        began = time.monotonic()
        try:
            response = await self._gateway.propose(self._request(journal, view, step), hearing)
        except AttemptFailed as failure:
            await self._hear(journal, began)
            cost = self._cost(step.model, failure.usage, failure.cost_usd)
            journal.stage(attempt_failed(step.start, failure, cost), fact=True)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            interrupted = AttemptFailed("cut", "interrupted before the response closed")
            journal.stage(attempt_failed(step.start, interrupted, None), fact=True)
            journal.flush_facts()
        else:
            if hearing is not None:
                hearing.end()
            await self._hear(journal, began)
            self._close(journal, step, response)

    def _close(self, journal: Journal, step: steps.AskModel, response: ModelResponse) -> None:
        cost = self._cost(step.model, response.usage, response.cost_usd)
        try:
            journal.stage(closed_turn(step.start, response, cost, self._secrets), actor=MODEL, fact=True)
        except NotJson as error:
            message = f"the response cannot be stored: {error}"
            unstorable = AttemptFailed("invalid_response", message, usage=response.usage)
            journal.stage(attempt_failed(step.start, unstorable, cost), fact=True)

    def _cost(self, model: ModelUse, usage: e.Usage | None, told: Decimal | None) -> Decimal | None:
        """What the gateway says it cost, else its own price of what was used."""
        if told is not None or usage is None:
            return told
        return self._gateway.price(model, usage.input_tokens, usage.output_tokens)

    async def _measure(self, journal: Journal, view: View, model: ModelUse, contract: Contract) -> None:
        """What is staged becomes durable first: counting may take a while."""
        if not await self._commit(journal):
            return
        state = journal.state
        request = self._request_of(journal, view, model, contract, len(state.turns) + 1, state.attempts + 1)
        began = time.monotonic()
        try:
            await view.measure(state, request, contract)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        await self._hear(journal, began)

    async def _compact(self, journal: Journal, step: steps.Compact) -> None:
        journal.stage(step.start)
        if not await self._commit(journal):
            return
        state = journal.state
        request = summary_request(state.run, len(state.turns) + 1, step, journal.read_result)
        began = time.monotonic()
        try:
            response = await self._gateway.propose(request)
        except AttemptFailed as failure:
            await self._hear(journal, began)
            journal.stage(summary_failed(failure), fact=True)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            journal.stage(summary_failed(AttemptFailed("cut", "interrupted")), fact=True)
            journal.flush_facts()
        else:
            await self._hear(journal, began)
            summary = summary_of(step, response)
            author = MODEL if isinstance(summary, e.ContextCompacted) else HOST
            journal.stage(summary, actor=author, fact=True)

    async def _pause(self, journal: Journal, seconds: float) -> bool:
        """Waits before another attempt; what is staged becomes durable first. False: decide again."""
        if not await self._commit(journal):
            return False
        began = time.monotonic()
        try:
            await self._clock.sleep(seconds)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        return not await self._hear(journal, began) and not self._stopping

    def _request(self, journal: Journal, view: View, step: steps.AskModel) -> ModelRequest:
        start = step.start
        return self._request_of(journal, view, step.model, step.contract, start.turn, start.attempt)

    def _request_of(
        self, journal: Journal, view: View, model: ModelUse, contract: Contract, turn: int, attempt: int
    ) -> ModelRequest:
        return ModelRequest(
            run=journal.state.run,
            turn=turn,
            attempt=attempt,
            model=model,
            messages=view.messages(
                journal.state,
                journal.state.attempt.started_at if journal.state.attempt else self._clock.now(),
            ),
            tools=contract.tools,
            contract=contract.digest,
            results=journal.read_result,
        )

    # --- tools --------------------------------------------------------------------------------------------

    async def _execute(
        self,
        journal: Journal,
        view: View,
        before: tuple[e.Body, ...],
        starts: tuple[e.ExecutionStarted, ...],
    ) -> None:
        for body in (*before, *starts):
            journal.stage(body)
        if not await self._commit(journal):
            return
        self._crash("before effect")
        sent = self._sending.expect(starts)
        began = time.monotonic()
        try:
            await self._sending.dispatch(sent, view.spec)
        except asyncio.CancelledError:
            self._sending.record(journal, sent)
            journal.flush_facts()
            if not self._stopping:
                raise
            return
        self._crash("after effect")
        await self._hear(journal, began)
        self._sending.record(journal, sent)

    def _crash(self, where: str) -> None:
        if self._crash_point is not None:
            self._crash_point(where)


def _ends_the_drive(step: steps.Step) -> bool:
    return isinstance(step, steps.Wait | steps.Stop | steps.Done)
