"""Owns the audit format: every fact of a Run, in the past tense, and the envelope that carries it.

Events are self-contained: folding a log needs no policy. A field is never removed or given another meaning;
a new shape gets an upcast in `domain.upcasts`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, TypeAdapter

from engine.domain.actors import Actor, Principal
from engine.domain.calls import Outcome
from engine.domain.canonical import Json, JsonObject, canonical, digest, refuse_surrogates
from engine.domain.errors import NewerLog
from engine.domain.ids import CallId, RunId
from engine.domain.policy import Kind

FORMAT = 1
"""Version of the audit format; a log with a higher one is refused, not guessed at."""

Call = Annotated[CallId, PlainSerializer(lambda call: [call[0], call[1]], return_type=list[int])]


class Body(BaseModel):
    """What happened. Subclasses are the event kinds; `kind` is the class name."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants", defer_build=True)
    kind: ClassVar[str]

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__()
        cls.kind = cls.__name__


class Record(BaseModel):
    """A part of an event."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants", defer_build=True)


class Usage(Record):
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False
    """True where a counter of ours, not the provider, says so."""


class Reservation(Record):
    """What a model attempt may cost at most, charged if its end is never learned."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = None
    """None: the model has no price and no money budget asks for one."""
    exact: bool = False
    """The provider counted the input; otherwise it is an estimate."""


class Proposal(Record):
    """A native tool call as the model sent it. Identity is (run, turn, ordinal); the provider's id is data."""

    ordinal: int
    tool: str
    arguments: str
    """The raw text, as received; cut at a bound, with `cut_from` its length in code points."""
    provider_id: str | None = None
    cut_from: int | None = None
    sanitised: bool = False
    """Lone surrogates in it were replaced by U+FFFD; such a call is rejected."""
    secret: str | None = None
    """The registered secret that the arguments contained; the text is not kept, and the call is rejected."""


class EvidenceItem(Record):
    """One citable thing of a result; the fold numbers them E1, E2, … per Run."""

    kind: str
    id: str
    as_of: str | None = None
    spans: tuple[str, ...] = ()
    figures: tuple[EvidenceFigure, ...] = ()


class EvidenceFigure(Record):
    name: str
    type: str
    """money, percent, decimal, int or date."""
    value: str
    key: str | None = None
    unit: str | None = None


class StoredResult(Record):
    """A result, inline or by digest in the blob table."""

    value: Json = None
    digest: str | None = None
    size: int = 0
    """Bytes of the canonical form."""
    fault: str | None = None
    """What is wrong with the result itself (too large, not storable, not as declared); the effect is not in doubt."""
    sanitised: bool = False


class RefusalRecord(Record):
    code: str
    message: str
    rule: str | None = None
    field: str | None = None
    gates: tuple[str, ...] = ()


class Requirement(Record):
    """One approval that a held call still needs, as the policy in force at the request said it."""

    rule: str
    roles: tuple[str, ...] = ()
    same_principal: bool = False
    not_requester: bool = False
    quorum: int = 1
    edit: tuple[str, ...] = ()
    endorse: tuple[str, ...] = ()
    standing_max_age: float | None = None
    """Seconds."""
    standing_max_calls: int | None = None
    signed: bool = False
    expires_at: datetime


class Amendment(Record):
    """What a person changed of a held call. The request goes on with these arguments; earlier yeses are void."""

    digest: str
    """Of the stored call as amended; the digest of the decision is that of the original."""
    args: JsonObject
    """After binding, as amended."""
    shown: JsonObject
    shown_digest: str


class Citation(Record):
    mark: str
    """As written, such as `E3` or `E3#p2`."""
    evidence: str
    span: str | None = None
    field: str


class RenderedFigure(Record):
    slot: str
    evidence: str
    text: str
    value: str
    unit: str | None = None
    as_of: str | None = None
    field: str


class HostPurpose(Record):
    """Why the Host itself calls a tool; such a call is no proposal."""

    purpose: Literal["probe", "refresh", "compensation"]
    subject: Call | None = None
    slice: str | None = None


class LeftOut(Record):
    """Up to which turn a request leaves things out for want of room: read results, texts, whole turns."""

    reads: int = 0
    texts: int = 0
    turns: int = 0


