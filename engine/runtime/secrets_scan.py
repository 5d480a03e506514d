"""Owns the search of a stored log for registered secrets: what `agentctl verify --secrets` reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.domain import events as e
from engine.domain.errors import NewerLog
from engine.domain.ids import RunId
from engine.ports import EventStore, Secrets, StoredRow


@dataclass(frozen=True, slots=True)
class Leak:
    """A secret that is in the log; its value is named, never shown."""

    seq: int
    kind: str
    secret: str
    where: str
    """`the event`, or which of its blobs."""


def scan(store: EventStore, run: RunId, secrets: Secrets) -> list[Leak]:
    """Looks through every event as stored and every text that an event names by digest, in order."""
    found: list[Leak] = []
    for row in store.rows(run):
        texts = [("the event", f"{row.actor}\n{row.payload}"), *_blobs(store, row)]
        for where, text in texts:
            secret = secrets.find(text)
            if secret is not None:
                found.append(Leak(row.seq, row.kind, secret, where))
    return found


def _blobs(store: EventStore, row: StoredRow) -> Iterator[tuple[str, str]]:
    for what, digest in _named(row):
        text = store.blob(digest)
        if text is not None:
            yield f"blob of the {what}", text


def _named(row: StoredRow) -> Iterator[tuple[str, str]]:
    try:
        body = e.read_body(row.kind, row.payload)
    except NewerLog:
        return
    match body:
        case e.RunStarted(bundle=digest) | e.PolicyLoaded(bundle=digest):
            yield "policy", digest
        case e.ContractCompiled(digest=digest):
            yield "contract", digest
        case e.ReceiptRecorded(result=e.StoredResult(digest=str(digest))):
            yield "result", digest
        case _:
            return
