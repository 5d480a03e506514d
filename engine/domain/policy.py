"""Owns the Policy: what the documents say after loading, with no YAML left.

Built by `policy.compiler`, read by everything that decides. All of it is immutable. Field names follow the
keys of the language reference; a key that is absent in the file is None, an empty tuple or an empty mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Literal

from engine.domain.canonical import Json
from engine.domain.conditions import Condition
from engine.domain.diagnostics import Location
from engine.domain.types import ArgClass, Field, Trust, ValueType


class Kind(StrEnum):
    READ = "read"
    WRITE = "write"
    HYBRID = "hybrid"


class Effect(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    REQUIRE = "require"
    DENY = "deny"

    @property
    def permits(self) -> bool:
        return self in (Effect.ALLOW, Effect.ASK)


# --- tools/v1 -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PythonHandler:
    module: str
    function: str

    def __str__(self) -> str:
        return f"python:{self.module}:{self.function}"


@dataclass(frozen=True, slots=True)
class McpHandler:
    server: str
    tool: str
    schema_sha256: str | None

    def __str__(self) -> str:
        return f"mcp:{self.server}:{self.tool}"


Handler = PythonHandler | McpHandler


@dataclass(frozen=True, slots=True)
class Param:
    name: str
    type: ValueType
    bind: str | None
    """The dotted Host fact that fills it in (`task.portfolio_id`); None: the model supplies it."""
    required: bool
    arg_class: ArgClass | None
    description: str | None
    place: Location


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    type: Literal["money", "percent", "decimal", "int", "date"]
    at: str
    """A result path such as `result.positions[].market_value`; `[]` is each element."""
    key: str | None
    """The field of the element that names it in a slot (`isin`); None: the figure has no key."""
    currency: str | None
    """A result path to the currency of a money figure."""


@dataclass(frozen=True, slots=True)
class EvidenceSpec:
    kind: str
    id: str
    as_of: str | None
    spans: str | None
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class CacheSpec:
    ttl: timedelta
    key: tuple[str, ...]
    scope: Literal["run", "principal", "shared"]
    invalidated_by: tuple[str, ...] | None
    """None: any confirmed or unknown write or hybrid on the same source."""


@dataclass(frozen=True, slots=True)
class Idempotency:
    key: tuple[str, ...]
    """Parameter names and dotted Host facts (`run.id`, `call.id`, `state.cart.version`)."""
    send_as: str | None
    window: timedelta | None


@dataclass(frozen=True, slots=True)
class Reconcile:
    probe: str | None
    args: Mapping[str, str]
    """Probe parameter -> `idempotency_key`, `args.<param>` or a Host fact."""
    confirms: Condition | None
    refutes: Condition | None
    manual: str | None


@dataclass(frozen=True, slots=True)
class Compensate:
    tool: str
    args: Mapping[str, str]
    """Parameter -> `idempotency_key`, `args.<param>`, `result.<field>` or a Host fact."""
    on: frozenset[str]
    """Subset of run_failed, run_cancelled, run_finished."""


@dataclass(frozen=True, slots=True)
class Hold:
    ttl: timedelta | None
    consumed_by: str | None


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    title: str
    trust: Trust
    place: Location


class Retry(StrEnum):
    NEVER = "never"
    KNOWN_NOT_EXECUTED = "known_not_executed"
    SAME_KEY = "same_key"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    name: str
    kind: Kind
    handler: Handler
    exposed: Literal["model", "host"]
    narrow: bool
    source: str | None
    description: str
    params: Mapping[str, Param]
    result: Mapping[str, Field]
    """Declared result fields; empty when the result is not declared."""
    labels: frozenset[str]
    egress: bool
    evidence: EvidenceSpec | None
    cache: CacheSpec | None
    effects: tuple[str, ...]
    idempotency: Idempotency | None
    reconcile: Reconcile | None
    reversible: bool
    compensate: Compensate | None
    holds: Hold | None
    serialize_by: tuple[str, ...] | None
    sensitive: frozenset[str]
    timeout: timedelta
    retry: Retry
    digest: str
    """Over the canonical form of the spec as written; approvals bind to it."""
    place: Location

    @property
    def model_params(self) -> tuple[Param, ...]:
        return tuple(param for param in self.params.values() if param.bind is None)

    @property
    def bound_params(self) -> tuple[Param, ...]:
        return tuple(param for param in self.params.values() if param.bind is not None)


# --- policy/v1 and overlay/v1 ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ApproverSpec:
    """Who may say yes. Several requirements (one per matched rule) must each be satisfied."""

    roles: frozenset[str]
    same_principal: bool
    not_requester: bool
    quorum: int
    shows: tuple[str, ...]
    expires: timedelta
    edit: tuple[str, ...]
    endorse: tuple[str, ...]
    standing_max_age: timedelta | None
    standing_max_calls: int | None
    signed: bool


@dataclass(frozen=True, slots=True)
class Fresh:
    state: str
    same_version_as_proposal: bool
    max_age: timedelta | None


@dataclass(frozen=True, slots=True)
class Unattended:
    because: str
    max_per_run: int


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    effect: Effect
    tools: tuple[str, ...]
    """As written: names and selectors."""
    matches: frozenset[str]
    """The tool names that `tools` resolves to, `publish_<output>` included."""
    roles: frozenset[str] | None
    needs: tuple[str, ...]
    when: Condition | None
    unless: Condition | None
    fresh: tuple[Fresh, ...]
    approval: ApproverSpec | None
    unattended: Unattended | None
    because: str | None
    origin: str
    """`policy`, or `overlay <id>`."""
    place: Location


@dataclass(frozen=True, slots=True)
class HideRule:
    id: str
    tools: tuple[str, ...]
    matches: frozenset[str]
    roles: frozenset[str] | None
    when: Condition | None
    origin: str
    place: Location


@dataclass(frozen=True, slots=True)
class Limit:
    type: ValueType
    value: object
    max: object | None


@dataclass(frozen=True, slots=True)
class SourceUse:
    usable_when: frozenset[str]
    max_age: timedelta | None


@dataclass(frozen=True, slots=True)
class ApproveBranch:
    when: Condition | None
    by: Literal["host", "starter"] | ApproverSpec
    at_start: bool
    timeout: timedelta | None
    place: Location


@dataclass(frozen=True, slots=True)
class Capability:
    name: str
    about: str
    params: Mapping[str, ValueType]
    request_roles: frozenset[str] | None
    request_when: Condition | None
    approve: tuple[ApproveBranch, ...]
    expires_after: timedelta | None
    expires_calls: int | None
    revoke_roles: frozenset[str]
    place: Location


@dataclass(frozen=True, slots=True)
class StateSlice:
    name: str
    fields: Mapping[str, Field]
    refresh: str | None
    max_age: timedelta | None
    place: Location


@dataclass(frozen=True, slots=True)
class Projection:
    id: str
    slice: str
    fields: tuple[str, ...]
    render: Literal["record", "list", "table"]
    every_turn: bool
    max_age: timedelta | None
    if_stale: Literal["refresh", "omit", "stop"]
    place: Location


@dataclass(frozen=True, slots=True)
class OutputField:
    name: str
    type: ValueType
    required: bool
    cites: bool
    figures: bool


@dataclass(frozen=True, slots=True)
class Citations:
    kinds: frozenset[str]
    min: int | None
    min_per_section: int | None
    max_age: timedelta | None


@dataclass(frozen=True, slots=True)
class FigureUse:
    kinds: frozenset[str]
    from_kinds: frozenset[str]
    locale: str = "en"
    """How numbers are written."""


@dataclass(frozen=True, slots=True)
class PublishRule:
    roles: frozenset[str] | None
    when: Condition | None
    approval: ApproverSpec | None
    gates: tuple[Gate, ...]


@dataclass(frozen=True, slots=True)
class Output:
    name: str
    about: str
    fields: Mapping[str, OutputField]
    citations: Citations | None
    figures: FigureUse | None
    publish: PublishRule | None
    place: Location
    templates: Mapping[str, str] = field(default_factory=dict)
    """Format (`markdown`, `html`) -> the policy's own Jinja2 template; a format that is not here has a built-in one."""

    @property
    def tool(self) -> str:
        return f"publish_{self.name}"


