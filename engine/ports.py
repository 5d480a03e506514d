"""Owns the Protocols through which the Runtime meets the outside: store, model, tools, clock, token counter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple, Protocol

from engine.domain.canonical import Json
from engine.domain.errors import AgentctlError, ClaimHeld, ClaimLost
from engine.domain.events import Event, StoredResult, Usage
from engine.domain.ids import CallId, RunId
from engine.domain.messages import Message, ToolSchema
from engine.domain.policy import ModelUse, ToolSpec

# --- store ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Owner:
    """The process behind a claim: one that is dead on this host voids its claim at once."""

    host: str
    pid: int
    started: float
    """Start time of the process in seconds since its host booted (no clock step moves it); tells a reused pid
    apart. 0 where the system does not say."""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to drive a Run. `epoch` grows with every claim of that Run; appends under an older one fail."""

    run: RunId
    epoch: int
    owner: Owner
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Head:
    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One event as the database holds it, unread: what an audit hashes. See `Event` for the fields."""

    seq: int
    kind: str
    recorded_at: str
    actor: str
    claim_epoch: int
    payload: str
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One row of the run list, rebuilt from events at any time."""

    run: RunId
    policy: str
    policy_digest: str
    status: str
    turns: int
    started_at: datetime
    updated_at: datetime
    seq: int
    principal: str
    model: str
    open_approvals: int = 0
    open_holds: int = 0
    unknown_effects: int = 0
    reason: str = ""
    """Why it ended, or what it waits for."""


@dataclass(frozen=True, slots=True)
class Append:
    """Events of one step for one Run: all of them become durable, or none."""

    run: RunId
    expected_seq: int
    """The seq of the last event before these; 0 creates the Run."""
    events: Sequence[Event]
    claim: Claim | None = None
    """None: appended by a person or an application."""
    blobs: Mapping[str, str] = field(default_factory=dict)
    """Digest -> text of large results, contracts and policy bundles that the events name."""
    summary: RunSummary | None = None


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    policy: str
    version: int
    digest: str
    bundle: str
    """Digest of the blob that holds its texts."""
    loaded_at: datetime
    by: str
    overlay: bool = False
    drain: bool = False
    """The Runs that were open then end in order."""


class EventStore(Protocol):
    """An append-only log per Run. One contract suite (`tests/contracts/store.py`) holds every implementation.

    All methods are synchronous and raise StoreError (with a remedy) where the database cannot be used.
    """

    def append(self, item: Append) -> None:
        """Makes the events durable. Raises Conflict (the log moved), ClaimLost (a newer claim exists),
        UsageError (expected_seq 0 and the Run exists)."""
        ...

    def append_all(self, items: Sequence[Append]) -> list[AgentctlError | None]:
        """Several Runs in one commit; each item succeeds or fails by itself, in order."""
        ...

    def events(self, run: RunId, after: int = 0) -> Iterator[Event]:
        """Events with seq > after, in order. Raises NewerLog, LogBroken for a row that nobody can have appended."""
        ...

    def rows(self, run: RunId, after: int = 0) -> Iterator[StoredRow]:
        """The same as stored, whether it can be read or not."""
        ...

    def head(self, run: RunId) -> Head | None: ...

    def resolve(self, prefix: str) -> list[RunId]:
        """Run ids that start with `prefix`, at most 10."""
        ...

    def runs(
        self, *, status: str | None = None, policy: str | None = None, limit: int = 100
    ) -> list[RunSummary]:
        """Newest first (by id, which sorts by birth); Runs whose appends never carried a summary are left out."""
        ...

    def blob(self, digest: str) -> str | None: ...

    def put_blob(self, text: str) -> str:
        """Stores text by its SHA-256 (once) and returns the digest."""
        ...

    def claim(self, run: RunId, owner: Owner, now: datetime, ttl: timedelta) -> Claim:
        """Takes the Run. Raises ClaimHeld while another claim lives."""
        ...

    def renew(self, claim: Claim, now: datetime, ttl: timedelta) -> Claim:
        """Prolongs it. Raises ClaimLost."""
        ...

    def release(self, claim: Claim) -> None:
        """Gives it up; a claim already lost is no error."""
        ...

    def claim_all(
        self, runs: Sequence[RunId], owner: Owner, now: datetime, ttl: timedelta
    ) -> list[Claim | ClaimHeld]:
        """Several Runs in one commit; each is taken or not by itself, in order."""
        ...

    def renew_all(self, claims: Sequence[Claim], now: datetime, ttl: timedelta) -> list[Claim | ClaimLost]:
        """The same for claims that are prolonged."""
        ...

    def release_all(self, claims: Sequence[Claim]) -> None:
        """The same for claims that are given up."""
        ...

    def load_policy(self, loaded: LoadedPolicy) -> None: ...

    def newest_policies(self, policy: str) -> list[LoadedPolicy]:
        """The last loaded version of the policy, and of every overlay loaded by itself."""
        ...

    def close(self) -> None: ...


