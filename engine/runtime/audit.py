"""Owns the audit of a stored log: does every event still hash to what was appended?

The chain alone cannot show that its last events were cut off. That shows where the store kept its own head, and
surely where a head was written down outside the database: pass it as `witness`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from engine.domain.errors import UsageError
from engine.domain.events import GENESIS, hash_of, timestamp
from engine.domain.ids import RunId
from engine.ports import EventStore, Head, StoredRow


@dataclass(frozen=True, slots=True)
class Break:
    """The first event that is not as it was appended."""

    seq: int
    what: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    run: RunId
    head: Head
    """The last event that holds; seq 0 where none does."""
    broken: Break | None = None

    @property
    def holds(self) -> bool:
        return self.broken is None


def verify(store: EventStore, run: RunId, witness: Head | None = None) -> VerifyReport:
    """Hashes the chain again, row by row as stored, and names the first event that does not hold.

    `witness` is a head of this Run that was kept elsewhere. Raises UsageError for an unknown Run, StoreError.
    """
    stored = store.head(run)
    head = Head(0, GENESIS)
    for row in store.rows(run):
        what = _break(run, row, head) or _contradicts(row, witness) or _contradicts(row, stored)
        if what:
            return VerifyReport(run, head, Break(head.seq + 1, what))
        head = Head(row.seq, row.hash)
    if stored is None and head.seq == 0:
        raise UsageError(f"there is no Run `{run}`", remedy="`agentctl runs` lists them")
    for known, where in ((witness, "the witnessed head"), (stored, "the store's own head")):
        if known is not None and known.seq > head.seq:
            what = f"the log ends after event {head.seq}, {where} is event {known.seq}"
            return VerifyReport(run, head, Break(head.seq + 1, what))
    return VerifyReport(run, head)


def _break(run: RunId, row: StoredRow, before: Head) -> str:
    if row.seq != before.seq + 1:
        return f"it is missing: event {row.seq} follows event {before.seq}"
    if row.previous != before.hash:
        return f"it does not follow event {before.seq}: the hash of the event before differs"
    try:
        recorded_at = datetime.fromisoformat(row.recorded_at)
        sealed = hash_of(
            run, row.seq, row.kind, recorded_at, row.actor, row.claim_epoch, row.payload, row.previous
        )
        same = sealed == row.hash and timestamp(recorded_at) == row.recorded_at
    except (ValueError, TypeError, AttributeError):
        return "it holds what no version stores"
    return "" if same else f"its stored hash does not fit its content (a `{row.kind}`)"


def _contradicts(row: StoredRow, known: Head | None) -> str:
    if known is None or known.seq != row.seq or known.hash == row.hash:
        return ""
    return "it is another event than the head that was kept: the log was written anew up to here"