@dataclass(frozen=True, slots=True)
class Gate:
    """One declared gate: `output_committed`, `citations_eligible`, `holds_closed` or `when`."""

    name: Literal["output_committed", "citations_eligible", "holds_closed", "when"]
    subject: str
    """The output or effect; the text of the condition for `when`."""
    when: Condition | None
    place: Location


@dataclass(frozen=True, slots=True)
class Budgets:
    turns: int
    cost_usd: Decimal
    wall_time: timedelta
    calls_total: int
    calls_per_tool: Mapping[str, int]
    tokens_input: int | None = None
    tokens_output: int | None = None
    invalid_calls_in_a_row: int | None = None
    no_progress_turns: int | None = None
    no_call_turns: int = 0
    questions_to_user: int | None = None


@dataclass(frozen=True, slots=True)
class Prune:
    kind: Literal["read"]
    after_turns: int | None
    superseded: bool
    keep: Literal["receipt", "receipt_and_evidence"]


@dataclass(frozen=True, slots=True)
class Compact:
    at_tokens: int
    covers: frozenset[str]
    model: str


@dataclass(frozen=True, slots=True)
class ContextPolicy:
    max_input_tokens: int | None = None
    prune: tuple[Prune, ...] = ()
    compact: Compact | None = None


@dataclass(frozen=True, slots=True)
class ModelUse:
    id: str
    temperature: Decimal | None = None
    max_output_tokens: int | None = None
    timeout: timedelta | None = None
    on: frozenset[str] = frozenset()
    """For a fallback: timeout, rate_limited, unavailable, context_too_long."""