# --- model ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelRequest:
    run: RunId
    turn: int
    attempt: int
    model: ModelUse
    messages: Sequence[Message]
    """A view over the log; read, never changed or kept."""
    tools: Sequence[ToolSchema]
    contract: str
    """Digest of tools."""
    results: Callable[[StoredResult], Json]
    """Reads a stored result, by digest where it is large."""


@dataclass(frozen=True, slots=True)
class ProposedCall:
    tool: str
    arguments: str
    """Raw text as received."""
    provider_id: str | None = None


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """A closed response. Anything less raises AttemptFailed."""

    model: str
    text: str = ""
    parts: tuple[Json, ...] = ()
    calls: tuple[ProposedCall, ...] = ()
    finish: Literal["stop", "tool_calls", "length", "filter", "refusal"] = "stop"
    usage: Usage = field(default_factory=Usage)
    cost_usd: Decimal | None = None
    request_id: str | None = None


AttemptError = Literal[
    "timeout",
    "rate_limited",
    "unavailable",
    "context_too_long",
    "cut",
    "invalid_response",
    "auth",
    "bad_request",
    "fault",
]


class AttemptFailed(Exception):
    """One attempt brought no closed response."""

    def __init__(
        self,
        error: AttemptError,
        message: str,
        *,
        remedy: str = "",
        retry_after: float | None = None,
        usage: Usage | None = None,
        cost_usd: Decimal | None = None,
    ) -> None:
        super().__init__(message)
        self.error: AttemptError = error
        self.message = message
        self.remedy = remedy
        """What a person can do, where the error is theirs to mend (`auth`)."""
        self.retry_after = retry_after
        """Seconds."""
        self.usage = usage
        self.cost_usd = cost_usd

    @property
    def retryable(self) -> bool:
        return self.error in ("timeout", "rate_limited", "unavailable", "cut", "invalid_response")


class ModelGateway(Protocol):
    """Whatever proposes. It is asked once per attempt and never retries by itself."""

    async def propose(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelResponse:
        """One attempt. `on_text` gets working text as it comes. Raises AttemptFailed, nothing else."""
        ...

    def price(self, model: ModelUse, input_tokens: int, output_tokens: int) -> Decimal | None:
        """USD for so many tokens; None where the model has no known price."""
        ...


class Counted(NamedTuple):
    """Input tokens of one request; `exact` where its provider said so."""

    tokens: int
    exact: bool = False


class InputMeter(Protocol):
    """Counts a whole request better than an estimate can; may cost a network call, so it is asked near a budget."""

    async def count(self, request: ModelRequest) -> Counted | None:
        """None where it cannot be had now: the estimate stands. Raises nothing but cancellation."""
        ...


class Secrets(Protocol):
    """The registered secret values of this process, by name."""

    def find(self, text: str) -> str | None:
        """The name of a secret that occurs in `text`, in any form that is looked for."""
        ...

    def mask(self, text: str) -> str:
        """`text` with `[secret NAME]` where a secret stood."""
        ...

    def may_begin(self, text: str) -> int:
        """Where the end of `text` starts that a secret may begin with; the length of `text` where none does."""
        ...


# --- tools ----------------------------------------------------------------------------------------------


class Left(Protocol):
    """Who hears of a dispatch that is left while its tool still works in this process."""

    def given_up(self) -> None:
        """Nobody waits any more; `answered` follows when the tool ends."""
        ...

    def answered(self, answer: object) -> None:
        """What it answered or raised. May wait: called in a thread of its own, never in the event loop."""
        ...


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """One dispatch. `args` hold bound and model arguments; `call` is the Host identity."""

    run: RunId
    call: CallId
    spec: ToolSpec
    args: Mapping[str, Json]
    now: datetime
    idempotency_key: str | None = None
    attempt: int = 1
    left: Left | None = None


class ToolExecutor(Protocol):
    async def execute(self, request: ToolRequest) -> object:
        """The tool's raw answer. Raises Failed or NotExecuted as the tool did; TimeoutError; anything else
        leaves the outcome of a write or hybrid unknown."""
        ...

    def check(self, specs: Sequence[ToolSpec]) -> list[str]:
        """What cannot be run, one line each; empty when every handler is there."""
        ...


class Clock(Protocol):
    def now(self) -> datetime:
        """UTC, with time zone."""
        ...

    async def sleep(self, seconds: float) -> None: ...
