"""Owns the words in which `decide` says what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from engine.domain.events import Body, CompactionStarted, ExecutionStarted, ModelAttemptStarted
from engine.domain.policy import ModelUse
from engine.policy.contract import Contract


@dataclass(frozen=True, slots=True)
class Record:
    """Facts that follow from what is known; nothing is sent."""

    bodies: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class AskModel:
    """Record `bodies`, then make one attempt at the next ModelTurn, after `wait` seconds."""

    bodies: tuple[Body, ...]
    start: ModelAttemptStarted
    model: ModelUse
    contract: Contract
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Measure:
    """The request may not fit a budget: count it as its provider does, then ask again."""

    model: ModelUse
    contract: Contract


@dataclass(frozen=True, slots=True)
class Compact:
    """Ask the fast model for a summary of the assistant's own text; without one, older results become stubs."""

    start: CompactionStarted
    model: ModelUse
    text: str


@dataclass(frozen=True, slots=True)
class Execute:
    """Record `before` and the starts, then dispatch them: several only if all are reads."""

    starts: tuple[ExecutionStarted, ...]
    before: tuple[Body, ...] = ()


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Ask the declared probe what became of a call of unknown outcome."""

    start: ExecutionStarted


@dataclass(frozen=True, slots=True)
class Compensate:
    """Undo one confirmed effect by its declared compensation."""

    start: ExecutionStarted


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before somebody acts, or before `until`."""

    waiting_for: Literal["approval", "reconciliation", "input"]
    detail: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The model cannot be reached now; the Run stays as it is and can be resumed."""

    error: str
    message: str


@dataclass(frozen=True, slots=True)
class Done:
    """The Run is over."""


Step: TypeAlias = (
    Record | AskModel | Compact | Measure | Execute | Reconcile | Compensate | Wait | Stop | Done
)