@dataclass(frozen=True, slots=True)
class Prompt:
    file: str
    """As written in the policy."""
    text: str
    """The Jinja2 template."""
    vars: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelPolicy:
    primary: ModelUse
    fallbacks: tuple[ModelUse, ...] = ()
    fast: ModelUse | None = None
    prompt: Prompt | None = None


@dataclass(frozen=True, slots=True)
class Overlay:
    id: str
    version: int
    owner: str
    digest: str
    budgets: Mapping[str, Json]
    model_allowed: tuple[str, ...] | None
    place: Location


@dataclass(frozen=True, slots=True)
class Invariant:
    id: str
    form: str
    subject: str | int
    when: Condition | None
    options: Mapping[str, Json]
    place: Location


@dataclass(frozen=True, slots=True)
class Policy:
    """One agent's policy with its tools and overlays; `digest` is its identity."""

    id: str
    version: int
    owner: str
    about: str
    digest: str
    """SHA-256 over the canonical data of policy, tools files, overlays and prompts."""
    bundle: Mapping[str, str]
    """File name as given -> text of every file it was compiled from: enough to compile it again."""
    file: str
    """The name of the policy file in `bundle`."""
    roles: frozenset[str]
    may_start: frozenset[str]
    attrs: Mapping[str, ValueType]
    task: Mapping[str, Field]
    limits: Mapping[str, Limit]
    sources: Mapping[str, Source]
    source_use: Mapping[str, SourceUse]
    tools: Mapping[str, ToolSpec]
    capabilities: Mapping[str, Capability]
    rules: tuple[Rule, ...]
    """Rules of the policy and of every overlay; `Rule.origin` tells them apart."""
    hides: tuple[HideRule, ...]
    state: Mapping[str, StateSlice]
    projections: tuple[Projection, ...]
    outputs: Mapping[str, Output]
    gates: tuple[Gate, ...]
    """Declared gates of policy and overlays; the implicit ones are not listed."""
    budgets: Budgets
    """Already the smaller of policy and overlays."""
    context: ContextPolicy
    model: ModelPolicy
    on_policy_change: Literal["pin", "drain"]
    labels: frozenset[str]
    overlays: tuple[Overlay, ...]
    invariants: tuple[Invariant, ...]
    tests: tuple[str, ...]
    rules_of: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    """Tool -> the rules that match it, in file order."""
    hides_of: Mapping[str, tuple[HideRule, ...]] = field(default_factory=dict)
