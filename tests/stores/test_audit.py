"""Owns the tests of tampering that an audit of the chain finds, and of the one that it cannot."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.adapters.sql_store import SqlStore
from engine.domain.errors import AgentctlError
from engine.domain.events import hash_of
from engine.domain.ids import RunId
from engine.ports import Head
from engine.runtime.audit import verify
from tests.contracts.store import NOW, piece, started, texts

RUN = RunId("r1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log of six events, one more Run, and no triggers: as somebody with the file may leave it."""
    store = SqlStore.open(str(tmp_path / "runs.db"))
    store.append(piece(store, "r1", started(), *texts("b", "c", "d", "e", "f")))
    store.append(piece(store, "r2", started(), *texts("other")))
    store.close()
    connection = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.close()
    return tmp_path / "runs.db"


def tamper(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


AT = "WHERE run_id = 'r1' AND seq = "


@pytest.mark.parametrize(
    ("statements", "seq", "what"),
    [
        ([f"UPDATE events SET payload = '{{\"text\":\"x\"}}' {AT}3"], 3, "does not fit its content"),
        ([f"UPDATE events SET payload = 'no json' {AT}3"], 3, "does not fit its content"),
        ([f"UPDATE events SET payload = CAST(x'ff00' AS TEXT) {AT}3"], 3, "no version stores"),
        ([f"UPDATE events SET payload = x'7b7d' {AT}3"], 3, "no version stores"),
        ([f"UPDATE events SET kind = 'RunCompleted' {AT}2"], 2, "(a `RunCompleted`)"),
        ([f"UPDATE events SET kind = 'Unheard' {AT}2"], 2, "(a `Unheard`)"),
        ([f"UPDATE events SET actor = '{{\"id\":\"eve\",\"type\":\"person\"}}' {AT}2"], 2, "does not fit"),
        ([f"UPDATE events SET claim_epoch = 9 {AT}6"], 6, "does not fit"),
        ([f"UPDATE events SET recorded_at = '2020-01-01T00:00:00.000000Z' {AT}1"], 1, "does not fit"),
        ([f"UPDATE events SET recorded_at = '2026-06-30T12:00:00.123456+00:00' {AT}1"], 1, "does not fit"),
        ([f"UPDATE events SET recorded_at = 'yesterday' {AT}1"], 1, "no version stores"),
        ([f"UPDATE events SET hash = '{'0' * 64}' {AT}4"], 4, "does not fit"),
        ([f"UPDATE events SET previous = '{'0' * 64}' {AT}4"], 4, "does not follow event 3"),
        ([f"DELETE FROM events {AT}4"], 4, "it is missing: event 5 follows event 3"),
        ([f"DELETE FROM events {AT}1"], 1, "it is missing"),
        (
            [
                f"UPDATE events SET seq = 99 {AT}3",
                f"UPDATE events SET seq = 3 {AT}4",
                f"UPDATE events SET seq = 4 {AT}99",
            ],
            3,
            "does not follow event 2",
        ),
        (["DELETE FROM events WHERE run_id = 'r1' AND seq > 4"], 5, "the log ends after event 4"),
        (["DELETE FROM events WHERE run_id = 'r1'"], 1, "the log ends after event 0"),
        (
            [
                "INSERT INTO events SELECT run_id, 7, kind, recorded_at, actor, claim_epoch, payload, hash, hash "
                f"FROM events {AT}6"
            ],
            7,
            "does not fit",
        ),
        (
            [f"DELETE FROM events {AT}2", "UPDATE events SET run_id = 'r1' WHERE run_id = 'r2' AND seq = 2"],
            2,
            "does not follow event 1",
        ),
    ],
)  # fmt: skip
def test_tampering_is_named_by_its_first_event(
    path: Path, opened: Callable[..., SqlStore], statements: list[str], seq: int, what: str
):
    tamper(path, *statements)
    store = opened(path)
    broken = verify(store, RUN).broken
    assert broken is not None
    assert broken.seq == seq
    assert what in broken.what
    if len(statements) == 1:
        assert verify(store, RunId("r2")).holds


def test_an_event_rewritten_with_a_fitting_hash_breaks_the_next_one(
    path: Path, opened: Callable[..., SqlStore]
):
    row = list(opened(path).rows(RUN))[2]
    forged = hash_of(RUN, 3, row.kind, NOW, row.actor, 0, '{"text":"x"}', row.previous)
    tamper(path, f"UPDATE events SET payload = '{{\"text\":\"x\"}}', hash = '{forged}' {AT}3")
    broken = verify(opened(path), RUN).broken
    assert broken is not None
    assert broken.seq == 4


def test_a_cut_tail_shows_only_against_a_head_kept_elsewhere(path: Path, opened: Callable[..., SqlStore]):
    witness = opened(path).head(RUN)
    (kept,) = [row.hash for row in opened(path).rows(RUN) if row.seq == 4]
    tamper(
        path,
        "DELETE FROM events WHERE run_id = 'r1' AND seq > 4",
        f"UPDATE runs SET seq = 4, hash = '{kept}' WHERE run_id = 'r1'",
    )
    store = opened(path)
    assert verify(store, RUN).head == Head(4, kept)
    assert verify(store, RUN).holds
    broken = verify(store, RUN, witness).broken
    assert broken is not None
    assert broken.seq == 5
    assert "the witnessed head is event 6" in broken.what


def test_reading_a_broken_event_is_one_clear_error(path: Path, opened: Callable[..., SqlStore]):
    for change in ("actor = 'nobody'", "recorded_at = 'yesterday'", "payload = 'no json'", "payload = x'ff'"):
        tamper(path, f"UPDATE events SET {change} {AT}3")
        with pytest.raises(AgentctlError) as caught:
            list(opened(path).events(RUN))
        assert caught.value.remedy
