"""Owns which Run a person means: its id, an unambiguous beginning of it, or `last`."""

from __future__ import annotations

from typing import Final

from engine.domain.errors import UsageError
from engine.domain.ids import RunId
from engine.ports import EventStore

LAST: Final = "last"
"""The Run of a store that was started last."""


def run_of(store: EventStore, named: str) -> RunId:
    """The Run that is meant. Raises UsageError for none and for several."""
    found = store.resolve(named) if named else []
    if RunId(named) in found:
        return RunId(named)
    if named == LAST:
        return _newest(store)
    if not found:
        raise UsageError(f"there is no Run `{named}`", remedy="`agentctl runs` lists them")
    if len(found) > 1:
        listed = ", ".join(found[:3]) + (", …" if len(found) > 3 else "")
        raise UsageError(f"`{named}` fits several Runs: {listed}", remedy="give more of the id")
    return found[0]


def _newest(store: EventStore) -> RunId:
    newest = store.runs(limit=1)
    if not newest:
        raise UsageError(
            "there is no last Run: this database holds none",
            remedy="start one with `agentctl run`, or name another database with `--db`",
        )
    return newest[0].run
