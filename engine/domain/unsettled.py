"""Owns the shape of what a Run has not brought to an end: effects of unknown outcome, effects that may be undone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from engine.domain.ids import CallId


class ProbeTime(NamedTuple):
    """When a call of unknown outcome is to be probed."""

    at: datetime
    seq: int
    """Of the event that said so."""
    call: CallId


class Undoable(NamedTuple):
    """A confirmed effect among those of its tool that nobody has tried to undo."""

    place: int
    """Among all of the Run, in the order of their receipts."""
    until: datetime | None
    """When the last hold of the tool, up to this call, lapses as declared; None: one of the calls never does."""


@dataclass(slots=True)
class Unsettled:
    """Calls that were sent and whose outcome is not known, by what they are looked for."""

    by_key: dict[str, dict[CallId, None]] = field(default_factory=dict)
    """Idempotency key -> calls with it."""
    by_change: dict[str, dict[CallId, None]] = field(default_factory=dict)
    """Effect, or `source:<name>` -> writes and hybrids with it."""
    probes: dict[str, list[ProbeTime]] = field(default_factory=dict)
    """Tool -> a heap of when its calls are to be probed; its first stands."""
