"""Owns the adapter through which `agmi-check` edits a log behind the store's back and asks whether it shows.

`agmi-check --adapter tests.durable.agmi_adapter:WitnessedLedger`, or `:Ledger` for the chain alone. The one who
edits has the whole database: the triggers are dropped, and the head that the store keeps is set to fit.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from agmi.adapters.base import MemoryAdapter, Record

from engine.adapters.sql_store import SqlStore
from engine.domain.ids import RunId
from engine.ports import Head
from engine.runtime.audit import verify
from tests.contracts.store import piece, started, texts

RUN, OTHER = "r1", "r2"
COLUMNS = ("run_id", "seq", "kind", "recorded_at", "actor", "claim_epoch", "payload", "previous", "hash")
SLOT = ("run_id", "seq")


class Ledger(MemoryAdapter):
    """The event log on SQLite, audited by its chain alone."""

    name = "agentctl-ledger"
    detection_point = "audit"
    supports_replay = True
    supports_metadata = True
    supports_snapshot = True
    witnessed = False

    # --- the store's own way ------------------------------------------------------------------------------

    def setup(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="agmi-"))
        self._db = self._folder / "runs.db"
        self._store = SqlStore.open(str(self._db))
        self._witness: Head | None = None

    def teardown(self) -> None:
        self._store.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def reload(self) -> None:
        self._store.close()
        self._store = SqlStore.open(str(self._db))

    def seed(self, n: int) -> None:
        self._store.append(piece(self._store, RUN, started(), *texts(*(f"fact {i}" for i in range(n - 1)))))
        self._note_head()

    def seed_other(self, n: int) -> None:
        self._store.append(
            piece(self._store, OTHER, started(), *texts(*(f"other {i}" for i in range(n - 1))))
        )

    def append_genuine(self) -> None:
        self._store.append(piece(self._store, RUN, *texts("the newest fact")))
        self._note_head()

    def _note_head(self) -> None:
        """What an operator keeps outside the database after each step."""
        self._witness = self._store.head(RunId(RUN)) if self.witnessed else None

    def verify(self) -> bool:
        broken = verify(self._store, RunId(RUN), self._witness).broken
        self.verify_detail = broken and f"event {broken.seq}: {broken.what}"
        return broken is None

    # --- behind its back ----------------------------------------------------------------------------------

    def _edit(self, *statements: tuple[str, tuple[Any, ...]]) -> None:
        connection = sqlite3.connect(self._db, isolation_level=None)
        for (trigger,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        for statement, values in statements:
            connection.execute(statement, values)
        connection.execute(
            "UPDATE runs SET seq = (SELECT max(seq) FROM events WHERE run_id = runs.run_id), hash ="
            " (SELECT hash FROM events WHERE run_id = runs.run_id ORDER BY seq DESC LIMIT 1)"
        )
        connection.close()

    def _rows(self, run: str) -> list[Record]:
        connection = sqlite3.connect(self._db)
        found = connection.execute(
            f"SELECT {', '.join(COLUMNS)} FROM events WHERE run_id = ? ORDER BY seq", (run,)
        ).fetchall()
        connection.close()
        return [Record(seq=n, fields=dict(zip(COLUMNS, row, strict=True))) for n, row in enumerate(found)]

    def read_all_raw(self) -> list[Record]:
        return self._rows(RUN)

    def read_other_raw(self) -> list[Record]:
        return self._rows(OTHER)

    def write_raw(self, record: Record) -> None:
        """All of the record but its place; past the last event, a new one."""
        content = {name: value for name, value in record.fields.items() if name not in SLOT}
        rows = self.read_all_raw()
        if record.seq >= len(rows):
            marks = ", ".join("?" * len(COLUMNS))
            values = (RUN, rows[-1].fields["seq"] + 1, *content.values())
            self._edit((f"INSERT INTO events VALUES ({marks})", values))
            return
        change = ", ".join(f"{name} = ?" for name in content)
        place = (RUN, rows[record.seq].fields["seq"])
        self._edit((f"UPDATE events SET {change} WHERE run_id = ? AND seq = ?", (*content.values(), *place)))

    def delete_raw(self, seq: int) -> None:
        place = (RUN, self.read_all_raw()[seq].fields["seq"])
        self._edit(("DELETE FROM events WHERE run_id = ? AND seq = ?", place))

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        self.write_raw(Record(seq=victim_seq, fields=dict(donor.fields)))

    def mutate_payload(self, record: Record) -> Record:
        said = json.loads(record.fields["payload"])
        record.fields["payload"] = json.dumps({**said, "text": "something else"})
        return record

    def forge_record(self, template: Record) -> Record:
        """It names the genuine last event as the one before it."""
        fields = {**template.fields, "previous": template.fields["hash"]}
        return self.mutate_payload(Record(seq=template.seq + 1, fields=fields))

    def read_meta(self, seq: int) -> dict[str, Any]:
        return {"actor": self.read_all_raw()[seq].fields["actor"]}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        """Another author for the same words."""
        record = self.read_all_raw()[seq]
        if meta.get("agmi_meta_tampered"):
            record.fields["actor"] = '{"id":"eve","type":"person"}'
        self.write_raw(record)

    def snapshot_store(self) -> object:
        self._store.close()
        token = self._copy_store(self._db)
        self._store = SqlStore.open(str(self._db))
        return token

    def restore_store(self, token: object) -> None:
        self._store.close()
        self._restore_store(str(token), self._db)
        shutil.rmtree(Path(str(token)).parent, ignore_errors=True)
        self._store = SqlStore.open(str(self._db))

    # --- what a record is, for the check that an edit landed ------------------------------------------------

    def identity_of(self, record: Record) -> str:
        return f"{record.fields['run_id']}:{record.fields['seq']}"

    def payload_of(self, record: Record) -> str:
        return str(record.fields["payload"])

    def owner_of(self, record: Record) -> str | None:
        return str(record.fields["run_id"])


class WitnessedLedger(Ledger):
    """The same log, audited against a head that was written down outside the database."""

    name = "agentctl-ledger, head kept elsewhere"
    witnessed = True
