"""Owns the tables of the event log and the statements on them, compiled once per database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql import ClauseElement

from engine.ports import RunSummary, StoredRow

VERSION = 1
"""Of the tables; a database with a higher one is refused, not guessed at."""

METADATA = sa.MetaData()
# By code point everywhere, so that ids sort alike and prefixes are ranges.
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

schema = sa.Table("agentctl_schema", METADATA, sa.Column("version", sa.Integer, primary_key=True))

events = sa.Table(
    "events",
    METADATA,
    sa.Column("run_id", _TEXT, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", _TEXT, nullable=False),
    sa.Column("recorded_at", _TEXT, nullable=False),
    sa.Column("actor", _TEXT, nullable=False),
    sa.Column("claim_epoch", sa.Integer, nullable=False),
    sa.Column("payload", _TEXT, nullable=False),
    sa.Column("previous", _TEXT, nullable=False),
    sa.Column("hash", _TEXT, nullable=False),
)

SUMMARY = tuple(field.name for field in fields(RunSummary) if field.name not in ("run", "seq"))
_COUNTS = ("turns", "open_approvals", "open_holds", "unknown_effects")


def _summary_column(name: str) -> sa.Column[object]:
    if name in _COUNTS:
        return sa.Column(name, sa.Integer, nullable=False, server_default="0")
    return sa.Column(name, _TEXT, nullable=False, server_default="")


# One row per Run holds its head, its newest claim and its line of the run list, so that one lock orders
# appends and claims, and one UPDATE checks them. seq 0: claimed before its first event.
runs = sa.Table(
    "runs",
    METADATA,
    sa.Column("run_id", _TEXT, primary_key=True),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("hash", _TEXT, nullable=False),
    sa.Column("claim_epoch", sa.Integer, nullable=False, server_default="0"),
    sa.Column("claim_owner", _TEXT, nullable=False, server_default=""),
    sa.Column("claim_since", _TEXT, nullable=False, server_default=""),
    sa.Column("claim_expires", _TEXT, nullable=False, server_default=""),
    *(_summary_column(name) for name in SUMMARY),
)

blobs = sa.Table(
    "blobs",
    METADATA,
    sa.Column("digest", _TEXT, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

policies_loaded = sa.Table(
    "policies_loaded",
    METADATA,
    sa.Column("n", sa.Integer, primary_key=True),
    sa.Column("policy", _TEXT, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("digest", _TEXT, nullable=False),
    sa.Column("bundle", _TEXT, nullable=False),
    sa.Column("loaded_at", _TEXT, nullable=False),
    sa.Column("loaded_by", _TEXT, nullable=False),
    sa.Column("overlay", sa.Integer, nullable=False),
    sa.Column("drain", sa.Integer, nullable=False),
)

APPEND_ONLY = (events, policies_loaded)
"""Tables whose rows triggers keep from being changed or deleted."""

_Expression: TypeAlias = sa.ColumnElement[Any]
_Values: TypeAlias = dict[str, _Expression]

PAGE = 256
"""Rows per read: each page is a read transaction of its own, so that no reader keeps the log from shrinking."""
_ROW = tuple(field.name for field in fields(StoredRow))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement as text with positional parameters: several times cheaper to run than an expression."""

    text: str
    names: tuple[str, ...]

    def values(self, named: Mapping[str, object]) -> tuple[object, ...]:
        return tuple([named[name] for name in self.names])


class Statements:
    """What the store asks a database, in its words. Parameters that only filter end in `_is`."""

    def __init__(self, dialect: sa.Dialect) -> None:
        self._dialect = dialect
        insert = postgresql.insert if dialect.name == "postgresql" else sqlite.insert
        zero: _Expression = sa.literal_column("0")
        empty: _Expression = sa.literal_column("''")
        at, param = runs.c.run_id == sa.bindparam("run_is"), sa.bindparam

        new_head: _Values = {name: param(name) for name in ("seq", "hash")}
        summary: _Values = {name: param(name) for name in SUMMARY}
        fits = sa.update(runs).where(at, runs.c.seq == param("seq_is"), runs.c.hash == param("hash_is"))
        held = fits.where(runs.c.claim_epoch == param("epoch_is"))
        self.advance = {
            (with_claim, with_summary): self._prepare(
                base.values(new_head | (summary if with_summary else {}))
            )
            for with_claim, base in ((False, fits), (True, held))
            for with_summary in (False, True)
        }
        """(under a claim, with a summary) -> moves the head, if it is where the append says."""

        def create(columns: _Values) -> Prepared:
            new = insert(runs).values({"run_id": param("run_is"), **columns})
            changed = {name: new.excluded[name] for name in columns}
            return self._prepare(
                new.on_conflict_do_update(index_elements=["run_id"], set_=changed, where=runs.c.seq == zero)
            )

        self.create = {False: create(new_head), True: create(new_head | summary)}
        self.add_event = self._prepare(sa.insert(events))
        self.add_blob = self._prepare(insert(blobs).on_conflict_do_nothing())
        self.blob = self._prepare(sa.select(blobs.c.data).where(blobs.c.digest == param("digest_is")))
        self.page = self._prepare(
            sa.select(*(events.c[name] for name in _ROW))
            .where(events.c.run_id == param("run_is"), events.c.seq > param("after_is"))
            .order_by(events.c.seq)
            .limit(sa.literal_column(str(PAGE)))
            .offset(zero)
        )
        self.hash_at = self._prepare(
            sa.select(events.c.hash).where(
                events.c.run_id == param("run_is"), events.c.seq == param("seq_is")
            )
        )
        self.head = self._prepare(sa.select(runs.c.seq, runs.c.hash, runs.c.claim_epoch).where(at))

        claim: _Values = {
            name: param(name) for name in ("claim_epoch", "claim_owner", "claim_since", "claim_expires")
        }
        self.claim_state = self._prepare(sa.select(*(runs.c[name] for name in claim)).where(at))
        self.first_claim = self._prepare(
            insert(runs).values({"run_id": param("run_is"), **new_head, **claim}).on_conflict_do_nothing()
        )
        mine = sa.update(runs).where(at, runs.c.claim_epoch == param("epoch_is"))
        self.next_claim = self._prepare(mine.where(runs.c.claim_expires == param("expires_is")).values(claim))
        self.renew = self._prepare(
            mine.where(runs.c.claim_owner != empty).values(claim_expires=param("claim_expires"))
        )
        self.release = self._prepare(mine.values(claim_owner=empty, claim_since=empty, claim_expires=empty))

    def _prepare(self, statement: ClauseElement) -> Prepared:
        compiled = statement.compile(dialect=self._dialect)
        names = compiled.positiontup or []  # type: ignore[attr-defined]  # an SQLCompiler
        return Prepared(str(compiled), tuple(names))
