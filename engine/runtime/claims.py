"""Owns the claims that this process drives under: taken, renewed together while somebody works, given back."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from engine.domain.errors import AgentctlError, ClaimLost, StoreError
from engine.domain.ids import RunId
from engine.ports import Claim, Clock, EventStore, Owner
from engine.runtime.commit_queue import MAX_BATCH, CommitQueue, Gathered, outcome

_log = logging.getLogger("agentctl.claims")
CLAIM_TTL = timedelta(seconds=15)
RENEW_EVERY = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    claim: Claim
    lost: Callable[[ClaimLost], None]


class Claims:
    """For one event loop. With a commit queue, what many Runs ask for at a time is one transaction."""

    def __init__(
        self, store: EventStore, clock: Clock, owner: Owner, commits: CommitQueue | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._owner = owner
        self._commits = commits
        self._held: dict[RunId, _Held] = {}
        self._keeper: asyncio.Task[None] | None = None
        if commits is not None:
            self._taken: Gathered[RunId, Claim] = commits.gathered(self._claim_all)
            self._returned: Gathered[Claim, None] = commits.gathered(self._release_all)

    async def take(self, run: RunId, lost: Callable[[ClaimLost], None]) -> Claim:
        """The right to drive the Run, renewed until it is given back; `lost` is called once where that fails.

        Raises ClaimHeld, StoreError. A cancellation leaves nothing claimed.
        """
        claim = await self._take(run)
        self._held[run] = _Held(claim, lost)
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())
        return claim

    async def give_back(self, claim: Claim) -> None:
        """A claim already lost is no error. Raises StoreError."""
        self._held.pop(claim.run, None)
        if not self._held and self._keeper is not None:
            keeper, self._keeper = self._keeper, None
            keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeper
        if self._commits is None:
            self._store.release(claim)
        else:
            await outcome(self._returned.put(claim))

    async def _take(self, run: RunId) -> Claim:
        if self._commits is None:
            return self._store.claim(run, self._owner, self._clock.now(), CLAIM_TTL)
        asked = self._taken.put(run)
        try:
            return await outcome(asked)
        except asyncio.CancelledError:
            await outcome(self._returned.put(asked.result()))
            raise

    def _claim_all(self, runs: Sequence[RunId]) -> Sequence[Claim | AgentctlError]:
        return self._store.claim_all(runs, self._owner, self._clock.now(), CLAIM_TTL)

    def _release_all(self, claims: Sequence[Claim]) -> Sequence[None]:
        self._store.release_all(claims)
        return [None] * len(claims)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(RENEW_EVERY)
            held = list(self._held.values())
            for first in range(0, len(held), MAX_BATCH):
                await self._renew(held[first : first + MAX_BATCH])

    async def _renew(self, held: list[_Held]) -> None:
        claims = [each.claim for each in held]

        def renew() -> Sequence[Claim | ClaimLost]:
            return self._store.renew_all(claims, self._clock.now(), CLAIM_TTL)

        try:
            results = renew() if self._commits is None else await self._commits.call(renew)
        except StoreError as busy:
            _log.warning("%d claims could not be renewed, trying again: %s", len(claims), busy)
            return
        for each, result in zip(held, results, strict=True):
            if isinstance(result, ClaimLost) and self._held.get(each.claim.run) is each:
                del self._held[each.claim.run]
                each.lost(result)
