"""Owns everything in which SQLite and PostgreSQL differ: connections, transactions, triggers, error numbers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from engine.adapters.sql_schema import APPEND_ONLY
from engine.domain.errors import StoreError

DEFAULT_FOLDER = ".agentctl"
"""The only folder that opening a database creates."""

Values = tuple[object, ...] | list[tuple[object, ...]]
"""Of one row, or of several."""

_WAL_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a database failure means. Passing trouble is worth another try."""

    what: str
    remedy: str
    passing: bool = False
    disconnected: bool = False
    """The connection is gone, and with it the knowledge whether a commit came through."""

    def error(self, name: str) -> StoreError:
        return StoreError(f"the database `{name}` {self.what}", remedy=self.remedy)


class Dialect(Protocol):
    name: str
    """For messages: the path, or the URL without its password."""
    begin: str
    engine: sa.Engine

    def prepare(self, connection: sa.Connection) -> None:
        """Settings of a fresh connection."""
        ...

    def perform(self, connection: sa.Connection, text: str, values: Values = ()) -> int:
        """Runs what an append consists of, by the shortest way; returns how many rows it touched."""
        ...

    def lock_schema(self, connection: sa.Connection) -> None:
        """Within a transaction: one process at a time creates the tables."""
        ...

    def guards(self) -> list[str]:
        """DDL that keeps rows from being changed or deleted."""
        ...

    def in_transaction(self, raw: Any) -> bool: ...

    def trouble(self, error: DBAPIError) -> Trouble: ...

    def raw_text(self, raw: Any) -> Any:
        """A context in which text is read even if it is not UTF-8, for audits."""
        ...


def dialect_for(url: str, patience: float, create: bool) -> Dialect:
    """Takes a path or a URL. Raises StoreError for what cannot be a log; touches no database yet."""
    if "://" not in url:
        return SqliteDialect(sa.URL.create("sqlite", database=url), patience, create)
    try:
        parsed = sa.make_url(url)
    except (ArgumentError, ValueError) as error:
        raise _bad_url(url) from error
    if parsed.get_backend_name() == "sqlite":
        return SqliteDialect(parsed, patience, create)
    if parsed.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return PostgresDialect(parsed.set(drivername="postgresql+psycopg"), patience)
    raise _bad_url(parsed.render_as_string(hide_password=True))


def _bad_url(url: str) -> StoreError:
    return StoreError(
        f"`{url}` names no database that can hold the log",
        remedy="give a file such as `runs.db`, or `postgresql://USER@HOST/NAME`",
    )


