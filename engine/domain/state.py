"""Owns RunState: what the log of one Run says, folded. Written by `lifecycle.fold` and by nothing else.

It is mutable so that a live driver folds in constant time per event; everybody but the fold reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal, NamedTuple

from engine.domain.actors import Actor, Principal
from engine.domain.calls import CallStatus, Outcome
from engine.domain.canonical import Json, JsonObject
from engine.domain.events import (
    Edge,
    EvidenceItem,
    HostPurpose,
    LeftOut,
    ModelTurnRecorded,
    Proposal,
    RefusalRecord,
    Requirement,
    Reservation,
    StoredResult,
)
from engine.domain.facts import ToolHistory
from engine.domain.ids import CallId, RunId
from engine.domain.policy import Kind
from engine.domain.unsettled import Undoable, Unsettled


class CompactionState(NamedTuple):
    """A model's summary of assistant text; it owns no facts."""

    upto: int
    """The last turn that it covers."""
    model: str
    text: str
    reads: bool
    """It covers read results too."""


class Notice(NamedTuple):
    """News about a result that was shown: its outcome is known now, or a write made it out of date."""

    seq: int
    about: tuple[CallId, ...]
    kind: Literal["settled", "outdated"]
    by: CallId | None = None
    """The write that made it out of date."""


@dataclass(slots=True)
class ReceiptState:
    outcome: Outcome
    settled_by: str
    at: datetime
    detail: str = ""
    result: StoredResult | None = None
    evidence: tuple[str, ...] = ()
    """Handles E1, E2, … that this receipt brought."""
    cached_from: CallId | None = None
    obtained_at: datetime | None = None
    late: bool = False
    denial: str | None = None
    """refused, expired or undecided, where people were asked."""


@dataclass(slots=True)
class StandingState:
    """A yes that covers later calls of one tool with the same arguments."""

    id: str
    call: CallId
    tool: str
    rule: str
    args: JsonObject
    by: str
    roles: tuple[str, ...]
    expires_at: datetime | None
    calls_left: int | None
    ended: str = ""
    """`time`, `calls` or `revoked`; empty while active."""


@dataclass(slots=True)
class EndorsementState:
    """A person's word for one value of one argument of one tool."""

    id: str
    call: CallId
    tool: str
    arg: str
    value: str
    by: str
    roles: tuple[str, ...]
    expires_at: datetime
    ended: str = ""


class AmendedState(NamedTuple):
    """What a person changed of a call before it ran."""

    by: str
    original_args: JsonObject
    original_digest: str
    digest: str


@dataclass(slots=True)
class ApprovalState:
    """An open request for decisions about one stored call."""

    digest: str
    requirements: tuple[Requirement, ...]
    shown: JsonObject
    shown_digest: str
    requested_at: datetime
    given: list[tuple[Actor, frozenset[str]]] = field(default_factory=list)
    """Who said yes, and which rules that satisfies."""
    lasting: set[str] = field(default_factory=set)
    """Who said that their yes is meant for later calls too."""
    endorsed: dict[str, set[str]] = field(default_factory=dict)
    """Argument -> who vouches for its value."""
    decided: str = ""
    """`approved`, `refused` or `expired`; empty while open."""
    because: str = ""

    def missing(self) -> tuple[str, ...]:
        """Rules whose approval is not satisfied yet, in the order of the request."""
        return tuple(
            need.rule
            for need in self.requirements
            if len({actor.id for actor, rules in self.given if need.rule in rules}) < need.quorum
        )


