"""Owns the property that a database, opened anew after each call, holds what the reference store holds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.adapters.memory_store import MemoryStore
from engine.adapters.sql_store import SqlStore
from engine.domain.errors import AgentctlError
from engine.domain.ids import RunId
from engine.ports import Append, Claim, EventStore, Head
from tests.contracts.store import ELSEWHERE, NOW, TTL, chain, summary, texts

RUNS = ("r1", "r2")
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"),
            st.sampled_from(RUNS),
            st.integers(1, 3),  # events
            st.integers(-1, 1),  # how far the expected seq is off
            st.sampled_from(["none", "newest", "older"]),  # claim
        ),
        st.tuples(
            st.sampled_from(["claim", "renew", "release", "renew all", "release all"]),
            st.sampled_from(RUNS),
            st.integers(0, 20),
        ),
    ),
    max_size=12,
)


def perform(store: EventStore, claims: dict[str, list[Claim]], operation: tuple) -> object:
    name, run, *rest = operation
    held = claims.setdefault(run, [])
    if name == "append":
        count, off, under = rest
        head = store.head(RunId(run)) or Head(0, "0" * 64)
        base = Head(max(head.seq + off, 0), head.hash)
        claim = None if under == "none" or not held else held[-1 if under == "newest" else 0]
        made = chain(run, *texts(*"abc"[:count]), after=base if base.seq else None)
        return store.append(Append(RunId(run), base.seq, made, claim, summary=summary(run, turns=base.seq)))
    now = NOW + timedelta(seconds=rest[0])
    if name == "claim":
        held.append(store.claim(RunId(run), ELSEWHERE, now, TTL))
        return held[-1]
    if name == "renew all":
        return [
            str(each) for each in store.renew_all([*claims.get("r2", []), *claims.get("r1", [])], now, TTL)
        ]
    if name == "release all":
        return store.release_all([each for some in claims.values() for each in some[-1:]])
    if not held:
        return None
    return store.renew(held[-1], now, TTL) if name == "renew" else store.release(held[-1])


def outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except AgentctlError as error:
        return type(error), error.message, error.remedy


def contents(store: EventStore) -> object:
    return (
        [list(store.events(RunId(run))) for run in RUNS],
        [store.head(RunId(run)) for run in RUNS],
        store.runs(),
        store.resolve("r"),
    )


@settings(max_examples=40, deadline=None)
@given(OPERATIONS)
def test_stores_agree_after_every_call(operations: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        reference, path = MemoryStore(), str(Path(folder) / "runs.db")
        theirs: dict[str, list[Claim]] = {}
        ours: dict[str, list[Claim]] = {}
        for operation in operations:
            expected = outcome(lambda op=operation: perform(reference, theirs, op))
            store = SqlStore.open(path)
            assert outcome(lambda op=operation, store=store: perform(store, ours, op)) == expected
            store.close()
            again = SqlStore.open(path)
            assert contents(again) == contents(reference)
            again.close()