class SqliteDialect:
    begin = "BEGIN IMMEDIATE"

    def __init__(self, url: sa.URL, patience: float, create: bool) -> None:
        path = url.database or ""
        if path in ("", ":memory:") or "mode=memory" in path:
            raise StoreError(
                "a log in memory would be lost with the process", remedy="give a file such as `runs.db`"
            )
        self.name = path
        self._patience = patience
        if not path.startswith("file:"):
            _check_place(Path(path), create)
        self.engine = sa.create_engine(
            url.set(drivername="sqlite+pysqlite"),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args={"check_same_thread": False, "timeout": min(patience, 0.5)},
        )

    def prepare(self, connection: sa.Connection) -> None:
        run = connection.exec_driver_sql
        run(f"PRAGMA busy_timeout={int(min(self._patience, 0.5) * 1000)}")
        if run("PRAGMA journal_mode").scalar_one() != "wal" and not self._read_only(connection):
            mode = run("PRAGMA journal_mode=WAL").scalar_one()
            if mode != "wal":
                raise StoreError(
                    f"the database `{self.name}` lies on a file system without write-ahead logging",
                    remedy="put it on a local disk",
                )
        run("PRAGMA synchronous=FULL")
        run(f"PRAGMA journal_size_limit={_WAL_LIMIT}")

    def perform(self, connection: sa.Connection, text: str, values: Values = ()) -> int:
        """Straight to the driver: a Run's append is four statements, and each costs more on the way than in SQLite."""
        driver: Any = connection.connection.driver_connection
        try:
            run = driver.executemany if isinstance(values, list) else driver.execute
            return int(run(text, values).rowcount)
        except sqlite3.Error as error:
            raise DBAPIError.instance(text, None, error, sqlite3.Error) from error

    @staticmethod
    def _read_only(connection: sa.Connection) -> bool:
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        except DBAPIError as error:
            if _sqlite_code(error) == sqlite3.SQLITE_READONLY:
                return True
            raise
        connection.exec_driver_sql("ROLLBACK")
        return False

    def lock_schema(self, connection: sa.Connection) -> None:
        """BEGIN IMMEDIATE did it."""

    def guards(self) -> list[str]:
        made = []
        for table in APPEND_ONLY:
            key = " AND ".join(f"{column.name} = NEW.{column.name}" for column in table.primary_key)
            refuse = f"BEGIN SELECT RAISE(ABORT, '{table.name} is append-only'); END"
            made += [
                f"CREATE TRIGGER {table.name}_no_update BEFORE UPDATE ON {table.name} {refuse}",
                f"CREATE TRIGGER {table.name}_no_delete BEFORE DELETE ON {table.name} {refuse}",
                # INSERT OR REPLACE deletes without firing the trigger above.
                f"CREATE TRIGGER {table.name}_no_replace BEFORE INSERT ON {table.name} "
                f"WHEN EXISTS (SELECT 1 FROM {table.name} WHERE {key}) {refuse}",
            ]
        return made

    def in_transaction(self, raw: Any) -> bool:
        return bool(raw.in_transaction)

    def trouble(self, error: DBAPIError) -> Trouble:
        return _SQLITE.get(_sqlite_code(error)) or Trouble(
            f"failed: {error.orig}", "see the message of SQLite; a copy of the file is a backup"
        )

    @contextmanager
    def raw_text(self, raw: Any) -> Iterator[None]:
        raw.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        try:
            yield
        finally:
            raw.text_factory = str


def _check_place(path: Path, create: bool) -> None:
    folder = path.parent
    if path.is_dir():
        raise StoreError(f"`{path}` is a folder, not a database", remedy="give the file in it")
    if path.exists():
        return
    if not create:
        raise StoreError(
            f"there is no database at `{path}`", remedy="name it with `--db`; `agentctl run` makes one"
        )
    try:
        if folder.name == DEFAULT_FOLDER:
            folder.mkdir(exist_ok=True)
        found = folder.is_dir()
    except OSError as error:
        raise StoreError(
            f"the folder `{folder}` cannot be made: {error.strerror}",
            remedy="make it, or name another database with `--db`",
        ) from error
    if not found:
        raise StoreError(
            f"the folder `{folder}` for the database does not exist",
            remedy=f"make it with `mkdir -p {folder}`, or name another database with `--db`",
        )


def _sqlite_code(error: DBAPIError) -> int:
    return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF


_SQLITE = {
    sqlite3.SQLITE_BUSY: Trouble(
        "stayed locked by another process", "end the program that holds it, then try again", passing=True
    ),
    sqlite3.SQLITE_LOCKED: Trouble(
        "stayed locked", "end the program that holds it, then try again", passing=True
    ),
    sqlite3.SQLITE_READONLY: Trouble(
        "is read-only", "make the file and its folder writable, or name another database with `--db`"
    ),
    sqlite3.SQLITE_FULL: Trouble(
        "cannot grow: the disk is full",
        "free some space, then `agentctl resume` goes on; nothing is half-written",
    ),
    sqlite3.SQLITE_IOERR: Trouble(
        "cannot be read or written by the system", "check the disk, its quota and its mount, then try again"
    ),
    sqlite3.SQLITE_NOTADB: Trouble("is not an SQLite database", "name another file with `--db`"),
    sqlite3.SQLITE_CORRUPT: Trouble(
        "is damaged", "restore a backup; `sqlite3 FILE .recover` saves what is left"
    ),
    sqlite3.SQLITE_CANTOPEN: Trouble(
        "cannot be opened", "check the path and the permissions of the file and its folder"
    ),
    sqlite3.SQLITE_PERM: Trouble("cannot be opened", "check the permissions of the file and its folder"),
    sqlite3.SQLITE_CONSTRAINT: Trouble(
        "holds rows that no append made", "`agentctl verify RUN` names the first of them; restore a backup"
    ),
}