class Edge(Record):
    """Where one argument's value is found in the Host's records: bound, ref or literal (occurs in, never came from)."""

    arg: str
    type: Literal["bound", "ref", "literal"]
    origin: str
    source: str


# --- the Run --------------------------------------------------------------------------------------------


class RunStarted(Body):
    format: int = FORMAT
    engine: str
    policy: str
    policy_version: int
    policy_digest: str
    bundle: str
    """Digest of the blob that holds the texts the policy was compiled from."""
    principal: Principal
    task: JsonObject
    model: str
    """What proposes: a litellm id, `scripted/FILE` or `replay/RUN`."""
    forked_from: str | None = None
    forked_at: int | None = None
    worked_seconds: float = 0.0
    """Wall time that the Run it was forked from had used by then: a fork goes on with what is left of the budget."""


class InputReceived(Body):
    text: str
    answers: Call | None = None
    """The question it replies to, if one was asked."""


class RunParked(Body):
    """No driver can go on until somebody or something else acts."""

    waiting_for: Literal["approval", "reconciliation", "input"]
    detail: str = ""


class RunResumed(Body):
    pass


class CancelRequested(Body):
    because: str = ""


class SettlingStarted(Body):
    ending: Literal["completed", "failed", "cancelled", "expired"]
    reason: str
    """`finish`, `cancel`, `budget:<name>`, `drain`, `model:<class>`, `stale:<slice>`, …"""
    call: Call | None = None
    """The finish proposal that the gates let pass."""


class Ending(Body):
    """The end of a Run; names what it could not undo. Only what an operator or a late answer settles may follow."""

    reason: str
    message: str = ""
    unknown_effects: tuple[Call, ...] = ()
    not_compensated: tuple[Call, ...] = ()
    lapsed: tuple[Call, ...] = ()
    """Holds that ended by their declared ttl, as far as our clock can tell."""


class RunCompleted(Ending):
    call: Call | None = None
    """The finish proposal that the gates let pass."""


class RunFailed(Ending):
    pass


class RunCancelled(Ending):
    pass


class RunExpired(Ending):
    pass


# --- the model ------------------------------------------------------------------------------------------


class ContractCompiled(Body):
    """The tools[] that the next ModelTurn is asked with; recorded when it differs from the last one."""

    digest: str
    epoch: int
    tools: tuple[str, ...]
    changes: tuple[str, ...] = ()


class ModelAttemptStarted(Body):
    turn: int
    attempt: int
    model: str
    contract: str
    epoch: int
    reserved: Reservation = Reservation()
    state_versions: dict[str, int] = Field(default_factory=dict)
    """Slice -> the version that the request shows."""
    left_out: LeftOut = LeftOut()


class ModelAttemptFailed(Body):
    turn: int
    attempt: int
    error: str
    """timeout, rate_limited, unavailable, context_too_long, cut, invalid_response, auth, bad_request, fault."""
    message: str
    retry_after: float | None = None
    """Seconds, as the provider asked."""
    usage: Usage | None = None
    """None: not known, so the reservation is charged."""
    cost_usd: Decimal | None = None


class ModelTurnRecorded(Body):
    turn: int
    attempt: int
    model: str
    """As the response names it."""
    contract: str
    epoch: int
    text: str = ""
    parts: tuple[Json, ...] = ()
    """Opaque provider parts (signed reasoning), byte for byte."""
    proposals: tuple[Proposal, ...] = ()
    finish: Literal["stop", "tool_calls", "length", "filter", "refusal"] = "stop"
    usage: Usage = Usage()
    cost_usd: Decimal | None = None
    request_id: str | None = None
    state_versions: dict[str, int] = Field(default_factory=dict)


class InputOmitted(Body):
    """User inputs that do not fit into the request and are left out of it, each with a mark in its place."""

    inputs: tuple[int, ...]
    """Seqs of the inputs."""


class CompactionStarted(Body):
    """The fast model is asked for a summary of the assistant's own text; it can change nothing else."""

    upto: int
    """The last turn that it covers."""
    covers: tuple[str, ...]
    model: str
    reserved: Reservation = Reservation()


