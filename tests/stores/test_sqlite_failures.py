"""Owns the tests of what an SQLite store says when its file, folder or disk does not do."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.adapters.sql_store import SqlStore
from engine.domain.errors import AgentctlError, NewerLog, StoreError
from engine.domain.ids import RunId
from engine.runtime.audit import verify
from tests.contracts.store import ELSEWHERE as OWNER
from tests.contracts.store import NOW, TTL, piece, started, texts

Open = Callable[..., SqlStore]
FORGED = "SELECT run_id, {}, kind, recorded_at, actor, 9, payload, previous, hash FROM events"


def refused(call: Callable[[], object]) -> StoreError:
    with pytest.raises(AgentctlError) as caught:
        call()
    assert isinstance(caught.value, StoreError)
    assert caught.value.remedy
    return caught.value


def edit(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_settings_keep_what_was_committed(tmp_path: Path, opened: Open):
    store = opened(tmp_path / "runs.db")
    pragma = {
        name: store._ready().exec_driver_sql(f"PRAGMA {name}").scalar_one()
        for name in ("journal_mode", "synchronous", "busy_timeout")
    }
    assert pragma == {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 500}


@pytest.mark.parametrize("prefix", ["", "sqlite:///", "sqlite+pysqlite:///"])
def test_a_path_and_a_url_name_the_same_file(tmp_path: Path, opened: Open, prefix: str):
    opened(tmp_path / "runs.db").append(piece(opened(tmp_path / "runs.db"), "r1", started()))
    assert opened(f"{prefix}{tmp_path}/runs.db").head(RunId("r1")) is not None


def test_only_the_default_folder_is_made(tmp_path: Path, opened: Open):
    opened(tmp_path / ".agentctl" / "agentctl.db")
    error = refused(lambda: SqlStore.open(str(tmp_path / "nowhere" / "runs.db")))
    assert "does not exist" in error.message
    assert not (tmp_path / "nowhere").exists()


def test_reading_makes_no_database(tmp_path: Path):
    error = refused(lambda: SqlStore.open(str(tmp_path / "runs.db"), create=False))
    assert "there is no database" in error.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["mysql://h/x", "sqlite://", ":memory:", "http://[", "x://", ""])
def test_a_url_that_holds_no_log_is_refused(url: str):
    refused(lambda: SqlStore.open(url))


def test_a_folder_is_no_database(tmp_path: Path):
    assert "is a folder" in refused(lambda: SqlStore.open(str(tmp_path))).message


def test_a_file_that_is_no_database_is_left_as_it_was(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("these are notes, not a database\n" * 100)
    assert "is not an SQLite database" in refused(lambda: SqlStore.open(str(path))).message
    assert path.read_text().startswith("these are notes")


def test_a_damaged_file_is_named(tmp_path: Path):
    path = tmp_path / "runs.db"
    store = SqlStore.open(str(path))
    store.append(piece(store, "r1", *texts(*["x" * 900] * 60)))
    store.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    assert "is damaged" in refused(lambda: list(SqlStore.open(str(path)).events(RunId("r1")))).message


def test_tables_of_a_newer_version_are_refused(tmp_path: Path, opened: Open):
    path = tmp_path / "runs.db"
    opened(path).close()
    edit(path, "UPDATE agentctl_schema SET version = 2")
    assert isinstance(refused(lambda: SqlStore.open(str(path))), NewerLog)


def test_a_database_with_other_tables_of_these_names_is_refused_and_left(tmp_path: Path):
    path = tmp_path / "other.db"
    edit(path, "CREATE TABLE events (x)")
    assert "failed: table events already exists" in refused(lambda: SqlStore.open(str(path))).message
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("events",)]
    connection.close()


def test_a_read_only_database_can_be_read_and_refuses_appends(tmp_path: Path, opened: Open):
    path = tmp_path / "runs.db"
    writer = opened(path)
    writer.append(piece(writer, "r1", started()))
    reader = opened(f"sqlite:///file:{path}?mode=ro&uri=true")
    assert len(list(reader.events(RunId("r1")))) == 1
    item = piece(reader, "r1", *texts("a"))
    for call in (
        lambda: reader.append(item),
        lambda: reader.put_blob("x"),
        lambda: reader.claim(RunId("r1"), OWNER, NOW, TTL),
    ):
        assert "is read-only" in refused(call).message
    writer.append(item)


def test_a_full_disk_refuses_the_append_whole_and_the_store_goes_on(tmp_path: Path, opened: Open):
    store = opened(tmp_path / "runs.db")
    store.append(piece(store, "r1", started()))
    connection = store._ready()
    pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 2}")
    item = piece(store, "r1", *texts(*["x" * 900] * 60))
    assert "the disk is full" in refused(lambda: store.append(item)).message
    assert store.head(RunId("r1")).seq == 1 == len(list(store.events(RunId("r1"))))  # type: ignore[union-attr]
    connection.exec_driver_sql("PRAGMA max_page_count=100000")
    store.append(item)
    assert verify(store, RunId("r1")).head.seq == 61


def test_a_file_that_may_not_grow_refuses_the_append_whole(tmp_path: Path):
    script = f"""
