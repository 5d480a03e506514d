"""Owns one Run's log as its writer sees it: folded state, facts not yet durable, and the commit.

Facts are folded when they are staged and shown to nobody before they are durable. What others appended while
nothing was staged is folded onto the state at hand (`catch_up`). If somebody else appended between a stage and its
commit, the log is folded anew: what was derived is forgotten, what the Host already knows (a closed turn, receipts)
is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from engine.domain.actors import HOST, Actor
from engine.domain.canonical import Json, NotJson, parse_json
from engine.domain.errors import Conflict, Fault, UsageError
from engine.domain.events import GENESIS, Body, Event, StoredResult, seal
from engine.domain.ids import RunId
from engine.domain.state import RunState
from engine.lifecycle.fold import apply, fold
from engine.lifecycle.machine import Judge
from engine.ports import Append, Claim, Clock, EventStore, RunSummary, Secrets
from engine.runtime.commit_queue import CommitQueue
from engine.runtime.masking import masked_body

Observer = Callable[[Event, RunState], None]
"""Called with each durable event and the state that the events up to the commit fold to."""


SAY_IT_PLAINLY = "use text that is valid UTF-8"


class _Staged(NamedTuple):
    event: Event
    blobs: Mapping[str, str]
    fact: bool


class Journal:
    """The log of one Run, with room for what is about to be appended."""

    def __init__(
        self,
        store: EventStore,
        run: RunId,
        clock: Clock,
        *,
        claim: Claim | None = None,
        observers: Iterable[Observer] = (),
        crash_point: Callable[[str], None] | None = None,
        secrets: Secrets | None = None,
        commits: CommitQueue | None = None,
    ) -> None:
        self._secrets = secrets
        self._commits = commits
        self._store = store
        self._run = run
        self._clock = clock
        self._observers = tuple(observers)
        self._crash_point = crash_point
        self._staged: list[_Staged] = []
        self._durable_seq = 0
        self.claim = claim
        self.state = RunState(run)
        self._judge = Judge(self.state)
        self.generation = 0
        """Grows when the state was folded anew: views over the old one are void."""

    def load(self) -> RunState:
        """Folds what is stored. Raises UsageError for an unknown Run."""
        return self._fold(self._store.events(self._run))

    async def open(self) -> RunState:
        """`load` without holding up the other Runs of this process."""
        if self._commits is None:
            return self.load()
        return self._fold(await self._commits.events(self._run))

    async def catch_up(self) -> bool:
        """Folds what others appended since, while nothing is staged: as much work as there is news.

        Returns True if there was any. Views over the state stay good: it grew as if its own driver had appended.
        What another driver appended is left alone, so that the next append says that the claim is lost.
        """
        assert not self._staged, "what is staged would stand between the log and its news"
        if self._commits is None:
            newer = list(self._store.events(self._run, self._durable_seq))
        else:
            newer = await self._commits.events(self._run, self._durable_seq)
        own = self.claim.epoch if self.claim else 0
        if not newer or any(event.claim_epoch > own for event in newer):
            return False
        heads = [self.state.head, *(event.hash for event in newer)]
        if any(event.previous != head for event, head in zip(newer, heads, strict=False)):
            await self.open()  # the log is another one than was folded
            return True
        fold(self._run, newer, self.state)
        self._durable_seq = self.state.seq
        return True

    def _fold(self, events: Iterable[Event]) -> RunState:
        self.state = fold(self._run, events)
        if self.state.seq == 0:
            raise UsageError(f"there is no Run `{self._run}`", remedy="`agentctl runs` lists them")
        self._judge = Judge(self.state)
        self._durable_seq = self.state.seq
        self._staged.clear()
        self.generation += 1
        return self.state

    def read_result(self, stored: StoredResult) -> Json:
        """The value of a result, whether it is durable yet or not. Raises Fault where the database lost it."""
        if stored.digest is None:
            return stored.value
        kept = (staged.blobs.get(stored.digest) for staged in reversed(self._staged))
        text = next((each for each in kept if each is not None), None) or self._store.blob(stored.digest)
        if text is None:
            raise Fault(
                f"the result {stored.digest[:12]} is not in the store",
                remedy="the database lost a blob: restore it from a backup",
            )
        return parse_json(text)

    def stage(
        self,
        body: Body,
        *,
        actor: Actor = HOST,
        fact: bool = False,
        blobs: Mapping[str, str] | None = None,
    ) -> None:
        """Folds a body that the next `flush` makes durable. `fact`: it survives a conflict."""
        body = masked_body(body, self._secrets)
        epoch = self.claim.epoch if self.claim else 0
        event = seal(
            self._run,
            self.state.seq + 1,
            self._clock.now(),
            actor,
            epoch,
            body,
            self.state.head or GENESIS,
        )
        self._judge.admit(body)
        apply(self.state, event)
        self._staged.append(_Staged(event, blobs or {}, fact))

    def say(self, body: Body, actor: Actor) -> None:
        """Stages what a person or an application said. Raises UsageError where it is no text that can be stored."""
        try:
            self.stage(body, actor=actor)
        except NotJson as error:
            raise UsageError(f"what was said cannot be stored: {error}", remedy=SAY_IT_PLAINLY) from error

    def say_with(self, body: Body, actor: Actor, blobs: Mapping[str, str]) -> bool:
        """`say` with the texts that the fact names, and `flush`."""
        try:
            self.stage(body, actor=actor, blobs=blobs)
        except NotJson as error:
            raise UsageError(f"what was said cannot be stored: {error}", remedy=SAY_IT_PLAINLY) from error
        return self.flush()

    def flush(self) -> bool:
        """Makes the staged facts durable in one commit.

        Returns True if they are; False if the log had moved: then the state was folded anew, the Host's own
        facts were staged again, and whoever asks must decide again. Raises ClaimLost and StoreError.
        """
        if not self._staged:
            return True
        self._crash("before append")
        try:
            self._store.append(self._append())
        except Conflict:
            self._rebase()
            return False
        return self._durable()

    async def commit(self) -> bool:
        """`flush` without holding up the other Runs of this process, in one transaction with theirs.

        A cancellation waits until it is known whether the facts are durable. Raises as `flush` does.
        """
        if self._commits is None or not self._staged:
            return self.flush()
        self._crash("before append")
        try:
            await self._commits.append(self._append())
        except Conflict:
            self._rebase()
            return False
        return self._durable()

    def _durable(self) -> bool:
        self._crash("after append")
        done, self._staged = self._staged, []
        self._durable_seq = self.state.seq
        for staged in done:
            for observer in self._observers:
                observer(staged.event, self.state)
        return True

    def flush_facts(self) -> None:
        """Makes the staged facts durable even if the log moves meanwhile."""
        while not self.flush():
            pass

    def _append(self) -> Append:
        blobs: dict[str, str] = {}
        for staged in self._staged:
            blobs.update(staged.blobs)
        events = [staged.event for staged in self._staged]
        return Append(self._run, self._durable_seq, events, self.claim, blobs, summary_of(self.state))

    def _rebase(self) -> None:
        kept = [staged for staged in self._staged if staged.fact]
        self.load()
        for staged in kept:
            self.stage(staged.event.body, actor=staged.event.actor, fact=True, blobs=staged.blobs)

    def _crash(self, where: str) -> None:
        if self._crash_point is not None:
            self._crash_point(where)


def summary_of(state: RunState) -> RunSummary:
    """The row of the run list that this state shows."""
    assert state.started_at is not None
    assert state.updated_at is not None
    waiting = [state.calls[call] for call in state.open_calls]
    return RunSummary(
        run=state.run,
        policy=state.policy,
        policy_digest=state.policy_digest,
        status=state.status,
        turns=len(state.turns),
        started_at=state.started_at,
        updated_at=state.updated_at,
        seq=state.seq,
        principal=state.principal.id if state.principal else "",
        model=state.model,
        open_approvals=sum(1 for call in waiting if call.approval and not call.approval.decided),
        open_holds=len(state.open_holds),
        unknown_effects=len(state.unknown_calls),
        reason=state.ending[1] if state.ending else state.waiting_for,
    )
