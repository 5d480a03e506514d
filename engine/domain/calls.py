"""Owns the words for one call: what was proposed, what became of it, and how the API shows it.

`proposed → rejected / fenced / held → approved → started → receipt`. Absence of a receipt proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from engine.domain.canonical import Json
from engine.domain.ids import CallId


class Outcome(StrEnum):
    """What the Host knows of the effect of a started call."""

    CONFIRMED = "confirmed"
    NOT_EXECUTED = "not_executed"
    FAILED = "failed"
    UNKNOWN = "unknown"


class CallStatus(StrEnum):
    PROPOSED = "proposed"
    REJECTED = "rejected"
    """By the Host, before anything ran."""
    FENCED = "fenced"
    """The permission epoch moved after it was proposed."""
    HELD = "held"
    """Waits for people, or behind a call that waits."""
    APPROVED = "approved"
    STARTED = "started"
    SETTLED = "settled"
    """It has a receipt."""
    GRANTED = "granted"
    """A capability was granted."""
    COMMITTED = "committed"
    """A publication or a finish took effect."""

    @property
    def final(self) -> bool:
        return self not in (CallStatus.PROPOSED, CallStatus.HELD, CallStatus.APPROVED, CallStatus.STARTED)


class Failed(Exception):
    """Raised by a tool: it failed, and its effects are known (none beyond what it declares)."""


class NotExecuted(Exception):
    """Raised by a tool: nothing was done."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the Host did not let a call run; `message` is shown to the model and to people."""

    code: str
    """not_offered, invalid_arguments, no_rule, denied, budget, gate, no_branch, secret, reference, truncated, …"""
    message: str
    rule: str | None = None
    """The deciding deny; None where no rule permits or the reason is no rule."""
    field: str | None = None


@dataclass(frozen=True, slots=True)
class ReadCall:
    id: CallId
    tool: str
    args: Mapping[str, Json]
    outcome: Outcome | None
    result: Json
    cached_at: datetime | None
    """When the answer was first obtained, if it came from the read cache."""


@dataclass(frozen=True, slots=True)
class WriteCall:
    id: CallId
    tool: str
    args: Mapping[str, Json]
    outcome: Outcome | None
    result: Json
    executed_at: datetime | None
    approved_by: str | None
    """A person, or `rule <id> of policy <digest>, owner <owner>` for an unattended write."""


@dataclass(frozen=True, slots=True)
class HybridCall:
    id: CallId
    tool: str
    args: Mapping[str, Json]
    outcome: Outcome | None
    result: Json
    executed_at: datetime | None
    approved_by: str | None
    side_effects: tuple[str, ...]
    """The declared effects, if the outcome is confirmed or unknown; empty otherwise."""
    reversible: bool


ToolCall = ReadCall | WriteCall | HybridCall
