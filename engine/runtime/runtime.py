"""Owns the face of a Runtime for applications: start, drive, watch and answer Runs of one store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.domain.actors import Actor, Principal
from engine.domain.canonical import Json, JsonObject
from engine.domain.errors import UsageError
from engine.domain.events import Event
from engine.domain.ids import CallId, RunId
from engine.domain.policy import Policy
from engine.domain.state import RunState
from engine.lifecycle.fold import fold
from engine.ports import (
    Clock,
    EventStore,
    InputMeter,
    ModelGateway,
    Owner,
    RunSummary,
    Secrets,
    ToolExecutor,
)
from engine.runtime import approvals, signals
from engine.runtime.driver import Driven, Driver
from engine.runtime.journal import Observer
from engine.runtime.library import PolicyLibrary
from engine.runtime.start import Beginning, start_run


@dataclass(frozen=True, slots=True)
class Parts:
    """What a Runtime is made of; `bootstrap` chooses the adapters."""

    store: EventStore
    gateway: ModelGateway
    executor: ToolExecutor
    clock: Clock
    owner: Owner
    model: str
    """How the gateway is named in the log: a litellm id, `scripted/FILE` or `replay/RUN`."""
    secrets: Secrets | None = None
    """Values that must never enter the log."""
    meter: InputMeter | None = None
    """Counts a request near a budget; without one, estimates stand."""


class Runtime:
    """Runs of one store. Every method that changes a Run appends events; none needs the one before to be alive."""

    def __init__(self, parts: Parts, policy: Policy | None = None) -> None:
        self._parts = parts
        self._policy = policy
        self._library = PolicyLibrary(parts.store)
        self._drivers: dict[RunId, Driver] = {}

    @property
    def store(self) -> EventStore:
        return self._parts.store

    @property
    def library(self) -> PolicyLibrary:
        return self._library

    # --- a Run's life -------------------------------------------------------------------------------------

    def start(
        self,
        input: str,  # noqa: A002 - the word of the design
        *,
        principal: Principal,
        task: Mapping[str, Json] | None = None,
        grants: Mapping[str, Sequence[JsonObject]] | None = None,
        policy: Policy | None = None,
        run: str | None = None,
    ) -> RunId:
        """Records a new Run and its first input; nothing is proposed before `drive`.

        Raises UsageError for a task that does not fit, Refused for a principal that may not start,
        NotBuiltYet for a policy that needs more than this engine runs.
        """
        chosen = policy or self._policy
        if chosen is None:
            raise UsageError("this Runtime was opened without a policy", remedy="pass `policy=`")
        beginning = Beginning(
            chosen, input, principal, task or {}, self._parts.model, grants or {}, RunId(run) if run else None
        )
        return start_run(self._parts.store, self._library, self._parts.executor, self._parts.clock, beginning)

    async def drive(
        self,
        run: RunId,
        *,
        observers: Iterable[Observer] = (),
        on_text: Callable[[str], None] | None = None,
        crash_point: Callable[[str], None] | None = None,
    ) -> Driven:
        """Works on the Run until it is over or waits for somebody. Start and recovery are the same call."""
        parts = self._parts
        driver = Driver(
            parts.store, parts.gateway, parts.executor, parts.clock, self._library, parts.owner,
            observers=observers, on_text=on_text, crash_point=crash_point,
        )  # fmt: skip
        self._drivers[run] = driver
        try:
            return await driver.drive(run)
        finally:
            self._drivers.pop(run, None)

    def drive_sync(self, run: RunId, *, observers: Iterable[Observer] = ()) -> Driven:
        """`drive` for callers without an event loop."""
        return asyncio.run(self.drive(run, observers=observers))

    def stop(self) -> None:
        """Leaves every Run that is being driven here resumable; safe from a signal handler or another thread."""
        for driver in list(self._drivers.values()):
            driver.stop()

    # --- what people and applications say -----------------------------------------------------------------

    def reply(self, run: RunId, text: str, *, by: Actor) -> RunState:
        """One more user input; the result of the open question, if there is one."""
        return signals.reply(self._parts.store, self._parts.clock, run, by, text)

    def cancel(self, run: RunId, *, by: Actor, because: str = "") -> RunState:
        return signals.cancel(self._parts.store, self._parts.clock, run, by, because)

    def approve(
        self, run: RunId, call: CallId | str, *, by: Actor, decision: approvals.Approval | None = None
    ) -> RunState:
        """One person's yes to the stored call. Raises Refused if that person or that call is not eligible."""
        return approvals.approve(
            self._parts.store, self._parts.clock, run, call, by, decision or approvals.Approval()
        )

    def refuse(self, run: RunId, call: CallId | str, *, by: Actor, because: str = "") -> RunState:
        return approvals.refuse(self._parts.store, self._parts.clock, run, call, by, because)

    # --- what can be read -----------------------------------------------------------------------------------

    def state(self, run: RunId) -> RunState:
        """The Run as its log says it is. Raises UsageError for an unknown Run."""
        state = fold(run, self._parts.store.events(run))
        if state.seq == 0:
            raise UsageError(f"there is no Run `{run}`", remedy="`agentctl runs` lists them")
        return state

    def events(self, run: RunId, after: int = 0) -> Iterator[Event]:
        return self._parts.store.events(run, after)

    async def follow(self, run: RunId, after: int = 0, every: float = 0.2) -> AsyncIterator[Event]:
        """Events as they are appended, by whichever process, until the Run is over; `every` in seconds."""
        state = RunState(run)
        while True:
            for event in self._parts.store.events(run, state.seq):
                fold(run, (event,), state)
                if event.seq > after:
                    yield event
            if state.terminal:
                return
            await asyncio.sleep(every)

    def runs(
        self, *, status: str | None = None, policy: str | None = None, limit: int = 100
    ) -> list[RunSummary]:
        return self._parts.store.runs(status=status, policy=policy, limit=limit)

    def outputs(self, run: RunId) -> dict[str, JsonObject]:
        """Output name -> its committed fields, figures rendered; only what was published."""
        return {name: published.rendered for name, published in self.state(run).publications.items()}

    def close(self) -> None:
        self._parts.store.close()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
