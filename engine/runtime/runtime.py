"""Owns the face of a Runtime for applications: start, drive, watch and answer Runs of one store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.domain.actors import Actor, Principal
from engine.domain.calls import ToolCall
from engine.domain.canonical import Json, JsonObject, canonical, parse_json
from engine.domain.errors import AgentctlError, UsageError
from engine.domain.events import Event, SourceState, StoredResult
from engine.domain.ids import CallId, RunId
from engine.domain.policy import Policy
from engine.domain.state import RunState
from engine.lifecycle.fold import fold
from engine.lifecycle.typed_calls import calls_of
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
from engine.runtime import approvals, forking, loading, revoking, signals
from engine.runtime import reconcile as reconciling
from engine.runtime.claims import Claims
from engine.runtime.commit_queue import CommitQueue
from engine.runtime.driver import Driven, Driver
from engine.runtime.fleet import AT_ONCE, Fleet
from engine.runtime.forking import Fork, Forked
from engine.runtime.journal import Observer
from engine.runtime.late_answers import LateAnswers
from engine.runtime.library import PolicyLibrary
from engine.runtime.loading import Loading, OverlayText
from engine.runtime.masking import masked, masked_object
from engine.runtime.reconcile import Finding
from engine.runtime.start import Beginning, check_engine, check_models, check_prices, start_run


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
    instead: str = ""
    """A model that proposes instead of the one that a Run recorded; empty: none."""


class Runtime:
    """Runs of one store. Every method that changes a Run appends events; none needs the one before to be alive."""

    def __init__(self, parts: Parts, policy: Policy | None = None) -> None:
        self._parts = parts
        self._policy = policy
        self._library = PolicyLibrary(parts.store)
        self._late = LateAnswers(parts.store, parts.clock, self._library, parts.secrets)
        self._drivers: set[Driver] = set()
        self._fleets: list[Fleet] = []

    @property
    def store(self) -> EventStore:
        return self._parts.store

    @property
    def clock(self) -> Clock:
        return self._parts.clock

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
        state: Mapping[str, JsonObject] | None = None,
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
        beginning = self._beginning(chosen, input, principal, task or {}, grants or {}, state or {}, run)
        check_models([chosen], self._parts.model)
        check_prices(chosen, self._parts.gateway, self._parts.model)
        return start_run(self._parts.store, self._library, self._parts.executor, self._parts.clock, beginning)

    def _beginning(
        self,
        policy: Policy,
        text: str,
        principal: Principal,
        task: Mapping[str, Json],
        grants: Mapping[str, Sequence[JsonObject]],
        state: Mapping[str, JsonObject],
        run: str | None,
    ) -> Beginning:
        secrets = self._parts.secrets
        if secrets is not None:
            text, task = secrets.mask(text), masked_object(task, secrets)
            grants = {
                name: [masked_object(each, secrets) for each in given] for name, given in grants.items()
            }
            state = {name: masked_object(value, secrets) for name, value in state.items()}
            attrs = masked_object(principal.attrs, secrets)
            principal = principal.model_copy(update={"attrs": attrs})
        return Beginning(
            policy, text, principal, task, self._parts.model, grants, state, RunId(run) if run else None
        )

    async def drive(
        self,
        run: RunId,
        *,
        observers: Iterable[Observer] = (),
        on_text: Callable[[str], None] | None = None,
        crash_point: Callable[[str], None] | None = None,
    ) -> Driven:
        """Works on the Run until it is over or waits for somebody. Start and recovery are the same call."""
        driver = self._driver(observers=observers, on_text=on_text, crash_point=crash_point)
        self._drivers.add(driver)
        try:
            return await driver.drive(run)
        finally:
            self._drivers.discard(driver)

    async def drive_all(
        self, runs: Iterable[RunId], *, observers: Iterable[Observer] = (), at_once: int = AT_ONCE
    ) -> Mapping[RunId, Driven | AgentctlError]:
        """Works on many Runs side by side, whose commits share transactions. Ends when each is over or waits."""
        seen = tuple(observers)
        fleet = Fleet(
            self._parts.store,
            self._parts.clock,
            self._parts.owner,
            lambda commits, claims: self._driver(observers=seen, commits=commits, claims=claims),
            at_once=at_once,
        )
        self._fleets.append(fleet)
        try:
            return await fleet.drive(runs)
        finally:
            self._fleets.remove(fleet)

    def _driver(
        self,
        *,
        observers: Iterable[Observer],
        on_text: Callable[[str], None] | None = None,
        crash_point: Callable[[str], None] | None = None,
        commits: CommitQueue | None = None,
        claims: Claims | None = None,
    ) -> Driver:
        parts = self._parts
        return Driver(
            parts.store, parts.gateway, parts.executor, parts.clock, self._library, parts.owner,
            observers=observers, on_text=on_text, crash_point=crash_point,
            secrets=parts.secrets, meter=parts.meter, commits=commits, claims=claims, model=parts.instead,
            late=self._late,
        )  # fmt: skip

    def check(self, run: RunId) -> None:
        """Raises UsageError where this Runtime cannot drive the Run: handlers that are not there, a model that the
        Run's money budget cannot be kept with; NotBuiltYet and PolicyInvalid for its policy."""
        state = self.state(run)
        policy = self._library.policy(state.bundle)
        check_engine(policy, self._parts.executor)
        policies = [policy, *(self._library.policy(bundle) for bundle in state.restricted_by.values())]
        check_models(policies, self._parts.instead or state.model)
        check_prices(policy, self._parts.gateway, self._parts.instead or state.model)

    def drive_sync(self, run: RunId, *, observers: Iterable[Observer] = ()) -> Driven:
        """`drive` for callers without an event loop."""
        return asyncio.run(self.drive(run, observers=observers))

    def stop(self) -> None:
        """Leaves every Run that is being driven here resumable; safe from a signal handler or another thread."""
        for driver in list(self._drivers):
            driver.stop()
        for fleet in self._fleets:
            fleet.stop()

    # --- what people and applications say -----------------------------------------------------------------

    def reply(self, run: RunId, text: str, *, by: Actor) -> RunState:
        """One more user input; the result of the open question, if there is one."""
        parts = self._parts
        return signals.reply(parts.store, parts.clock, run, by, text, secrets=parts.secrets)

    def update_state(
        self,
        run: RunId,
        name: str,
        value: Mapping[str, Json],
        *,
        by: Actor,
        expected_version: int | None = None,
    ) -> RunState:
        """The application says what a state slice holds now; the Host gives the version. Raises Conflict."""
        parts = self._parts
        given = dict(value) if parts.secrets is None else masked_object(value, parts.secrets)
        return signals.update_state(
            parts.store, self._library, parts.clock, run, by, name, given, expected_version,
            secrets=parts.secrets,
        )  # fmt: skip

    def cancel(self, run: RunId, *, by: Actor, because: str = "") -> RunState:
        parts = self._parts
        return signals.cancel(parts.store, parts.clock, run, by, because, secrets=parts.secrets)

    def approve(
        self, run: RunId, call: CallId | str, *, by: Actor, decision: approvals.Approval | None = None
    ) -> RunState:
        """One person's yes to the stored call. Raises Refused if that person or that call is not eligible."""
        said, parts = decision or approvals.Approval(), self._parts
        secret = parts.secrets.find(canonical(said.edits)) if parts.secrets and said.edits else None
        if secret is not None:
            raise UsageError(
                f"the edit contains the registered secret `{secret}`",
                remedy="an argument never holds it: the tool itself reads it where it is kept",
            )
        return approvals.approve(
            parts.store, parts.clock, self._library, run, call, by, said, secrets=parts.secrets
        )

    def refuse(self, run: RunId, call: CallId | str, *, by: Actor, because: str = "") -> RunState:
        parts = self._parts
        return approvals.refuse(parts.store, parts.clock, run, call, by, because, secrets=parts.secrets)

    def reconcile(self, run: RunId, call: CallId | str, *, by: Actor, finding: Finding) -> RunState:
        """An operator's word about a call of unknown outcome. Raises Refused where the outcome is not in doubt."""
        parts = self._parts
        return reconciling.reconcile(
            parts.store, parts.clock, self._library, run, call, by, finding, parts.secrets
        )

    def late_answer(
        self, run: RunId, call: CallId, answer: object, *, key: str | None, by: Actor
    ) -> RunState:
        """The tool's own answer to a call that was given up as unknown, recorded as late; `answer` may be a
        Failed or NotExecuted. `key` is what the call was sent with. Raises Refused for a stray answer."""
        parts = self._parts
        return reconciling.late_answer(
            parts.store, parts.clock, self._library, run, call, by, key, answer, parts.secrets
        )

    def revoke(self, run: RunId, grant: str, *, by: Actor, because: str = "") -> RunState:
        """Takes back a grant, a standing approval or an endorsement, at once. Raises Refused for who may not."""
        parts = self._parts
        return revoking.revoke(
            parts.store, parts.clock, self._library, run, grant, by, because, secrets=parts.secrets
        )

    def set_source(
        self, run: RunId, source: str, state: SourceState, *, by: Actor, because: str = ""
    ) -> RunState:
        """What the Host knows of a source's state. Raises UsageError for a source that no policy of the Run has."""
        if not self.has_source(run, source):
            known = ", ".join(self._library.policy(self.state(run).bundle).sources) or "none"
            raise UsageError(f"Run `{run}` has no source `{source}`", remedy=f"its sources are: {known}")
        parts = self._parts
        return signals.set_source(
            parts.store, parts.clock, run, by, source, state, because, secrets=parts.secrets
        )

    def has_source(self, run: RunId, source: str) -> bool:
        return source in self._library.policy(self.state(run).bundle).sources

    def open_runs(self, policy: str | None = None) -> list[RunId]:
        """Runs that are not over."""
        return loading.open_runs(self._parts.store, policy)

    def load_policy(self, policy: Policy, *, by: Actor, drain: bool = False) -> Loading:
        """Makes a version of a policy known: it restricts open Runs of that policy at once, and new ones."""
        parts = self._parts
        return loading.load_policy(parts.store, self._library, parts.clock, policy, by, drain=drain)

    def load_overlay(self, overlay: OverlayText, *, by: Actor) -> Loading:
        """The same for an overlay, over every policy. Raises PolicyInvalid if it does not fit one of them."""
        return loading.load_overlay(self._parts.store, self._library, self._parts.clock, overlay, by)

    def fork(self, run: RunId, wanted: Fork, *, by: Actor) -> Forked:
        """A new Run from a prefix of this one; effects are never repeated. Raises UsageError."""
        parts = self._parts
        if parts.secrets is not None:
            answers = {call: masked(value, parts.secrets) for call, value in wanted.replace.items()}
            wanted = replace(wanted, replace=answers)
        return forking.fork(parts.store, self._library, parts.clock, run, wanted, by)

    # --- what can be read -----------------------------------------------------------------------------------

    def state(self, run: RunId) -> RunState:
        """The Run as its log says it is. Raises UsageError for an unknown Run."""
        state = fold(run, self._parts.store.events(run))
        if state.seq == 0:
            raise UsageError(f"there is no Run `{run}`", remedy="`agentctl runs` lists them")
        return state

    def calls(self, run: RunId) -> list[ToolCall]:
        """What became of the model's tool calls, as ReadCall, WriteCall and HybridCall."""
        return calls_of(self.state(run), self._read_result)

    def _read_result(self, stored: StoredResult) -> Json:
        if stored.digest is None:
            return stored.value
        text = self._parts.store.blob(stored.digest)
        return None if text is None else parse_json(text)

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
        """Output name -> its committed fields as the policy orders them, figures rendered; only what was published."""
        state = self.state(run)
        return {
            name: self._library.published(state.bundle, name, made.rendered)
            for name, made in state.publications.items()
        }

    def close(self) -> None:
        """Answers of handlers that were given up and still run are not recorded any more."""
        self._late.close()
        self._parts.store.close()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
