"""Owns the event store in memory: the reference that every other store must match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from threading import RLock

from engine.adapters.refusals import (
    NEVER_CLAIMED,
    ClaimState,
    check_append,
    claim_held,
    claim_lost,
    held,
    refusal,
)
from engine.adapters.rows import blob_bytes, event_of, row_of
from engine.domain.canonical import digest
from engine.domain.errors import AgentctlError, ClaimHeld, ClaimLost
from engine.domain.events import Event, timestamp
from engine.domain.ids import RunId
from engine.ports import Append, Claim, Head, LoadedPolicy, Owner, RunSummary, StoredRow


class MemoryStore:
    """An EventStore that ends with its process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._logs: dict[RunId, list[Event]] = {}
        self._claims: dict[RunId, ClaimState] = {}
        self._summaries: dict[RunId, RunSummary] = {}
        self._blobs: dict[str, str] = {}
        self._policies: list[LoadedPolicy] = []

    def append(self, item: Append) -> None:
        error = self.append_all([item])[0]
        if error is not None:
            raise error

    def append_all(self, items: Sequence[Append]) -> list[AgentctlError | None]:
        with self._lock:
            return [self._append(item) for item in items]

    def _append(self, item: Append) -> AgentctlError | None:
        try:
            check_append(item)
            for named, text in item.blobs.items():
                blob_bytes(text, named)
        except AgentctlError as error:
            return error
        head, epoch = self.head(item.run), self._claim(item.run).epoch
        fits = head is None or head.hash == item.events[0].previous
        if (
            not fits
            or (head.seq if head else 0) != item.expected_seq
            or (item.claim and item.claim.epoch != epoch)
        ):
            return refusal(item, head, epoch)
        self._logs.setdefault(item.run, []).extend(item.events)
        self._blobs.update(item.blobs)
        if item.summary is not None:
            self._summaries[item.run] = item.summary
        return None

    def events(self, run: RunId, after: int = 0) -> Iterator[Event]:
        for row in self.rows(run, after):
            yield event_of(run, row)

    def rows(self, run: RunId, after: int = 0) -> Iterator[StoredRow]:
        while after < len(log := self._logs.get(run, [])):
            yield row_of(log[after])
            after += 1

    def head(self, run: RunId) -> Head | None:
        log = self._logs.get(run)
        return Head(log[-1].seq, log[-1].hash) if log else None

    def resolve(self, prefix: str) -> list[RunId]:
        with self._lock:
            return sorted(run for run in self._logs if run.startswith(prefix))[:10]

    def runs(
        self, *, status: str | None = None, policy: str | None = None, limit: int = 100
    ) -> list[RunSummary]:
        with self._lock:
            found = [
                replace(summary, seq=len(self._logs[run]))
                for run, summary in sorted(self._summaries.items(), reverse=True)
                if status in (None, summary.status) and policy in (None, summary.policy)
            ]
        return found[: max(limit, 0)]

    def rebuild(self, summarise: Callable[[RunId, Iterator[Event]], RunSummary]) -> int:
        """Computes the run list anew from the events; returns the number of Runs."""
        with self._lock:
            self._summaries = {run: summarise(run, self.events(run)) for run in self._logs}
            return len(self._summaries)

    def blob(self, digest: str) -> str | None:
        return self._blobs.get(digest)

    def put_blob(self, text: str) -> str:
        blob_bytes(text)
        name = digest(text)
        self._blobs[name] = text
        return name

    def claim(self, run: RunId, owner: Owner, now: datetime, ttl: timedelta) -> Claim:
        return held(self.claim_all([run], owner, now, ttl)[0])

    def renew(self, claim: Claim, now: datetime, ttl: timedelta) -> Claim:
        return held(self.renew_all([claim], now, ttl)[0])

    def release(self, claim: Claim) -> None:
        self.release_all([claim])

    def claim_all(
        self, runs: Sequence[RunId], owner: Owner, now: datetime, ttl: timedelta
    ) -> list[Claim | ClaimHeld]:
        with self._lock:
            return [self._take(run, owner, now, ttl) for run in runs]

    def renew_all(self, claims: Sequence[Claim], now: datetime, ttl: timedelta) -> list[Claim | ClaimLost]:
        with self._lock:
            return [self._prolong(claim, now, ttl) for claim in claims]

    def release_all(self, claims: Sequence[Claim]) -> None:
        with self._lock:
            for claim in claims:
                if self._claim(claim.run).epoch == claim.epoch:
                    self._claims[claim.run] = ClaimState(claim.epoch)

    def _take(self, run: RunId, owner: Owner, now: datetime, ttl: timedelta) -> Claim | ClaimHeld:
        newest = self._claim(run)
        holder = newest.holder(now)
        if holder is not None:
            return claim_held(run, holder, newest.since)
        claim = Claim(run, newest.epoch + 1, owner, now + ttl)
        self._claims[run] = ClaimState(claim.epoch, owner, timestamp(now), timestamp(claim.expires_at))
        return claim

    def _prolong(self, claim: Claim, now: datetime, ttl: timedelta) -> Claim | ClaimLost:
        newest = self._claim(claim.run)
        if newest.epoch != claim.epoch or newest.owner is None:
            return claim_lost(claim.run, claim.epoch, newest.epoch)
        self._claims[claim.run] = newest._replace(expires_at=timestamp(now + ttl))
        return replace(claim, expires_at=now + ttl)

    def _claim(self, run: RunId) -> ClaimState:
        return self._claims.get(run, NEVER_CLAIMED)

    def load_policy(self, loaded: LoadedPolicy) -> None:
        with self._lock:
            self._policies.append(loaded)

    def newest_policies(self, policy: str) -> list[LoadedPolicy]:
        with self._lock:
            newest = {
                (loaded.overlay, loaded.policy): loaded
                for loaded in self._policies
                if loaded.overlay or loaded.policy == policy
            }
        return [newest[key] for key in sorted(newest)]

    def close(self) -> None:
        """Nothing to give back."""
