"""Owns the SQLite files of the example tools, and the table of what was done under which idempotency key."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from engine import NotExecuted

Result = dict[str, Any]
"""JSON-safe: dict, list, str, int, bool, None. Money is an int in minor units, times are RFC 3339 in UTC."""

DATA_FOLDER = Path(".agentctl")
LOCK_SECONDS = 10
_DONE = "create table done (tool text, key text, result text, done_at text, primary key (tool, key))"


class CallContext(Protocol):
    """What the Host says about the call that a tool carries out."""

    @property
    def idempotency_key(self) -> str | None: ...
    @property
    def run(self) -> str: ...
    @property
    def call(self) -> str: ...
    @property
    def now(self) -> datetime: ...
    @property
    def attempt(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Store:
    """A SQLite file that is created and seeded on first use; `variable` names another place for it."""

    variable: str
    default: Path
    schema: Sequence[str]
    seed: Callable[[sqlite3.Connection], None]

    def path(self) -> Path:
        return place(self.variable, self.default)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, one writer at a time. Raises NotExecuted where the file cannot be used."""
        path = self.path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("begin immediate")
                try:
                    self._prepare(connection)
                    yield connection
                    connection.execute("commit")
                finally:
                    if connection.in_transaction:
                        connection.execute("rollback")
        except (sqlite3.Error, OSError) as error:
            raise NotExecuted(
                f"the file `{path}` cannot be used: {error}; correct {self.variable} or the file"
            ) from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if connection.execute("select count(*) from sqlite_master").fetchone()[0]:
            return
        for statement in (_DONE, *self.schema):
            connection.execute(statement)
        self.seed(connection)


def place(variable: str, default: Path) -> Path:
    """The path that the environment variable names, else the default one."""
    return Path(os.environ.get(variable, "").strip() or default).expanduser()


def once(
    connection: sqlite3.Connection, tool: str, context: CallContext | None, act: Callable[[], Result]
) -> Result:
    """Acts and keeps the result under the call's key in the same transaction; the same key again returns it."""
    key = key_of(context)
    first = first_result(connection, tool, key)
    if first is None:
        first = act()
        remember(connection, tool, key, first, moment_of(context))
    return first


def key_of(context: CallContext | None) -> str:
    """The idempotency key of the call; without one a write cannot be told from its repetition."""
    if context is None or not context.idempotency_key:
        raise NotExecuted("a call that changes something needs an idempotency key")
    return context.idempotency_key


def first_result(connection: sqlite3.Connection, tool: str, key: str) -> Result | None:
    """What the tool did under the key, if it did."""
    row = connection.execute("select result from done where tool = ? and key = ?", (tool, key)).fetchone()
    return None if row is None else json.loads(row["result"])


def remember(connection: sqlite3.Connection, tool: str, key: str, result: Result, at: datetime) -> None:
    connection.execute(
        "insert or replace into done values (?, ?, ?, ?)", (tool, key, json.dumps(result), stamp(at))
    )


def moment_of(context: CallContext | None) -> datetime:
    """The Host's time of the call; the clock of the machine where nobody says."""
    return context.now if context is not None else datetime.now(UTC)


def stamp(at: datetime) -> str:
    """RFC 3339 in UTC to the microsecond, of one width, so that texts sort as times do."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
