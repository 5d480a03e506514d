"""Owns the tests of what is PostgreSQL's own: triggers, lost connections, servers that are not there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.adapters.sql_store import SqlStore
from engine.domain.errors import StoreError
from engine.domain.ids import RunId
from engine.ports import Append, Head
from engine.runtime.audit import verify
from tests.contracts.store import chain, piece, started, texts

RUN = RunId("r1")


@pytest.mark.parametrize(
    "statement",
    ["UPDATE events SET payload = '{}'", "DELETE FROM events", "TRUNCATE events", "TRUNCATE policies_loaded"],
)
def test_changing_a_stored_fact_is_refused(
    postgres_url: str, opened: Callable[..., SqlStore], statement: str
):
    import psycopg

    store = opened(postgres_url)
    store.append(piece(store, "r1", started(), *texts("a")))
    with psycopg.connect(postgres_url) as connection, pytest.raises(psycopg.Error, match="append-only"):
        connection.execute(statement)
    assert verify(store, RUN).holds


def test_a_lost_connection_is_made_anew(postgres_url: str, opened: Callable[..., SqlStore]):
    import psycopg

    store = opened(postgres_url)
    item = piece(store, "r1", started(), *texts("a"))
    pid = store._ready().exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    store.append(item)
    assert verify(store, RUN).head.seq == 2


@pytest.mark.parametrize("meanwhile", [False, True], ids=["alone", "and somebody else appended since"])
def test_a_commit_whose_answer_was_lost_is_not_told_as_a_conflict(
    postgres_url: str, opened: Callable[..., SqlStore], monkeypatch: pytest.MonkeyPatch, meanwhile: bool
):
    """Told as one, its driver would append the same receipts once more."""
    import psycopg
    import sqlalchemy as sa

    store, somebody = opened(postgres_url), opened(postgres_url)
    item = piece(store, "r1", started())
    first = item.events[-1]
    theirs = chain("r1", *texts("a"), after=Head(first.seq, first.hash))
    run, cut = sa.Connection.exec_driver_sql, []

    def commit_then_lose(connection: sa.Connection, statement: str, *more: object) -> object:
        result = run(connection, statement, *more)
        if statement == "COMMIT" and not cut:
            cut.append(run(connection, "SELECT pg_backend_pid()").scalar_one())
            with psycopg.connect(postgres_url) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", cut)
            if meanwhile:
                somebody.append(Append(RUN, first.seq, theirs))
            run(connection, "SELECT 1")
        return result

    monkeypatch.setattr(sa.Connection, "exec_driver_sql", commit_then_lose)
    store.append(item)
    assert cut
    assert list(store.events(RUN)) == [*item.events, *(theirs if meanwhile else ())]


@pytest.mark.parametrize(
    "url", ["postgresql://127.0.0.1:1/none", "postgresql://nobody:secret@127.0.0.1:1/x?connect_timeout=1"]
)
def test_a_server_that_is_not_there_is_one_clear_error(url: str):
    pytest.importorskip("psycopg", exc_type=ImportError)
    with pytest.raises(StoreError) as caught:
        SqlStore.open(url)
    assert "cannot be reached" in caught.value.message
    assert "secret" not in caught.value.message
    assert caught.value.remedy


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(StoreError) as caught:
        SqlStore.open("postgresql://localhost/x")
    assert "agentctl[postgres]" in caught.value.remedy


def test_a_database_that_does_not_exist_is_named(postgres_server: str):
    with pytest.raises(StoreError, match="does not exist"):
        SqlStore.open(postgres_server.replace("/postgres?", "/nowhere?"))
