"""Owns the event store on SQLite and PostgreSQL."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import RLock
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from engine.adapters.refusals import check_append, held, refusal
from engine.adapters.rows import blob_bytes, event_of, row_of, text_of
from engine.adapters.sql_claims import ClaimRows
from engine.adapters.sql_dialects import Dialect, Trouble, dialect_for
from engine.adapters.sql_schema import METADATA, PAGE, SUMMARY, VERSION, Prepared, Statements
from engine.adapters.sql_schema import policies_loaded as policies
from engine.adapters.sql_schema import runs as runs_table
from engine.adapters.sql_schema import schema as schema_table
from engine.domain.canonical import digest
from engine.domain.errors import AgentctlError, ClaimHeld, ClaimLost, NewerLog
from engine.domain.events import Event, timestamp
from engine.domain.ids import RunId
from engine.ports import Append, Claim, Head, LoadedPolicy, Owner, RunSummary, StoredRow

A = TypeVar("A")
T = TypeVar("T")
PATIENCE = 10.0
"""Seconds that a call waits for a lock before it gives up."""
_LONGEST_PAUSE = 0.05


class SqlStore:
    """An EventStore in a database. Safe to use from several threads, not across a fork."""

    def __init__(self, dialect: Dialect, patience: float = PATIENCE) -> None:
        """Use `open`."""
        self._dialect = dialect
        self._patience = patience
        self._lock = RLock()
        self._sql = Statements(dialect.engine.dialect)
        self._kept: sa.Connection | None = None

    @classmethod
    def open(cls, url: str, *, patience: float = PATIENCE, create: bool = True) -> SqlStore:
        """Opens a path or a database URL and makes the tables where there are none.

        `patience` in seconds; `create=False` refuses a file that is not there. Raises StoreError, NewerLog.
        """
        store = cls(dialect_for(url, patience, create), patience)
        try:
            store._retrying(lambda _: store._ready())
        except BaseException:
            store.close()
            raise
        return store

    # --- appends ----------------------------------------------------------------------------------------

    def append(self, item: Append) -> None:
        error = self.append_all([item])[0]
        if error is not None:
            raise error

    def append_all(self, items: Sequence[Append]) -> list[AgentctlError | None]:
        results: list[AgentctlError | None] = [None] * len(items)
        fit: list[tuple[int, Append, list[tuple[object, ...]]]] = []
        for index, item in enumerate(items):
            try:
                check_append(item)
                fit.append((index, item, [(k, blob_bytes(v, k)) for k, v in item.blobs.items()]))
            except AgentctlError as error:
                results[index] = error
        fit.sort(key=lambda entry: entry[1].run)  # one order of row locks everywhere: no deadlocks

        def commit(unsure: bool) -> None:
            with self._transaction() as connection:
                for index, item, texts in fit:
                    results[index] = self._append(connection, item, texts, unsure)

        if fit:
            self._retrying(commit)
        return results

    def _append(
        self, connection: sa.Connection, item: Append, texts: list[tuple[object, ...]], unsure: bool
    ) -> AgentctlError | None:
        if not self._advance(connection, item):
            if unsure and self._holds(connection, item):
                return None  # the commit whose answer was lost came through, whatever others appended since
            return refusal(item, *self._head(connection, item.run))
        rows = [_event_values(item.run, row_of(event)) for event in item.events]
        self._dialect.perform(connection, self._sql.add_event.text, rows if len(rows) > 1 else rows[0])
        if texts:
            self._dialect.perform(connection, self._sql.add_blob.text, texts)
        return None

    def _holds(self, connection: sa.Connection, item: Append) -> bool:
        """The log has the events of the append where they belong."""
        last, wanted = item.events[-1], self._sql.hash_at
        values = wanted.values({"run_is": item.run, "seq_is": last.seq})
        row = connection.exec_driver_sql(wanted.text, values).first()
        return row is not None and row[0] == last.hash

    def _advance(self, connection: sa.Connection, item: Append) -> bool:
        """Moves the Run's head if it, and the newest claim, are where the append says."""
        last, summary, claim = item.events[-1], item.summary, item.claim
        if item.expected_seq == 0 and claim is None:
            statement = self._sql.create[summary is not None]
        else:
            statement = self._sql.advance[claim is not None, summary is not None]
        values: dict[str, object] = {
            "run_is": item.run,
            "seq_is": item.expected_seq,
            "hash_is": item.events[0].previous,
            "epoch_is": claim.epoch if claim else 0,
            "seq": last.seq,
            "hash": last.hash,
        }
        if summary is not None:
            values |= _summary_values(summary)
        return self._dialect.perform(connection, statement.text, statement.values(values)) == 1

    # --- reading ----------------------------------------------------------------------------------------

    def events(self, run: RunId, after: int = 0) -> Iterator[Event]:
        for row in self._rows(run, after, raw=False):
            yield event_of(run, row)

    def rows(self, run: RunId, after: int = 0) -> Iterator[StoredRow]:
        return self._rows(run, after, raw=True)

    def _rows(self, run: RunId, after: int, raw: bool) -> Iterator[StoredRow]:
        while True:
            page = self._read(self._sql.page, {"run_is": run, "after_is": after}, raw)
            for row in page:
                yield StoredRow(*row)
            if len(page) < PAGE:
                return
            after = page[-1][0]

    def head(self, run: RunId) -> Head | None:
        return self._retrying(lambda _: self._head(self._ready(), run)[0])

    def _head(self, connection: sa.Connection, run: RunId) -> tuple[Head | None, int]:
        row = connection.exec_driver_sql(self._sql.head.text, self._sql.head.values({"run_is": run})).first()
        if row is None:
            return None, 0
        seq, sealed, epoch = row
        return (Head(seq, sealed) if seq else None), epoch

    def resolve(self, prefix: str) -> list[RunId]:
        if not prefix.isascii() or "\0" in prefix:
            return []
        run_id = runs_table.c.run_id
        wanted = sa.select(run_id).where(
            run_id >= prefix, run_id < prefix + "\U0010ffff", runs_table.c.seq > 0
        )
        return [RunId(row[0]) for row in self._select(wanted.order_by(run_id).limit(10))]

    def runs(
        self, *, status: str | None = None, policy: str | None = None, limit: int = 100
    ) -> list[RunSummary]:
        column = runs_table.c
        wanted = sa.select(column.run_id, column.seq, *(column[name] for name in SUMMARY))
        wanted = wanted.where(column.seq > 0, column.started_at != "")
        if status is not None:
            wanted = wanted.where(column.status == status)
        if policy is not None:
            wanted = wanted.where(column.policy == policy)
        rows = self._select(wanted.order_by(column.run_id.desc()).limit(max(limit, 0)))
        return [_summary(row._mapping) for row in rows]

    def rebuild(self, summarise: Callable[[RunId, Iterator[Event]], RunSummary]) -> int:
        """Computes the run list anew from the events, Run by Run; returns the number of Runs."""
        found = self._select(sa.select(runs_table.c.run_id).where(runs_table.c.seq > 0))
        for (run,) in found:
            values = _summary_values(summarise(run, self.events(run)))
            self._execute(sa.update(runs_table).where(runs_table.c.run_id == run).values(values))
        return len(found)

    # --- blobs ------------------------------------------------------------------------------------------

    def blob(self, digest: str) -> str | None:
        rows = self._read(self._sql.blob, {"digest_is": digest})
        if not rows:
            return None
        return text_of(bytes(rows[0][0]), digest)

    def put_blob(self, text: str) -> str:
        data, name = blob_bytes(text), digest(text)
        self._retrying(lambda _: self._ready().exec_driver_sql(self._sql.add_blob.text, (name, data)))
        return name

    # --- claims -----------------------------------------------------------------------------------------

    def claim(self, run: RunId, owner: Owner, now: datetime, ttl: timedelta) -> Claim:
        return held(self.claim_all([run], owner, now, ttl)[0])

    def renew(self, claim: Claim, now: datetime, ttl: timedelta) -> Claim:
        return held(self.renew_all([claim], now, ttl)[0])

    def release(self, claim: Claim) -> None:
        self.release_all([claim])

    def claim_all(
        self, runs: Sequence[RunId], owner: Owner, now: datetime, ttl: timedelta
    ) -> list[Claim | ClaimHeld]:
        return self._each(runs, runs, lambda claims, run: claims.take(run, owner, now, ttl))

    def renew_all(self, claims: Sequence[Claim], now: datetime, ttl: timedelta) -> list[Claim | ClaimLost]:
        return self._each(
            claims, [each.run for each in claims], lambda found, claim: found.prolong(claim, now, ttl)
        )

    def release_all(self, claims: Sequence[Claim]) -> None:
        self._each(claims, [each.run for each in claims], lambda found, claim: found.give_up(claim))

    def _each(self, items: Sequence[A], runs: Sequence[RunId], work: Callable[[ClaimRows, A], T]) -> list[T]:
        """One transaction over the claims of several Runs; the results in the order of the items."""
        order = sorted(range(len(items)), key=lambda index: runs[index])  # as `append_all` does: no deadlocks

        def commit(_: bool) -> list[T]:
            with self._transaction() as connection:
                claims = ClaimRows(connection, self._dialect, self._sql)
                found = {index: work(claims, items[index]) for index in order}
            return [found[index] for index in range(len(items))]

        return self._retrying(commit) if order else []

    # --- policies ---------------------------------------------------------------------------------------

    def load_policy(self, loaded: LoadedPolicy) -> None:
        values = {
            "policy": loaded.policy,
            "version": loaded.version,
            "digest": loaded.digest,
            "bundle": loaded.bundle,
            "loaded_at": timestamp(loaded.loaded_at),
            "loaded_by": loaded.by,
            "overlay": int(loaded.overlay),
            "drain": int(loaded.drain),
        }
        self._execute(sa.insert(policies).values(values))

    def newest_policies(self, policy: str) -> list[LoadedPolicy]:
        about = sa.or_(policies.c.overlay == 1, policies.c.policy == policy)
        last = (
            sa.select(sa.func.max(policies.c.n)).where(about).group_by(policies.c.overlay, policies.c.policy)
        )
        wanted = (
            sa.select(policies).where(policies.c.n.in_(last)).order_by(policies.c.overlay, policies.c.policy)
        )
        return [_loaded_policy(row) for row in self._select(wanted)]

    # --- the connection ---------------------------------------------------------------------------------

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _read(self, statement: Prepared, values: Mapping[str, object], raw: bool = False) -> Sequence[Any]:
        def read(_: bool) -> Sequence[Any]:
            connection = self._ready()
            if not raw:
                return connection.exec_driver_sql(statement.text, statement.values(values)).fetchall()
            with self._dialect.raw_text(connection.connection.driver_connection):
                return connection.exec_driver_sql(statement.text, statement.values(values)).fetchall()

        return self._retrying(read)

    def _select(self, wanted: sa.Select[Any]) -> Sequence[Any]:
        return self._retrying(lambda _: self._ready().execute(wanted).fetchall())

    def _execute(self, change: sa.Insert | sa.Update) -> None:
        self._retrying(lambda _: self._ready().execute(change))

    def _retrying(self, work: Callable[[bool], T]) -> T:
        """Runs one statement or transaction, again while others hold a lock; the pauses differ so that
        writers do not collide in step. `work` is told whether an earlier try may have come through."""
        give_up, pause, unsure = time.monotonic() + self._patience, 0.001, False
        with self._lock:
            while True:
                try:
                    return work(unsure)
                except DBAPIError as error:
                    trouble = self._dialect.trouble(error)
                    self._after(trouble)
                    if not trouble.passing or time.monotonic() >= give_up:
                        raise trouble.error(self._dialect.name) from error
                    unsure = unsure or trouble.disconnected
                time.sleep(random.uniform(0, pause))
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _after(self, trouble: Trouble) -> None:
        if trouble.disconnected or self._kept is None:
            self._drop()

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        connection = self._ready()
        self._dialect.perform(connection, self._dialect.begin)
        try:
            yield connection
            self._dialect.perform(connection, "COMMIT")
        except BaseException:
            self._roll_back(connection)
            raise

    def _roll_back(self, connection: sa.Connection) -> None:
        """Never hides the error that led here: a connection that cannot roll back is dropped."""
        try:
            if self._dialect.in_transaction(connection.connection.driver_connection):
                connection.exec_driver_sql("ROLLBACK")
        except sa.exc.SQLAlchemyError:
            self._drop()

    def _ready(self) -> sa.Connection:
        if self._kept is None:
            connection = self._dialect.engine.connect()
            try:
                self._dialect.prepare(connection)
                self._check_schema(connection)
            except BaseException:
                connection.close()
                raise
            self._kept = connection
        return self._kept

    def _drop(self) -> None:
        connection, self._kept = self._kept, None
        if connection is not None:
            try:
                connection.close()
            except sa.exc.SQLAlchemyError:
                connection.invalidate()

    def _check_schema(self, connection: sa.Connection) -> None:
        if not sa.inspect(connection).has_table(schema_table.name):
            self._create_schema(connection)
        version = connection.execute(sa.select(sa.func.max(schema_table.c.version))).scalar_one()
        if version is None or version > VERSION:
            raise NewerLog(
                f"the database `{self._dialect.name}` was made by a newer agentctl (version {version} of the tables)",
                remedy="install that version, or name another database with `--db`",
            )

    def _create_schema(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql(self._dialect.begin)
        try:
            self._dialect.lock_schema(connection)
            if not sa.inspect(connection).has_table(schema_table.name):
                METADATA.create_all(connection, checkfirst=False)
                for guard in self._dialect.guards():
                    connection.exec_driver_sql(guard)
                connection.execute(sa.insert(schema_table).values(version=VERSION))
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            self._roll_back(connection)
            raise


def _event_values(run: RunId, row: StoredRow) -> tuple[object, ...]:
    """In the order of the columns of `events`."""
    return (
        run, row.seq, row.kind, row.recorded_at, row.actor, row.claim_epoch, row.payload, row.previous, row.hash
    )  # fmt: skip


def _summary_values(summary: RunSummary) -> dict[str, object]:
    values: dict[str, object] = {name: getattr(summary, name) for name in SUMMARY}
    values["started_at"] = timestamp(summary.started_at)
    values["updated_at"] = timestamp(summary.updated_at)
    return values


def _summary(row: Mapping[str, Any]) -> RunSummary:
    values = dict(row)
    values["run"] = RunId(values.pop("run_id"))
    for name in ("started_at", "updated_at"):
        values[name] = datetime.fromisoformat(values[name])
    return RunSummary(**values)


def _loaded_policy(row: sa.Row[Any]) -> LoadedPolicy:
    return LoadedPolicy(
        policy=row.policy,
        version=row.version,
        digest=row.digest,
        bundle=row.bundle,
        loaded_at=datetime.fromisoformat(row.loaded_at),
        by=row.loaded_by,
        overlay=bool(row.overlay),
        drain=bool(row.drain),
    )