@dataclass(slots=True)
class CallState:
    id: CallId
    tool: str
    kind: Kind | None
    """None until it is admitted, and for built-in tools."""
    status: CallStatus
    proposal: Proposal | None
    """None for calls of the Host."""
    seq: int
    """Of the event that brought it."""
    args: JsonObject | None = None
    args_digest: str = ""
    refusal: RefusalRecord | None = None
    held: str = ""
    """Why it is held: approval, queued, equal_key, question, capability, unknown_effects."""
    waits_for: tuple[str, ...] = ()
    detail: str = ""
    approval: ApprovalState | None = None
    amended: AmendedState | None = None
    approved_by: str | None = None
    attempts: int = 0
    started_at: datetime | None = None
    """When it was dispatched first."""
    sent_at: datetime | None = None
    """When it was dispatched last."""
    started_seq: int = 0
    """Of the event that dispatched it last."""
    fields: JsonObject = field(default_factory=dict)
    """Declared result fields that the Host may read."""
    idempotency_key: str | None = None
    source: str | None = None
    effects: tuple[str, ...] = ()
    reversible: bool = False
    edges: tuple[Edge, ...] = ()
    host: HostPurpose | None = None
    untrusted: bool = False
    labels: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()
    """Standing approvals under which it was sent."""
    cache_key: str | None = None
    outdated_by: tuple[str, ...] = ()
    outdated_at: int = 0
    """Seq of the write that may have made its answer out of date; 0 while current."""
    receipt: ReceiptState | None = None
    told: ReceiptState | None = None
    """The receipt that the model was shown, where a later one settled the outcome."""
    compensation: CallId | None = None
    """The call of the Host that tried to undo it."""
    compensated_by: CallId | None = None
    """The same, once it is confirmed."""
    hold_ends: datetime | None = None
    """When a declared hold lapses; None: no hold, or one without ttl."""
    holds: bool = False
    """The tool declares a hold; it is open while the call is in `RunState.open_holds`."""
    hold_ttl: float | None = None
    consumed_by: str | None = None
    refreshed: dict[str, CallId] = field(default_factory=dict)
    """State slice -> the call of the Host that refreshed it before this call was to run."""
    probes: int = 0
    next_probe: datetime | None = None

    @property
    def open(self) -> bool:
        return not self.status.final

    @property
    def unknown(self) -> bool:
        return self.receipt is not None and self.receipt.outcome is Outcome.UNKNOWN

    @property
    def probe_at(self) -> datetime | None:
        """When its outcome is to be looked for, if its tool says how: at once, then as the probe before it said."""
        if self.next_probe is None and self.probes == 0 and self.receipt is not None:
            return self.receipt.at
        return self.next_probe


@dataclass(slots=True)
class TurnState:
    number: int
    recorded: ModelTurnRecorded
    epoch: int
    """The permission epoch its contract was compiled under."""
    asked_seq: int
    """Of the ModelAttemptStarted that brought it: what was recorded later was not shown to it."""
    offered: frozenset[str] = frozenset()
    """Names of the tools in its contract."""
    calls: list[CallId] = field(default_factory=list)
    executed: bool = False
    """Something of it was executed: a receipt, a cache hit, a question, a publication."""


@dataclass(slots=True)
class GrantState:
    id: str
    capability: str
    params: JsonObject
    by: str
    granted_at: datetime
    expires_at: datetime | None
    calls_left: int | None
    ended: str = ""
    """`expired` or `revoked`; empty while active."""
    evidence: list[str] = field(default_factory=list)
    """Handles that were read under it."""


@dataclass(slots=True)
class EvidenceState:
    handle: str
    item: EvidenceItem
    call: CallId
    tool: str
    source: str | None
    read_at: datetime
    superseded: str = ""
    """Why it is out of scope; empty while in scope."""


@dataclass(slots=True)
class SliceState:
    value: JsonObject
    version: int
    at: datetime
    by: Actor
    seq: int = 0
    """Of the event that said so last."""
    printed: dict[int, Json] = field(default_factory=dict)
    """Version -> the declared field `version` it had, where the slice has one: for messages only."""


@dataclass(slots=True)
class PublicationState:
    output: str
    call: CallId
    fields: JsonObject
    rendered: JsonObject
    citations: tuple[str, ...]
    at: datetime
    digest: str
    evidence: tuple[str, ...] = ()
    """Everything that it cites or takes a figure from."""
    flags: list[str] = field(default_factory=list)
    """Evidence it rests on that fell out of scope later."""


@dataclass(slots=True)
class DraftState:
    handle: str
    output: str
    fields: JsonObject


@dataclass(slots=True)
class AttemptState:
    turn: int
    number: int
    model: str
    contract: str
    epoch: int
    reserved: Reservation
    started_at: datetime
    seq: int


@dataclass(slots=True)
class ContractState:
    digest: str
    epoch: int
    tools: frozenset[str]


def unattended_tool(tool: str) -> str:
    """Its key in `Spent.unattended`; no rule has such an id."""
    return f"tool {tool}"


