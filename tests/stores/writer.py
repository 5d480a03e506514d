"""Owns the process of which store tests start several: it fills a Run of its own, then races for a shared one."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from engine.adapters.sql_store import SqlStore
from engine.domain.errors import AgentctlError, Conflict, UsageError
from engine.domain.ids import RunId
from engine.ports import Append
from tests.contracts.store import chain, piece, texts


def main(url: str, name: str, gate: str, own: int, shared: int) -> None:
    while not Path(gate).exists():
        time.sleep(0.001)
    store = SqlStore.open(url, patience=60)
    for number in range(own):
        store.append(piece(store, f"r-{name}", *texts(f"{name} {number}")))
    won = [number for number in range(shared) if _win(store, name, number)]
    store.close()
    print(json.dumps({"won": won}))


def _win(store: SqlStore, name: str, number: int) -> bool:
    """Tries once to append event `number` + 1 of the shared Run, when its turn has come."""
    run = RunId("shared")
    while True:
        head = store.head(run)
        if (head.seq if head else 0) > number:
            return False
        if (head.seq if head else 0) == number:
            break
    try:
        store.append(Append(run, number, chain(run, *texts(f"{name} {number}"), after=head)))
    except (Conflict, UsageError):
        return False
    return True


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    except AgentctlError as error:
        sys.exit(f"{error.message}; {error.remedy}")