class ContextCompacted(Body):
    upto: int
    covers: tuple[str, ...]
    model: str
    """Author of the summary."""
    summary: str
    usage: Usage = Usage()
    cost_usd: Decimal | None = None


class CompactionFailed(Body):
    """The summary could not be had; older results are left out as stubs instead."""

    error: str
    message: str
    usage: Usage | None = None
    cost_usd: Decimal | None = None


# --- calls ----------------------------------------------------------------------------------------------


class CallRejected(Body):
    call: Call
    tool: str
    refusal: RefusalRecord
    args: JsonObject | None = None
    """None where the arguments could not be read."""


class CallFenced(Body):
    call: Call
    tool: str
    reason: str = "contract_changed"
    moved_by: str = ""
    """What moved the permission epoch, such as `granted documents`."""


class CallHeld(Body):
    call: Call
    tool: str
    tool_kind: Kind | None
    """None for a built-in tool."""
    reason: Literal[
        "approval", "queued", "equal_key", "question", "capability", "publication", "unknown_effects"
    ]
    waits_for: tuple[str, ...] = ()
    """Rules whose approval is missing; for a finish, the gates that hold it."""
    args: JsonObject = Field(default_factory=dict)
    """After binding."""
    detail: str = ""


class ApprovalRequested(Body):
    call: Call
    digest: str
    """Of the stored call: tool, spec digest, bound and model arguments, principal, policy digest."""
    requirements: tuple[Requirement, ...]
    shown: JsonObject
    """What a reviewer is shown, rendered by the Host from stored values."""
    shown_digest: str


class ApprovalGiven(Body):
    call: Call
    digest: str
    shown_digest: str
    satisfies: tuple[str, ...]
    """Rules for which this person is eligible."""
    edits: JsonObject | None = None
    amendment: Amendment | None = None
    """What the edits make of the call."""
    endorses: tuple[str, ...] = ()
    """Arguments whose values this person vouches for."""
    standing: bool = False
    """The yes is meant for later calls too, as far as the rules allow it."""
    because: str = ""


class ApprovalRefused(Body):
    call: Call
    because: str = ""


class ApprovalExpired(Body):
    call: Call


class StandingGranted(Body):
    """A yes that covers later calls of one tool with the same arguments, under one rule."""

    grant: str
    """`S1`, `S2`, …"""
    call: Call
    """The approved call that it came with."""
    tool: str
    rule: str
    args: JsonObject
    """Bound and model arguments that a later call must have, all of them."""
    by: str
    roles: tuple[str, ...] = ()
    """Roles of the rule's approvers: they may revoke it."""
    expires_at: datetime | None = None
    calls: int | None = None


class StandingEnded(Body):
    grant: str
    because: Literal["time", "calls", "revoked"]
    detail: str = ""


class ValueEndorsed(Body):
    """A person vouched for one value of one argument of one tool: it has origin `endorsed` there."""

    endorsement: str
    """`V1`, `V2`, …"""
    call: Call
    tool: str
    arg: str
    value: str
    """In the one spelling under which values are compared."""
    by: str
    roles: tuple[str, ...] = ()
    expires_at: datetime


class EndorsementEnded(Body):
    endorsement: str
    because: Literal["time", "revoked"]
    detail: str = ""


DecisionWord = Literal["approve", "refuse", "reconcile", "revoke"]


class DecisionNotEligible(Body):
    """Somebody tried to decide and may not; nothing changed."""

    call: str
    decision: DecisionWord
    because: str


class ExecutionStarted(Body):
    """Durable before anything is sent; of a read, in the same commit as its turn."""

    call: Call
    tool: str
    tool_kind: Kind
    attempt: int = 1
    args: JsonObject
    """After binding: what the tool is given."""
    args_digest: str
    policy_digest: str = ""
    idempotency_key: str | None = None
    approved_by: str | None = None
    source: str | None = None
    effects: tuple[str, ...] = ()
    reversible: bool = False
    normalised: tuple[str, ...] = ()
    """How the raw arguments were read where they were not plain: `empty`, `unwrapped`."""
    edges: tuple[Edge, ...] = ()
    host: HostPurpose | None = None
    holds: bool = False
    """The tool declares a hold."""
    hold_ttl: float | None = None
    """Seconds; None: the hold does not lapse."""
    consumed_by: str | None = None
    untrusted: bool = False
    """Its result comes from an untrusted source or holds an untrusted field."""
    labels: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    """Grants that the permitting rule needed: each is used once by this call."""
    standing: tuple[str, ...] = ()
    """Standing approvals in the place of a person's yes: each is used once by this call."""
    cache_key: str | None = None
    """Of a read whose answer may be used again."""
    outdated_by: tuple[str, ...] = ()
    """Of a read: the effects, or `source:<name>`, of writes that make its answer out of date."""