@dataclass(slots=True)
class Spent:
    """What the budgets count."""

    turns: int = 0
    calls: int = 0
    """Every proposal."""
    per_tool: dict[str, int] = field(default_factory=dict)
    """Dispatched and held calls."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    cost_unknown: bool = False
    wall_seconds: float = 0.0
    """While a driver worked; waits for people do not count."""
    questions: int = 0
    invalid_in_a_row: int = 0
    idle_turns: int = 0
    """Closed turns in a row, the last one included, in which nothing was executed."""
    silent_turns: int = 0
    """Closed turns in a row without a call."""
    attempts_failed: int = 0
    """Failed attempts at the present turn."""
    unattended: dict[str, int] = field(default_factory=dict)
    """Rule -> calls that ran unattended under it; `unattended_tool(name)` -> those of that tool under any rule."""


@dataclass(slots=True, repr=False)
class RunState:
    run: RunId
    status: str = "created"
    """A state of `lifecycle.machine`."""
    seq: int = 0
    head: str = ""
    policy: str = ""
    policy_version: int = 0
    policy_digest: str = ""
    bundle: str = ""
    """Digest of the blob that holds the policy's texts."""
    restricted_by: dict[str, str] = field(default_factory=dict)
    """Policy or overlay id -> bundle of its newest loaded version, which restricts this Run."""
    draining: bool = False
    principal: Principal | None = None
    task: JsonObject = field(default_factory=dict)
    model: str = ""
    started_at: datetime | None = None
    updated_at: datetime | None = None
    inputs: list[tuple[int, str]] = field(default_factory=list)
    """(seq, text) of each user input that is not the reply to a question, in order."""
    said: list[str] = field(default_factory=list)
    """Every text that the user wrote, replies included."""
    user_values: list[tuple[CallId, JsonObject]] = field(default_factory=list)
    """Arguments that the principal gave as values, by editing a held call."""
    endorsed: dict[tuple[str, str], str] = field(default_factory=dict)
    """(tool, normalised value) -> who endorsed it, while the endorsement lasts."""
    endorsements: dict[str, EndorsementState] = field(default_factory=dict)
    standing: dict[str, StandingState] = field(default_factory=dict)
    """Approvals that cover later calls, by id."""
    answers: list[CallId] = field(default_factory=list)
    """Calls whose tool's words the model was shown (a result, a declared failure), in the order of their receipts."""
    omitted_inputs: set[int] = field(default_factory=set)
    """Seqs of inputs that no longer fit into a request."""
    left_out: LeftOut = field(default_factory=LeftOut)
    """What the newest request leaves out for want of room."""
    compactions: list[CompactionState] = field(default_factory=list)
    compacting: Reservation | None = None
    """What a summary that is being asked for may cost."""
    compaction_failed: int = 0
    """Turns recorded when a summary failed last; it is not asked for again at that turn."""
    notices: list[Notice] = field(default_factory=list)
    """What the model must hear about results that it was shown."""
    epoch: int = 0
    """The permission epoch."""
    moved_by: str = ""
    """What moved it last."""
    contract: ContractState | None = None
    attempt: AttemptState | None = None
    """A model attempt whose end is not recorded."""
    attempts: int = 0
    """Attempts started at the turn to come."""
    last_failure: tuple[str, str, float | None, datetime] | None = None
    """(error, message, retry_after, at) of the last failed attempt of the turn to come."""
    turns: list[TurnState] = field(default_factory=list)
    calls: dict[CallId, CallState] = field(default_factory=dict)
    open_calls: dict[CallId, None] = field(default_factory=dict)
    """Calls that are not final, in order."""
    unknown_calls: dict[CallId, None] = field(default_factory=dict)
    open_holds: dict[CallId, None] = field(default_factory=dict)
    hold_ends: list[tuple[datetime, CallId]] = field(default_factory=list)
    """A heap of when holds lapse as declared; its first is open."""
    consumers: dict[str, dict[CallId, None]] = field(default_factory=dict)
    """Effect -> holds that it consumes."""
    unsettled: Unsettled = field(default_factory=Unsettled)
    to_undo: dict[str, dict[CallId, Undoable]] = field(default_factory=dict)
    """Tool -> those of `changed` that nobody has tried to undo and that are no ended holds, in order."""
    undoing: dict[str, dict[CallId, None]] = field(default_factory=dict)
    """Tool -> compensations that neither succeeded nor failed, in order."""
    lapsed_holds: list[CallId] = field(default_factory=list)
    """Holds that ended by their declared ttl, as far as the Host's clock can tell."""
    changed: list[CallId] = field(default_factory=list)
    """Writes and hybrids of the model with a confirmed receipt, in the order of their receipts."""
    host_calls: int = 0
    grants: dict[str, GrantState] = field(default_factory=dict)
    open_grants: dict[str, None] = field(default_factory=dict)
    """Those of `grants` that have not ended; the same below for `standing` and `endorsements`."""
    open_standing: dict[str, None] = field(default_factory=dict)
    open_endorsements: dict[str, None] = field(default_factory=dict)
    amended: list[CallId] = field(default_factory=list)
    """Calls that people changed before they ran."""
    state: dict[str, SliceState] = field(default_factory=dict)
    refreshed: dict[str, datetime] = field(default_factory=dict)
    """Slice -> when the Host tried to read it again last."""
    sources: dict[str, str] = field(default_factory=dict)
    """Source -> state, where one was recorded; otherwise available."""
    source_read: dict[str, datetime] = field(default_factory=dict)
    evidence: dict[str, EvidenceState] = field(default_factory=dict)
    evidence_index: dict[tuple[str, str], str] = field(default_factory=dict)
    """(kind, id) -> the newest handle."""
    newest_evidence: dict[str, str] = field(default_factory=dict)
    """Evidence kind -> id of the newest."""
    cached: dict[str, CallId] = field(default_factory=dict)
    """Cache key -> the call that obtained the newest answer itself."""
    written: dict[str, int] = field(default_factory=dict)
    """Effect, or `source:<name>`, -> seq of the last confirmed or unknown write or hybrid with it."""
    current_reads: dict[str, dict[CallId, None]] = field(default_factory=dict)
    """Effect, or `source:<name>`, -> calls whose answers the model was shown and nothing has invalidated."""
    last_read: dict[tuple[str, str], CallId] = field(default_factory=dict)
    """(tool, digest of its arguments) -> the last confirmed read: an older answer is superseded."""
    publications: dict[str, PublicationState] = field(default_factory=dict)
    drafts: dict[str, DraftState] = field(default_factory=dict)
    history: dict[str, ToolHistory] = field(default_factory=dict)
    labels: set[str] = field(default_factory=set)
    read_untrusted: bool = False
    outcomes: dict[str, int] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    waiting_for: str = ""
    """approval, reconciliation or input, while parked."""
    asked: CallId | None = None
    """The question that a reply will answer."""
    cancel_requested: str | None = None
    finish_call: CallId | None = None
    """A finish that the gates let pass, while settling."""
    settling: tuple[str, str] | None = None
    """(ending, reason)."""
    ending: tuple[str, str, str] | None = None
    """(status, reason, message) once terminal."""
    unjudged: dict[CallId, None] = field(default_factory=dict)
    """Probes and refreshes whose answer the Host has not drawn its conclusion from."""
    last_epoch: int = 0
    """Claim epoch of the last event of a driver, for wall time."""
    worked_at: datetime | None = None
    """When that event was recorded."""
    parked: bool = False
    news: bool = False
    """Something happened since the Run was parked: decide again whether it must wait."""
    alerts: list[tuple[str, str]] = field(default_factory=list)
    forked_from: str | None = None

    def __repr__(self) -> str:
        return f"RunState({self.run!r}, {self.status!r}, seq={self.seq})"

    @property
    def terminal(self) -> bool:
        return self.ending is not None

    @property
    def turn(self) -> TurnState | None:
        return self.turns[-1] if self.turns else None

    def effects(self) -> list[CallState]:
        """Confirmed writes and hybrids of the model, in the order in which they started."""
        return [self.calls[call] for call in self.changed]

    def active_grants(self) -> dict[str, list[Mapping[str, Json]]]:
        """Capability -> parameters of each active grant, in the order they were granted."""
        found: dict[str, list[Mapping[str, Json]]] = {}
        for name in self.open_grants:
            grant = self.grants[name]
            found.setdefault(grant.capability, []).append(grant.params)
        return found
