"""Owns the claims in a database: read and changed under the transaction of whoever asks."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from engine.adapters.refusals import NEVER_CLAIMED, ClaimState, claim_held, claim_lost
from engine.adapters.sql_dialects import Dialect
from engine.adapters.sql_schema import Prepared, Statements
from engine.domain.canonical import canonical
from engine.domain.errors import ClaimHeld, ClaimLost
from engine.domain.events import GENESIS, timestamp
from engine.domain.ids import RunId
from engine.ports import Claim, Owner


class ClaimRows:
    """Each change names the claim that it follows, so that of two writers one finds nothing to change."""

    def __init__(self, connection: sa.Connection, dialect: Dialect, sql: Statements) -> None:
        self._connection = connection
        self._dialect = dialect
        self._sql = sql

    def take(self, run: RunId, owner: Owner, now: datetime, ttl: timedelta) -> Claim | ClaimHeld:
        while True:
            found = self._state(run)
            state = found or NEVER_CLAIMED
            holder = state.holder(now)
            if holder is not None:
                return claim_held(run, holder, state.since)
            claim = Claim(run, state.epoch + 1, owner, now + ttl)
            values = {
                "run_is": run, "seq": 0, "hash": GENESIS, "epoch_is": state.epoch, "expires_is": state.expires_at,
                "claim_epoch": claim.epoch, "claim_owner": canonical(asdict(owner)),
                "claim_since": timestamp(now), "claim_expires": timestamp(claim.expires_at),
            }  # fmt: skip
            if self._change(self._sql.next_claim if found else self._sql.first_claim, values):
                return claim

    def prolong(self, claim: Claim, now: datetime, ttl: timedelta) -> Claim | ClaimLost:
        renewed = replace(claim, expires_at=now + ttl)
        values = {
            "run_is": claim.run,
            "epoch_is": claim.epoch,
            "claim_expires": timestamp(renewed.expires_at),
        }
        if self._change(self._sql.renew, values):
            return renewed
        return claim_lost(claim.run, claim.epoch, (self._state(claim.run) or NEVER_CLAIMED).epoch)

    def give_up(self, claim: Claim) -> None:
        self._change(self._sql.release, {"run_is": claim.run, "epoch_is": claim.epoch})

    def _state(self, run: RunId) -> ClaimState | None:
        """None where the Run has no row yet."""
        wanted = self._sql.claim_state
        row = self._connection.exec_driver_sql(wanted.text, wanted.values({"run_is": run})).first()
        if row is None:
            return None
        epoch, owner, since, expires = row
        return ClaimState(epoch, Owner(**json.loads(owner)) if owner else None, since, expires)

    def _change(self, statement: Prepared, values: dict[str, object]) -> bool:
        return self._dialect.perform(self._connection, statement.text, statement.values(values)) == 1
