"""Owns the pretend cluster: services that can be restarted, a maintenance host with four programs."""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime

from done_once import CallContext, Result, first_result, key_of, moment_of, once, remember, stamp

from engine import NotExecuted
from ops_agent.place import database

RESTART_WINDOW_SECONDS = 600
"""The same as `idempotency.window` of `restart_service`."""

_PRINTED = {
    "uptime": "up 41 days, 2 users, load average: 3.90, 3.41, 2.20",
    "df": "Filesystem  Size  Used  Use%\n/dev/vda1    80G   71G   89%",
    "free": "        total   used   free\nMem:     16Gi   15Gi  0.4Gi",
}


def run_command(argv: list[str], context: CallContext | None = None) -> Result:
    """Runs one program of the maintenance host and keeps the line in the host's audit log."""
    with database().transaction() as ops:

        def act() -> Result:
            output = _output(ops, argv)
            run = "" if context is None else str(context.run)
            ops.execute(
                "insert into host_command (argv, output, run, ran_at) values (?, ?, ?, ?)",
                (json.dumps(argv), output, run, stamp(moment_of(context))),
            )
            return {"exit_code": 0, "output": output}

        return once(ops, "run_command", context, act)


def restart_service(service: str, cluster: str, context: CallContext | None = None) -> Result:
    """Restarts a service; the same key within ten minutes is the same restart."""
    key, now = key_of(context), moment_of(context)
    with database().transaction() as ops:
        first = first_result(ops, "restart_service", key)
        if first is not None and _age(first["started_at"], now) < RESTART_WINDOW_SECONDS:
            return first
        row = _service(ops, cluster, service)
        result = {"service": service, "restarts": row["restarts"] + 1, "started_at": stamp(now)}
        ops.execute(
            "update service set restarts = restarts + 1, healthy = 1, started_at = ? where cluster = ? and name = ?",
            (stamp(now), cluster, service),
        )
        remember(ops, "restart_service", key, result, now)
        return result


def service_status(key: str) -> Result:
    """Whether the call with this idempotency key has restarted its service."""
    with database().transaction() as ops:
        return {"restarted": first_result(ops, "restart_service", key) is not None}


def _output(ops: sqlite3.Connection, argv: list[str]) -> str:
    match argv:
        case [program] if program in _PRINTED:
            return _PRINTED[program]
        case ["systemctl", "status", name]:
            rows = ops.execute("select * from service where name = ? order by cluster", (name,)).fetchall()
            if rows:
                return "\n".join(_status_line(row) for row in rows)
            raise NotExecuted(f"the host has no service `{name}`")
    raise NotExecuted(f"the host does not run `{' '.join(argv)}`; nothing was done")


def _status_line(row: sqlite3.Row) -> str:
    health = "active (running)" if row["healthy"] else "active (degraded)"
    return f"{row['name']}@{row['cluster']}: {health} since {row['started_at']}, {row['restarts']} restarts"


def _service(ops: sqlite3.Connection, cluster: str, service: str) -> sqlite3.Row:
    row = ops.execute("select * from service where cluster = ? and name = ?", (cluster, service)).fetchone()
    if row is None:
        raise NotExecuted(f"there is no service `{service}` in the cluster `{cluster}`")
    return row  # type: ignore[no-any-return]  # sqlite3 types rows as Any


def _age(started_at: str, now: datetime) -> float:
    return (now - datetime.fromisoformat(started_at)).total_seconds()
