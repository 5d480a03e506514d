"""Owns the list of what a Run may do by somebody's leave: grants, standing approvals, endorsements."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from engine.domain.canonical import Json, JsonObject
from engine.domain.diagnostics import many
from engine.domain.state import RunState
from engine.report.words import arguments, moment, one_line


def grants_lines(state: RunState) -> list[str]:
    """A line for each, in the order they were given; how long it lasts or why it ended."""
    lines = [
        f"{grant.id}  {grant.capability}({arguments(grant.params)}) granted by {grant.by}"
        + _lasts(grant.ended, grant.expires_at, grant.calls_left)
        for grant in state.grants.values()
    ]
    lines += [
        f"{stands.id}  {stands.tool}({arguments(stands.args)}) approved for later calls by {stands.by}, "
        f"rule {stands.rule}" + _lasts(stands.ended, stands.expires_at, stands.calls_left)
        for stands in state.standing.values()
    ]
    lines += [
        f"{vouched.id}  {vouched.arg} {one_line(vouched.value)} of {vouched.tool} endorsed by {vouched.by}"
        + _lasts(vouched.ended, vouched.expires_at, None)
        for vouched in state.endorsements.values()
    ]
    return lines


def _lasts(ended: str, expires_at: datetime | None, calls_left: int | None) -> str:
    if ended:
        return f"; ended: {ended}"
    limits = [f"until {moment(expires_at)}"] if expires_at is not None else []
    limits += [f"{many(calls_left, 'call')} left"] if calls_left is not None else []
    return "; " + ", ".join(limits) if limits else ""


def grants_json(state: RunState) -> list[Json]:
    return [*_forms(state)]


def _forms(state: RunState) -> Iterator[JsonObject]:
    for grant in state.grants.values():
        yield {
            "grant": grant.id,
            "kind": "capability",
            "capability": grant.capability,
            "params": grant.params,
            "by": grant.by,
            "expires_at": _time(grant.expires_at),
            "calls_left": grant.calls_left,
            "ended": grant.ended or None,
        }
    for stands in state.standing.values():
        yield {
            "grant": stands.id,
            "kind": "standing",
            "tool": stands.tool,
            "rule": stands.rule,
            "args": stands.args,
            "by": stands.by,
            "expires_at": _time(stands.expires_at),
            "calls_left": stands.calls_left,
            "ended": stands.ended or None,
        }
    for vouched in state.endorsements.values():
        yield {
            "grant": vouched.id,
            "kind": "endorsement",
            "tool": vouched.tool,
            "arg": vouched.arg,
            "value": vouched.value,
            "by": vouched.by,
            "expires_at": _time(vouched.expires_at),
            "calls_left": None,
            "ended": vouched.ended or None,
        }


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
