"""Owns what a condition may read, and the third truth value.

Facts are a view over RunState and policy constants, built by `policy.view`. They have no place for assistant
text, user text or undeclared results: what is not here cannot be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from engine.domain.canonical import Json


class Unknown(Enum):
    """Why a value is not known. Both restrict; PENDING alone may still be settled by the model's arguments."""

    PENDING = "pending"
    """Depends only on arguments that the model has not supplied yet (contract time)."""
    UNKNOWN = "unknown"
    """Absent, out of range, not recorded, or a matching call is open."""

    def __bool__(self) -> bool:
        raise TypeError(
            "an unknown truth value is neither true nor false: compare with `is True` or `is False`"
        )


PENDING: Final = Unknown.PENDING
UNKNOWN: Final = Unknown.UNKNOWN

Truth: TypeAlias = bool | Unknown
Value: TypeAlias = Any
"""bool, int, Decimal, str, datetime, timedelta, list, dict, or Unknown; ints and decimals never become floats."""


class PastCall(NamedTuple):
    """A confirmed call: arguments after binding, its declared result fields, when the receipt was recorded."""

    args: Mapping[str, Json]
    result: Mapping[str, Json]
    at: datetime


@dataclass(slots=True)
class ToolHistory:
    """The receipts of one tool in this Run. Written by the fold only."""

    confirmed: list[PastCall] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Outcome -> number of receipts with it."""
    open: dict[tuple[int, int], Mapping[str, Json]] = field(default_factory=dict)
    """Calls started without a receipt, or of unknown outcome: call id -> arguments after binding."""
    changes: int = 0
    """How often any of it changed."""
    tallies: dict[object, tuple[int, Value]] = field(default_factory=dict, compare=False, repr=False)
    """Name -> how many confirmed calls were counted into a tally, and the tally."""

    def tally(self, name: object, add: Callable[[Value, PastCall], Value]) -> Value:
        """What `add` makes of all confirmed calls, begun with None: each is counted once, however often it is asked."""
        counted, value = self.tallies.get(name, (0, None))
        for call in self.confirmed[counted:]:
            value = add(value, call)
        self.tallies[name] = (len(self.confirmed), value)
        return value


EMPTY_HISTORY: Final = ToolHistory()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Origin(Protocol):
    """Where values literally occur in what the Host recorded."""

    def __call__(self, value: Value) -> frozenset[str] | Unknown: ...

    def places(self, value: Value) -> Sequence[tuple[str, str]]:
        """(origin, where it occurs) of a scalar; empty where it occurs nowhere."""
        ...

    def for_tool(self, tool: str) -> Origin:
        """The same as one tool sees it: values that were endorsed for it count."""
        ...


@dataclass(slots=True)
class Facts:
    """Everything one evaluation may read. A root that does not apply is an empty mapping."""

    principal: Mapping[str, Value] = field(default_factory=dict)
    """`id`, `roles` (list of str), and each declared attribute by its name."""
    task: Mapping[str, Value] = field(default_factory=dict)
    state: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """Slice -> declared fields, plus `age` (timedelta)."""
    source: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """Source -> `state` (str) and `age` (timedelta, absent before the first confirmed read)."""
    grants: Mapping[str, Sequence[Mapping[str, Value]]] = field(default_factory=dict)
    """Capability -> parameters of each active grant; a rule holds if it holds under any one of them."""
    run: Mapping[str, Value] = field(default_factory=dict)
    """`id`, `turn`, `calls`, `cost_minor`, `budget_left` (mapping), `labels` (list), `read_untrusted`."""
    limits: Mapping[str, Value] = field(default_factory=dict)
    now: datetime = _EPOCH
    tool: Mapping[str, Value] = field(default_factory=dict)
    """`name`, `kind`, `reversible`, `source`, `egress`."""
    call: Mapping[str, Value] = field(default_factory=dict)
    args: Mapping[str, Value] = field(default_factory=dict)
    """After binding. At contract time an argument of the model is PENDING; at call time one left out is absent."""
    params: Mapping[str, Value] = field(default_factory=dict)
    result: Mapping[str, Value] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)
    history: Mapping[str, ToolHistory] = field(default_factory=dict)
    """Tool -> its receipts, for done, count, sum and last_age."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """Evidence kind -> id of the newest in scope: what a parameter may be bound to; no condition reads it."""
    origin: Origin | None = None
    """None: provenance is not recorded, so every origin is UNKNOWN."""
    arg_classes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Argument class -> names of the parameters (not bound) of the tool that have it."""
    unattended: Mapping[str, int] = field(default_factory=dict)
    """Rule -> calls that ran unattended under it; for its cap, no condition reads it."""