import resource, sys
from tests.stores.test_sqlite_failures import *
store = SqlStore.open({str(tmp_path / "runs.db")!r})
store.append(piece(store, "r1", started()))
item = piece(store, "r1", *texts("x" * 5_000_000))
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))
print(refused(lambda: store.append(item)).message)
assert store.head(RunId("r1")).seq == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.append(item)
assert verify(store, RunId("r1")).head.seq == 2
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "cannot" in done.stdout


def test_a_lock_held_past_the_patience_is_an_error_and_nothing_is_written(tmp_path: Path, opened: Open):
    store = opened(tmp_path / "runs.db", patience=0.2)
    item = piece(store, "r1", started())
    holder = sqlite3.connect(tmp_path / "runs.db", isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    before = time.monotonic()
    assert "stayed locked" in refused(lambda: store.append(item)).message
    assert time.monotonic() - before < 2
    assert store.head(RunId("r1")) is None
    patient = opened(tmp_path / "runs.db", patience=20)
    release = threading.Timer(0.8, holder.execute, ["ROLLBACK"])
    release.start()
    patient.append(item)
    release.join()
    holder.close()


def test_a_reader_in_a_transaction_stops_no_writer(tmp_path: Path, opened: Open):
    # NousResearch/hermes-agent#3385: long readers stopped writers and let the log grow.
    store = opened(tmp_path / "runs.db", patience=0.2)
    store.append(piece(store, "r1", started()))
    reader = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM events").fetchone() == (1,)
    for number in range(20):
        store.append(piece(store, "r1", *texts(str(number))))
    assert reader.execute("SELECT count(*) FROM events").fetchone() == (1,)
    reader.close()


def test_an_unfinished_reading_holds_no_transaction(tmp_path: Path, opened: Open):
    path = tmp_path / "runs.db"
    store = opened(path)
    for _ in range(4):
        store.append(piece(store, "r1", *texts(*["x" * 2000] * 200)))
    readings = [iter(opened(path).events(RunId("r1"))) for _ in range(7)]
    for reading in readings:
        next(reading)
    for _ in range(10):
        store.append(piece(store, "r1", *texts(*["x" * 2000] * 200)))
    store._ready().exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    assert (tmp_path / "runs.db-wal").stat().st_size == 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = '{}'",
        "DELETE FROM events WHERE seq = 2",
        f"INSERT OR REPLACE INTO events {FORGED.format('seq')}",
        "UPDATE policies_loaded SET version = 1",
    ],
)
def test_changing_a_stored_fact_is_refused(tmp_path: Path, opened: Open, statement: str):
    # Vigil-SOC/vigil#556: facts that were changed in place, and lost.
    store = opened(tmp_path / "runs.db")
    store.append(piece(store, "r1", started(), *texts("a")))
    edit(tmp_path / "runs.db", "INSERT INTO policies_loaded VALUES (1, 'p', 2, 'd', 'b', 't', 'ops', 0, 0)")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        edit(tmp_path / "runs.db", statement)
    assert verify(store, RunId("r1")).holds


def test_an_append_into_a_log_with_a_forged_next_event_is_an_error(tmp_path: Path, opened: Open):
    store = opened(tmp_path / "runs.db")
    store.append(piece(store, "r1", started()))
    edit(
        tmp_path / "runs.db",
        f"INSERT INTO events {FORGED.format(2)}",
    )
    assert "no append made" in refused(lambda: store.append(piece(store, "r1", *texts("a")))).message


def test_a_changed_blob_is_not_read(tmp_path: Path, opened: Open):
    store = opened(tmp_path / "runs.db")
    name = store.put_blob("the text")
    edit(tmp_path / "runs.db", "UPDATE blobs SET data = CAST('another' AS BLOB)")
    assert "was changed" in refused(lambda: store.blob(name)).message


def test_a_killed_writer_leaves_whole_appends(tmp_path: Path, opened: Open):
    script = f"""
from tests.stores.test_sqlite_failures import *
store = SqlStore.open({str(tmp_path / "runs.db")!r})
while True:
    store.append(piece(store, "r1", *texts("a", "b", "c"), blobs={{}}))
    print(store.head(RunId("r1")).seq, flush=True)
"""
    root = Path(__file__).resolve().parents[2]
    child = subprocess.Popen([sys.executable, "-c", script], cwd=root, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for _ in range(30):
        last = int(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    last = int((child.stdout.read().split() or [last])[-1])
    child.wait()
    child.stdout.close()
    store = opened(tmp_path / "runs.db")
    report = verify(store, RunId("r1"))
    assert report.holds
    assert report.head.seq % 3 == 0
    assert report.head.seq in (last, last + 3)
