"""Owns the only loop: does what `decide` says, makes facts durable, asks again.

Start and recovery are the same call: `drive`. Nothing says "recovering"; the log says what is so.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import timedelta

from engine.domain import events as e
from engine.domain.actors import MODEL
from engine.domain.canonical import Json, clean_text, parse_json
from engine.domain.errors import ClaimLost, Fault
from engine.domain.ids import RunId
from engine.domain.state import RunState
from engine.lifecycle import steps
from engine.lifecycle.context import Count
from engine.policy.arguments import SecretFinder
from engine.ports import (
    AttemptFailed,
    Claim,
    Clock,
    EventStore,
    ModelGateway,
    ModelRequest,
    ModelResponse,
    Owner,
    ToolExecutor,
)
from engine.runtime.dispatch import Dispatched, dispatch
from engine.runtime.journal import Journal, Observer
from engine.runtime.library import PolicyLibrary
from engine.runtime.outlook import View, estimate

CLAIM_TTL = timedelta(seconds=15)
RENEW_EVERY = 5.0
GRACE = 5.0
"""Seconds that running tools get to answer after a stop was asked for."""
ARGUMENTS_LIMIT = 256 * 1024
"""Code points of one call's raw arguments that are stored; a longer text is cut and the call rejected."""


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
        secrets: SecretFinder | None = None,
        count: Count = estimate,
    ) -> None:
        self._store = store
        self._secrets = secrets
        self._count = count
        self._gateway = gateway
        self._executor = executor
        self._clock = clock
        self._library = library
        self._owner = owner
        self._observers = tuple(observers)
        self._on_text = on_text
        self._crash_point = crash_point
        self._task: asyncio.Task[object] | None = None
        self._stopping = False

    def stop(self) -> None:
        """Asks the loop to leave the Run resumable: no new step, the model is not waited for, tools get a grace."""
        self._stopping = True
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._interrupt)

    def _interrupt(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()

    async def drive(self, run: RunId) -> Driven:
        """Works on the Run until it is over or must wait. Raises ClaimHeld, ClaimLost, StoreError."""
        claim = self._store.claim(run, self._owner, self._clock.now(), CLAIM_TTL)
        journal = Journal(
            self._store, run, self._clock,
            claim=claim, observers=self._observers, crash_point=self._crash_point,
        )  # fmt: skip
        self._task = asyncio.current_task()
        keeper = asyncio.create_task(self._keep(journal, claim))
        try:
            return await self._loop(journal)
        finally:
            keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeper
            self._task = None
            if journal.claim is not None:
                self._store.release(journal.claim)

    async def _keep(self, journal: Journal, claim: Claim) -> None:
        """Renews the claim while the loop works; a lost claim stops the loop at its next append."""
        while True:
            await asyncio.sleep(RENEW_EVERY)
            try:
                claim = self._store.renew(claim, self._clock.now(), CLAIM_TTL)
            except ClaimLost:
                self.stop()
                return
            journal.claim = claim

    async def _loop(self, journal: Journal) -> Driven:
        journal.load()
        view = View(self._library, self._gateway, journal, self._read_result, self._count, self._secrets)
        while True:
            view.refresh(journal)
            step = view.decider.next_step(journal.state, self._clock.now())
            if self._stopping or isinstance(step, steps.Wait | steps.Stop | steps.Done):
                if not journal.flush():
                    continue
                return Driven(journal.state, step, interrupted=self._stopping)
            await self._perform(journal, view, step)

    async def _perform(self, journal: Journal, view: View, step: steps.Step) -> None:
        match step:
            case steps.Record(bodies):
                for body in bodies:
                    journal.stage(body)
            case steps.AskModel():
                await self._ask(journal, view, step)
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
        if not journal.flush():
            return
        try:
            response = await self._gateway.propose(self._request(journal, view, step), self._on_text)
        except AttemptFailed as failure:
            journal.stage(_attempt_failed(step.start, failure), fact=True)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            interrupted = AttemptFailed("cut", "interrupted before the response closed")
            journal.stage(_attempt_failed(step.start, interrupted), fact=True)
            journal.flush_facts()
        else:
            journal.stage(_turn(step.start, response), actor=MODEL, fact=True)

    async def _pause(self, journal: Journal, seconds: float) -> bool:
        """Waits before another attempt; what is staged becomes durable first. False: decide again."""
        if not journal.flush():
            return False
        try:
            await self._clock.sleep(seconds)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        return not self._stopping

    def _request(self, journal: Journal, view: View, step: steps.AskModel) -> ModelRequest:
        return ModelRequest(
            run=journal.state.run,
            turn=step.start.turn,
            attempt=step.start.attempt,
            model=step.model,
            messages=view.conversation.sync(journal.state),
            tools=step.contract.tools,
            contract=step.contract.digest,
            results=self._read_result,
        )

    def _read_result(self, stored: e.StoredResult) -> Json:
        if stored.digest is None:
            return stored.value
        text = self._store.blob(stored.digest)
        if text is None:
            raise Fault(
                f"the result {stored.digest[:12]} is not in the store",
                remedy="the database lost a blob: restore it from a backup",
            )
        return parse_json(text)

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
        if not journal.flush():
            return
        self._crash("before effect")
        answers: dict[int, Dispatched] = {}
        try:
            await self._dispatch_all(journal, view, starts, answers)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            self._record(journal, view, answers)
            journal.flush_facts()
            return
        self._crash("after effect")
        self._record(journal, view, answers)

    async def _dispatch_all(
        self,
        journal: Journal,
        view: View,
        starts: tuple[e.ExecutionStarted, ...],
        answers: dict[int, Dispatched],
    ) -> None:
        async def one(index: int) -> None:
            start = starts[index]
            answers[index] = await dispatch(
                self._executor, self._clock, journal.state.run, view.spec(start.tool), start
            )

        if len(starts) == 1:
            await self._with_grace(one(0))
        else:
            await self._with_grace(_gather([one(index) for index in range(len(starts))]))

    async def _with_grace(self, work: Coroutine[object, object, None]) -> None:
        """A stop lets running tools answer for a while; what has not answered by then stays without a receipt."""
        task = asyncio.ensure_future(work) if self._task is not None else None
        if task is None:
            await work
            return
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not self._stopping:
                task.cancel()
                raise
            await asyncio.wait({task}, timeout=GRACE)
            if not task.done():
                task.cancel()
            raise

    def _record(self, journal: Journal, view: View, answers: dict[int, Dispatched]) -> None:
        """Receipts in proposal order, whatever the order in which they came."""
        for index in sorted(answers):
            answered = answers[index]
            journal.stage(answered.receipt, fact=True, blobs=answered.blobs)
            concluded = view.decider.follows(journal.state, answered.receipt, self._clock.now())
            if concluded is not None:
                journal.stage(concluded)

    def _crash(self, where: str) -> None:
        if self._crash_point is not None:
            self._crash_point(where)


async def _gather(work: list[Coroutine[object, object, None]]) -> None:
    await asyncio.gather(*work)


def _attempt_failed(start: e.ModelAttemptStarted, failure: AttemptFailed) -> e.ModelAttemptFailed:
    return e.ModelAttemptFailed(
        turn=start.turn,
        attempt=start.attempt,
        error=failure.error,
        message=clean_text(failure.message[:2000])[0],
        retry_after=failure.retry_after,
        usage=failure.usage,
        cost_usd=failure.cost_usd,
    )


def _turn(start: e.ModelAttemptStarted, response: ModelResponse) -> e.ModelTurnRecorded:
    """The closed response as the Host stores it, in the order and the words in which it came."""
    return e.ModelTurnRecorded(
        turn=start.turn,
        attempt=start.attempt,
        model=response.model,
        contract=start.contract,
        epoch=start.epoch,
        text=clean_text(response.text)[0],
        parts=response.parts,
        proposals=tuple(
            _proposal(ordinal, call.tool, call.arguments, call.provider_id)
            for ordinal, call in enumerate(response.calls, start=1)
        ),
        finish=response.finish,
        usage=response.usage,
        cost_usd=response.cost_usd,
        request_id=response.request_id,
        state_versions=start.state_versions,
    )


def _proposal(ordinal: int, tool: str, arguments: str, provider_id: str | None) -> e.Proposal:
    text, sanitised = clean_text(arguments[:ARGUMENTS_LIMIT])
    return e.Proposal(
        ordinal=ordinal,
        tool=clean_text(tool[:300])[0],
        arguments=text,
        provider_id=clean_text(provider_id[:200])[0] if provider_id else None,
        cut_from=len(arguments) if len(arguments) > ARGUMENTS_LIMIT else None,
        sanitised=sanitised,
    )