class ReceiptRecorded(Body):
    call: Call
    tool: str
    outcome: Outcome
    settled_by: Literal["tool", "host", "probe", "operator", "cache"]
    detail: str = ""
    """Shown to the model and to people: why it failed, was not executed or is unknown."""
    denial: Literal["refused", "expired", "undecided"] | None = None
    """Of a call that people were asked about: somebody said no, nobody decided in time, or the Run ended first.
    Nobody was asked about a call that is rejected."""
    result: StoredResult | None = None
    fields: JsonObject = Field(default_factory=dict)
    """Declared, typed result fields of trusted trust: what conditions may read."""
    evidence: tuple[EvidenceItem, ...] = ()
    cached_from: Call | None = None
    args: JsonObject | None = None
    """Of a cache hit, which has no ExecutionStarted."""
    edges: tuple[Edge, ...] = ()
    obtained_at: datetime | None = None
    """When the answer was obtained, if not now (a cache hit, a late answer)."""
    late: bool = False
    duration_ms: int | None = None


class ReconcileTried(Body):
    """A probe ran for a call of unknown outcome and could not tell."""

    call: Call
    probe: Call
    attempt: int
    next_at: datetime | None = None


class HoldLapsed(Body):
    call: Call


# --- capabilities, questions, outputs ---------------------------------------------------------------------


class CapabilityRequested(Body):
    call: Call
    capability: str
    params: JsonObject
    reason: str = ""
    """The model's words; no condition can read them."""


class CapabilityGranted(Body):
    grant: str
    capability: str
    params: JsonObject
    by: str
    """`host`, `start`, or who approved."""
    call: Call | None = None
    expires_at: datetime | None = None
    calls: int | None = None


class CapabilityDenied(Body):
    call: Call
    capability: str
    because: str


class GrantExpired(Body):
    grant: str
    because: Literal["time", "calls"]


class GrantRevoked(Body):
    grant: str
    because: str = ""


class QuestionAsked(Body):
    call: Call
    question: str


class DraftKept(Body):
    """The valid fields of a refused publication."""

    call: Call
    handle: str
    output: str
    fields: JsonObject


class OutputPublished(Body):
    call: Call
    output: str
    fields: JsonObject
    """As the model wrote them, slots and marks included."""
    rendered: JsonObject
    """What people read: figures rendered, marks numbered."""
    citations: tuple[Citation, ...] = ()
    figures: tuple[RenderedFigure, ...] = ()
    digest: str


# --- facts of the outside ---------------------------------------------------------------------------------


SourceState = Literal["available", "degraded", "unavailable", "unauthorized"]


class SourceStateChanged(Body):
    source: str
    state: SourceState
    because: str = ""


class StateUpdated(Body):
    slice: str
    value: JsonObject
    version: int
    """Given by the Host. An equal value renews the age and keeps the version."""
    by: str = ""


class PolicyLoaded(Body):
    """A newer version of the Run's policy is known; it restricts the Run at once and never widens it."""

    policy: str
    digest: str
    bundle: str
    version: int
    overlay: bool = False
    drain: bool = False


class OperatorAlerted(Body):
    """Something a person should look at; it changes no decision."""

    code: str
    message: str


