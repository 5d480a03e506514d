"""Owns what the model sees of app state: one Host-labelled block, rendered new for each request and never kept.

A projection shows a slice with its version and age. It is data of the application in the Host's words: not a
message of the chat, and never in the user's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from engine.domain.canonical import Json, JsonObject
from engine.domain.messages import HostBlock
from engine.domain.policy import Policy, Projection
from engine.domain.state import RunState, SliceState
from engine.domain.types import ValueType

MAX_ROWS = 50
MAX_CELL = 200
"""Code points of one value that is shown."""
MAX_BLOCK = 8_000
"""Code points of the whole block."""


class Stale(NamedTuple):
    """A projection whose slice is absent, or older than it may be shown."""

    projection: Projection
    why: str


def stale_projections(policy: Policy, state: RunState, now: datetime) -> Iterator[Stale]:
    for projection in policy.projections:
        held = state.state.get(projection.slice)
        if held is None:
            yield Stale(projection, f"state {projection.slice} is not recorded")
            continue
        limit = max_age(policy, projection)
        if limit is not None and now - held.at > limit:
            age = (now - held.at).total_seconds()
            yield Stale(projection, f"state {projection.slice} is {age:g} s old")


def max_age(policy: Policy, projection: Projection) -> timedelta | None:
    """The projection's own limit, else that of the slice."""
    return projection.max_age if projection.max_age is not None else policy.state[projection.slice].max_age


def block(policy: Policy, state: RunState, now: datetime) -> HostBlock | None:
    """Everything that the next request shows of app state; None if nothing is to be shown."""
    hidden = {stale.projection.id: stale for stale in stale_projections(policy, state, now)}
    parts = [
        _not_shown(hidden[projection.id])
        if projection.id in hidden
        else _render(policy, projection, state.state[projection.slice], now)
        for projection in policy.projections
        if _due(projection, state, stale=projection.id in hidden)
    ]
    if not parts:
        return None
    text = "\n\n".join(parts)
    if len(text) > MAX_BLOCK:
        text = text[:MAX_BLOCK] + f"… [the Host shows {MAX_BLOCK} of {len(text)} characters]"
    return HostBlock(f"Application state, as the Host holds it now:\n\n{text}")


def _due(projection: Projection, state: RunState, *, stale: bool) -> bool:
    """Each turn, or only after it changed; one that could not be refreshed is said to be missing."""
    if stale:
        return projection.if_stale == "refresh"
    if projection.every_turn or not state.turns:
        return True
    last, held = state.turns[-1], state.state[projection.slice]
    if last.recorded.state_versions.get(projection.slice) != held.version:
        return True
    return projection.if_stale == "omit" and held.seq > last.asked_seq


def _not_shown(stale: Stale) -> str:
    return f"{stale.projection.id}: not shown, since {stale.why} and could not be read again"


def _render(policy: Policy, projection: Projection, held: SliceState, now: datetime) -> str:
    age = max(0, int((now - held.at).total_seconds()))
    head = f"{projection.id} (state {projection.slice}, version {held.version}, {age} s old)"
    declared = policy.state[projection.slice].fields
    names = [name for name in projection.fields or declared if name in held.value]
    fields: JsonObject = {name: held.value[name] for name in names}
    if projection.render == "record":
        return f"{head}\n{_record(fields)}"
    if projection.render == "list":
        return f"{head}\n{_list(fields)}"
    return f"{head}\n{_table(fields, {name: declared[name].type for name in names})}"


def _record(fields: JsonObject) -> str:
    return "\n".join(f"{name}: {_cell(value)}" for name, value in fields.items())


def _list(fields: JsonObject) -> str:
    lines = []
    for name, value in fields.items():
        if isinstance(value, list):
            lines.append(f"{name}:" if value else f"{name}: none")
            lines += [f"- {_cell(item)}" for item in value[:MAX_ROWS]]
            lines += _more(value)
        else:
            lines.append(f"{name}: {_cell(value)}")
    return "\n".join(lines)


def _table(fields: JsonObject, types: Mapping[str, ValueType]) -> str:
    """Columns in the order in which the policy declares them."""
    lines = []
    for name, value in fields.items():
        rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
        if not rows:
            lines.append(f"{name}: {_cell(value)}")
            continue
        inner = types[name].of
        declared = inner.fields if inner is not None else {}
        columns = [column for column in declared if any(column in row for row in rows)]
        lines.append(f"{name}:")
        lines.append("| " + " | ".join(columns) + " |")
        lines.append("|" + "---|" * len(columns))
        lines += [
            "| " + " | ".join(_cell(row.get(column)) for column in columns) + " |" for row in rows[:MAX_ROWS]
        ]
        lines += _more(rows)
    return "\n".join(lines)


def _more(rows: list[Json] | list[dict[str, Json]]) -> list[str]:
    return [f"… and {len(rows) - MAX_ROWS} more"] if len(rows) > MAX_ROWS else []


def _cell(value: Json) -> str:
    """One line, bounded: a value of the application cannot look like another row."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        text = ", ".join(f"{name}: {_cell(item)}" for name, item in value.items())
    elif isinstance(value, list):
        text = ", ".join(_cell(item) for item in value) or "none"
    else:
        text = str(value)
    text = " ".join(text.replace("|", "/").split())
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"
