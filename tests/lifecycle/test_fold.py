"""State is the fold of the log: live and stored agree after every event, twice is the same, old logs keep folding."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from engine.domain import events as e
from engine.domain.ids import RunId
from engine.domain.state import RunState
from engine.lifecycle.fold import apply, fold
from tests.conftest import Golden
from tests.lifecycle.recorded import GOLDEN, SCENES, read, timeline
from tests.runtime.bench import Bench, final, say

LOGS = sorted(GOLDEN.glob("*.jsonl"))


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_live_state_is_what_the_log_folds_to_after_every_commit(
    scene: Callable[[str], Bench], monkeypatch: pytest.MonkeyPatch
):
    checked = []

    def observe(bench: Bench) -> Callable[[e.Event, RunState], None]:
        def seen(event: e.Event, state: RunState) -> None:
            if event.seq == state.seq:
                assert state == fold(event.run, bench.store.events(event.run)), event.kind
                checked.append(event.seq)

        return seen

    async def adrive(bench: Bench, crash_point: Callable[[str], None] | None = None) -> object:
        return await bench.runtime().drive(bench.run, observers=[observe(bench)], crash_point=crash_point)

    monkeypatch.setattr(Bench, "adrive", adrive)
    scene(f"r{scene.__name__}")
    assert checked


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_folding_in_pieces_and_twice_gives_the_same_state(scene: Callable[[str], Bench]):
    bench = scene(f"r{scene.__name__}")
    log = bench.log
    whole = fold(bench.run, log)
    assert fold(bench.run, log) == whole
    piecewise = RunState(bench.run)
    for event in log:
        before = copy.deepcopy(piecewise)
        apply(piecewise, event)
        assert fold(bench.run, [event], before) == piecewise
    assert piecewise == whole


def test_a_fold_does_not_change_the_events():
    bench = Bench(say(("get_stock", {"sku": 1})), final())
    bench.drive()
    log = bench.log
    payloads = [e.payload_of(event.body) for event in log]
    fold(bench.run, log)
    fold(bench.run, log)
    assert [e.payload_of(event.body) for event in log] == payloads


# --- recorded logs ----------------------------------------------------------------------------------------------


def test_there_are_recorded_logs():
    assert LOGS


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_recorded_log_folds_to_its_timeline(path: Path, golden: Golden):
    golden(path.with_suffix(".txt"), timeline(read(path)))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_recorded_log_still_hashes_to_what_was_stored(path: Path):
    for run, events in groupby(read(path), key=lambda event: event.run):
        previous = e.GENESIS
        for event in events:
            assert event.previous == previous
            assert event.hash == e.hash_of(
                run, event.seq, event.kind, event.recorded_at, e.actor_text(event.actor),
                event.claim_epoch, event.payload, event.previous,
            )  # fmt: skip
            previous = event.hash


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_a_recorded_payload_is_what_its_body_is_stored_as(path: Path):
    """Reading and storing again gives the same bytes: no default was changed and no field was renamed."""
    for event in read(path):
        assert e.payload_of(event.body) == event.payload, event.kind


def test_every_event_kind_is_recorded():
    """A new kind needs a recording: `python -m tests.lifecycle.recorded NAME`."""
    recorded = {event.kind for path in LOGS for event in read(path)}
    assert set(e.BODIES) - recorded == NOT_RECORDED


NOT_RECORDED = frozenset(
    (
        "CompactionFailed", "CompactionStarted", "ContextCompacted", "EndorsementEnded", "InputOmitted",
        "StandingEnded", "StandingGranted", "ValueEndorsed",
    )
)  # fmt: skip
"""Kinds that no recorded Run has yet; whoever records one takes it out."""


def test_an_unknown_run_folds_to_nothing():
    assert fold(RunId("r0"), []) == RunState(RunId("r0"))
