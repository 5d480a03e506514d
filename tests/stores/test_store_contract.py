"""Owns the run of the store contract on memory, SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.adapters.memory_store import MemoryStore
from engine.adapters.sql_store import SqlStore
from engine.ports import EventStore
from tests.contracts.store import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def open_store(self) -> Callable[[], EventStore]:
        store = MemoryStore()
        return lambda: store


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path, opened: Callable[..., SqlStore]) -> Callable[[], EventStore]:
        return lambda: opened(tmp_path / "runs.db")


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def open_store(self, postgres_url: str, opened: Callable[..., SqlStore]) -> Callable[[], EventStore]:
        return lambda: opened(postgres_url)