class PostgresDialect:
    begin = "BEGIN ISOLATION LEVEL READ COMMITTED"

    def __init__(self, url: sa.URL, patience: float) -> None:
        self.name = url.render_as_string(hide_password=True)
        self._patience = patience
        try:
            self.engine = sa.create_engine(
                url,
                poolclass=NullPool,
                isolation_level="AUTOCOMMIT",
                paramstyle="format",
                connect_args={"client_encoding": "utf8"},
            )
        except (ImportError, NoSuchModuleError) as error:
            raise StoreError(
                "the PostgreSQL driver is not installed", remedy="`pip install 'agentctl[postgres]'`"
            ) from error
        except (ArgumentError, ValueError) as error:
            raise _bad_url(self.name) from error

    def prepare(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql(f"SET lock_timeout = '{max(1, int(self._patience * 1000))}ms'")
        connection.exec_driver_sql("SET synchronous_commit = on")

    def perform(self, connection: sa.Connection, text: str, values: Values = ()) -> int:
        return connection.exec_driver_sql(text, values).rowcount

    def lock_schema(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7163228064)")

    def guards(self) -> list[str]:
        made = [
            "CREATE FUNCTION agentctl_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION USING MESSAGE = TG_TABLE_NAME || ' is append-only'; END $$"
        ]
        for table in APPEND_ONLY:
            call = f"ON {table.name} FOR EACH {{}} EXECUTE FUNCTION agentctl_append_only()"
            made += [
                f"CREATE TRIGGER {table.name}_no_change BEFORE UPDATE OR DELETE {call.format('ROW')}",
                f"CREATE TRIGGER {table.name}_no_truncate BEFORE TRUNCATE {call.format('STATEMENT')}",
            ]
        return made

    def in_transaction(self, raw: Any) -> bool:
        return bool(raw.info.transaction_status)  # IDLE is 0

    def trouble(self, error: DBAPIError) -> Trouble:
        state = str(getattr(error.orig, "sqlstate", None) or "")
        if (
            error.connection_invalidated
            or state[:2] in ("08", "57")
            or (not state and _is_operational(error))
        ):
            return Trouble(
                f"cannot be reached: {_first_line(error)}",
                "check that the server runs and that host, name and password are right",
                passing=error.connection_invalidated or state[:2] == "57",
                disconnected=True,
            )
        return (
            _POSTGRES.get(state)
            or _POSTGRES.get(state[:2])
            or Trouble(f"refused: {_first_line(error)}", "see the message of PostgreSQL")
        )

    @contextmanager
    def raw_text(self, raw: Any) -> Iterator[None]:  # noqa: ARG002 - the server keeps text valid by itself
        yield


def _is_operational(error: DBAPIError) -> bool:
    return isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)


def _first_line(error: DBAPIError) -> str:
    return next(iter(str(error.orig).strip().splitlines()), "no reason given")


_POSTGRES = {
    "40001": Trouble("had conflicting transactions", "try again", passing=True),
    "40P01": Trouble("had a deadlock", "try again", passing=True),
    "55P03": Trouble("stayed locked by another session", "end the session that holds it, then try again"),
    "25006": Trouble("is read-only", "name the primary server with `--db`"),
    "53100": Trouble("cannot grow: the disk is full", "free some space, then `agentctl resume` goes on"),
    "53": Trouble("has no resources left", "raise the limits of the server, or try again later"),
    "28": Trouble("refused the login", "check user and password"),
    "3D": Trouble("does not exist", "create it with `createdb`, or name another with `--db`"),
    "42501": Trouble("does not permit this user to do that", "grant the rights on the tables of agentctl"),
    "23": Trouble(
        "holds rows that no append made", "`agentctl verify RUN` names the first of them; restore a backup"
    ),
    "XX": Trouble("is damaged", "restore a backup"),
}
