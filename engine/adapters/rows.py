"""Owns the stored form of an event: one flat row of text and integers, the same in every database."""

from __future__ import annotations

import hashlib
from datetime import datetime
from functools import lru_cache

from engine.domain.canonical import digest
from engine.domain.errors import Fault, LogBroken, NewerLog, StoreError
from engine.domain.events import FORMAT, Event, RunStarted, actor_text, read_actor, read_body, timestamp
from engine.domain.ids import RunId
from engine.ports import StoredRow

_read_actor = lru_cache(maxsize=256)(read_actor)


def row_of(event: Event) -> StoredRow:
    return StoredRow(
        event.seq,
        event.kind,
        timestamp(event.recorded_at),
        actor_text(event.actor),
        event.claim_epoch,
        event.payload,
        event.previous,
        event.hash,
    )


def event_of(run: RunId, row: StoredRow) -> Event:
    """Reads a row. Raises NewerLog for what a newer version wrote, LogBroken for what none can have written."""
    body = read_body(row.kind, row.payload)
    if isinstance(body, RunStarted) and body.format > FORMAT:
        raise NewerLog(
            f"the log of Run `{run}` has format {body.format}; this version reads up to {FORMAT}",
            remedy="it was written by a newer agentctl: install that version to work on this Run",
        )
    try:
        recorded_at = datetime.fromisoformat(row.recorded_at)
        actor = _read_actor(row.actor)
    except (ValueError, TypeError) as error:
        raise LogBroken(
            f"event {row.seq} of Run `{run}` is not as any version stores it",
            remedy=f"`agentctl verify {run}` names the first event that was changed; restore a backup",
            seq=row.seq,
        ) from error
    return Event(run, row.seq, recorded_at, actor, row.claim_epoch, body, row.payload, row.previous, row.hash)


def blob_bytes(text: str, named: str | None = None) -> bytes:
    """What is stored of a large text. Raises Fault for a lone surrogate, or if `named` is not its digest."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Fault(
            f"a text with a lone surrogate (character {error.start + 1}) was to be stored",
            remedy="nothing was stored; report this",
        ) from error
    if named is not None and digest(text) != named:
        raise Fault(
            f"a text was to be stored under the wrong digest `{named}`",
            remedy="nothing was stored; report this",
        )
    return data


def text_of(data: bytes, named: str) -> str:
    """The large text stored under a digest. Raises StoreError where it is no longer that text."""
    if hashlib.sha256(data).hexdigest() != named:
        raise StoreError(f"the text stored under `{named}` was changed", remedy="restore a backup")
    return data.decode("utf-8")