BODIES: dict[str, type[Body]] = {
    body.kind: body
    for body in (
        RunStarted, InputReceived, RunParked, RunResumed, CancelRequested, SettlingStarted,
        RunCompleted, RunFailed, RunCancelled, RunExpired,
        InputOmitted, CompactionStarted, ContextCompacted, CompactionFailed,
        ContractCompiled, ModelAttemptStarted, ModelAttemptFailed, ModelTurnRecorded,
        CallRejected, CallFenced, CallHeld, ApprovalRequested, ApprovalGiven, ApprovalRefused, ApprovalExpired,
        StandingGranted, StandingEnded, ValueEndorsed, EndorsementEnded,
        DecisionNotEligible, ExecutionStarted, ReceiptRecorded, ReconcileTried, HoldLapsed,
        CapabilityRequested, CapabilityGranted, CapabilityDenied, GrantExpired, GrantRevoked,
        QuestionAsked, DraftKept, OutputPublished,
        SourceStateChanged, StateUpdated, PolicyLoaded, OperatorAlerted,
    )
}  # fmt: skip
"""Every event kind by its name."""


@dataclass(frozen=True, slots=True)
class Event:
    """One stored fact. `hash` covers everything else in the envelope and the payload text."""

    run: RunId
    seq: int
    """From 1, without gaps."""
    recorded_at: datetime
    actor: Actor
    claim_epoch: int
    """The claim under which a driver appended it; 0 for people and applications."""
    body: Body
    payload: str
    """The body as canonical JSON text: what is stored and hashed."""
    previous: str
    """Hash of the event before; 64 zeros for the first."""
    hash: str

    @property
    def kind(self) -> str:
        return self.body.kind


GENESIS = "0" * 64
_ACTOR = TypeAdapter(Actor)


def payload_of(body: Body) -> str:
    """The canonical text of a body; defaults are left out. Raises NotJson for what cannot be stored."""
    text = canonical(body.model_dump(mode="json", exclude_defaults=True))
    if "\ufffd" in text:  # what pydantic makes of a lone surrogate in a key
        refuse_surrogates(body.model_dump())
    return text


@lru_cache(maxsize=256)
def actor_text(actor: Actor) -> str:
    return canonical(actor.model_dump(mode="json", exclude_defaults=True))


def read_actor(text: str) -> Actor:
    return _ACTOR.validate_json(text)


def timestamp(moment: datetime) -> str:
    """UTC with microseconds, `2026-06-30T12:00:00.000000Z`: sorts as text."""
    return _utc_text(moment if moment.tzinfo is UTC else moment.astimezone(UTC))


@lru_cache(maxsize=64)
def _utc_text(moment: datetime) -> str:
    """The time of one event is written three times: sealed, stored, summed up."""
    return moment.isoformat(timespec="microseconds")[:-6] + "Z"


def hash_of(
    run: str, seq: int, kind: str, recorded_at: datetime, actor: str, epoch: int, payload: str, previous: str
) -> str:
    """The chain hash: SHA-256 over the canonical list of the envelope, the payload by its digest."""
    return digest(
        f"[{FORMAT},{_quoted(run)},{seq},{_quoted(kind)},{_quoted(timestamp(recorded_at))},{_quoted(actor)},{epoch},"
        f"{_quoted(digest(payload))},{_quoted(previous)}]"
    )


_quoted = json.encoder.encode_basestring
"""A string as `canonical` writes it: the envelope is a list of strings and integers, and is sealed for every event."""


def seal(
    run: RunId, seq: int, recorded_at: datetime, actor: Actor, claim_epoch: int, body: Body, previous: str
) -> Event:
    """Makes the stored form of a fact. Raises NotJson if the body holds what JSON cannot."""
    payload = payload_of(body)
    sealed = hash_of(run, seq, body.kind, recorded_at, actor_text(actor), claim_epoch, payload, previous)
    return Event(run, seq, recorded_at, actor, claim_epoch, body, payload, previous, sealed)


def read_body(kind: str, payload: str) -> Body:
    """The typed body of a stored payload. Raises NewerLog for a kind or shape this version does not know."""
    from engine.domain.upcasts import upcast

    model = BODIES.get(kind)
    try:
        if model is None:
            raise ValueError(f"event kind {kind}")
        return model.model_validate_json(upcast(kind, payload))
    except ValueError as error:
        raise NewerLog(
            f"the log holds a `{kind}` event that this version cannot read",
            remedy="it was written by a newer agentctl: install that version to work on this Run",
        ) from error
