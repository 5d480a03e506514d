"""Owns the shape of `policy/v1`: what one agent may do, when, and who decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Discriminator, StringConstraints, Tag
from pydantic import Field as Key

from engine.domain.canonical import Json
from engine.policy.documents.base import Exact, Part
from engine.policy.documents.invariants import InvariantPart
from engine.policy.documents.types import FieldPart, OutputFieldPart, TypePart, text_or_part
from engine.policy.documents.values import (
    ConditionText,
    Count,
    CountFromZero,
    Duration,
    EffectName,
    FilePath,
    Id,
    Ident,
    Money,
    Temperature,
    Text,
    ToolName,
)

Selector: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_*][A-Za-z0-9_:.*-]{0,99}$")]
ArgPath: TypeAlias = Annotated[str, StringConstraints(pattern=r"^args\.[A-Za-z_][A-Za-z0-9_]*$")]
ShownPath: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^(args|state|task|params)(\.[A-Za-z_][A-Za-z0-9_]*)*$")
]
SourceState: TypeAlias = Literal["available", "degraded", "unavailable", "unauthorized"]
Covered: TypeAlias = Literal["assistant_text", "read_results"]
Trouble: TypeAlias = Literal["timeout", "rate_limited", "unavailable", "context_too_long"]
IMPLICIT_GATES = ("no_unsettled_calls", "no_pending_approvals", "no_unknown_effects", "run_may_end")
_IMPLICIT = "this gate always applies"


class ByPart(Part):
    called: ClassVar[str] = "by"

    roles: list[Id] = Key(min_length=1)
    same_principal: bool = False


class StandingPart(Part):
    called: ClassVar[str] = "standing"

    max_age: Duration | None = None
    max_calls: Count | None = None


class ApprovalPart(Part):
    called: ClassVar[str] = "an approval"
    placeholders: ClassVar[Mapping[str, Json]] = {"expires": "1h"}

    by: ByPart
    not_requester: bool = False
    quorum: Count = 1
    shows: list[ShownPath] = Key(default_factory=list)
    expires: Duration
    edit: list[ArgPath] = Key(default_factory=list)
    endorse: list[ArgPath] = Key(default_factory=list)
    standing: StandingPart | None = None
    signed: bool = False


class FreshPart(Part):
    called: ClassVar[str] = "fresh"

    state: Ident
    same_version_as: Literal["proposal"] | None = None
    max_age: Duration | None = None


class UnattendedPart(Part):
    called: ClassVar[str] = "unattended"
    placeholders: ClassVar[Mapping[str, Json]] = {"because": "unknown", "max_per_run": 1}

    because: Text
    max_per_run: Count


class RulePart(Part):
    """A rule of a policy or, with fewer effects, of an overlay."""

    called: ClassVar[str] = "a rule"
    placeholders: ClassVar[Mapping[str, Json]] = {"id": "unknown", "tools": []}

    id: Id
    effect: Literal["allow", "ask", "require", "deny"]
    tools: list[Selector]
    roles: list[Id] | None = None
    needs: list[Ident] = Key(default_factory=list)
    when: ConditionText | None = None
    unless: ConditionText | None = None
    fresh: list[FreshPart] = Key(default_factory=list)
    approval: ApprovalPart | None = None
    unattended: UnattendedPart | None = None
    because: Text | None = None


class HidePart(Part):
    called: ClassVar[str] = "a hide rule"
    placeholders: ClassVar[Mapping[str, Json]] = {"id": "unknown"}

    id: Id
    tools: list[Selector]
    roles: list[Id] | None = None
    when: ConditionText | None = None


class VisibilityPart(Part):
    called: ClassVar[str] = "visibility"

    hide: list[HidePart] = Key(default_factory=list)


class LimitPart(Part):
    called: ClassVar[str] = "a limit"

    type: Literal["int", "decimal", "duration", "timestamp", "id", "enum", "bool"]
    values: list[Text] | None = None
    value: Any
    max: Any = None


class PrincipalsPart(Part):
    called: ClassVar[str] = "principals"
    placeholders: ClassVar[Mapping[str, Json]] = {"roles": [], "may_start": []}

    roles: list[Id]
    may_start: list[Id]
    attrs: dict[Ident, TypePart] = Key(default_factory=dict)


class SourceUsePart(Part):
    called: ClassVar[str] = "a source"

    usable_when: list[SourceState] = Key(default_factory=lambda: list[SourceState](["available"]))
    max_age: Duration | None = None


class RequestPart(Part):
    called: ClassVar[str] = "request"

    roles: list[Id] | None = None
    when: ConditionText | None = None


class BranchPart(Part):
    called: ClassVar[str] = "an approve branch"

    when: ConditionText | None = None
    by: Annotated[
        Annotated[Literal["host", "starter"], Tag("text")] | Annotated[ByPart, Tag("part")],
        Discriminator(text_or_part),
    ]
    at: Literal["start"] | None = None
    not_requester: bool = False
    quorum: Count = 1
    signed: bool = False
    timeout: Duration | None = None


class ExpiryPart(Part):
    called: ClassVar[str] = "expires"

    after: Duration | None = None
    calls: Count | None = None


class RevokePart(Part):
    called: ClassVar[str] = "revoke"

    roles: list[Id]


class CapabilityPart(Part):
    called: ClassVar[str] = "a capability"
    placeholders: ClassVar[Mapping[str, Json]] = {
        "about": "unknown",
        "approve": [],
        "request": {},
        "expires": {"calls": 1},
    }
    exact_missing: ClassVar[Mapping[str, Exact]] = {
        "expires": Exact("K304", "the capability never expires", "add `expires: {after: 2h, calls: 40}`")
    }

    about: Text | None = None
    params: dict[Ident, TypePart] = Key(default_factory=dict)
    request: RequestPart
    approve: list[BranchPart]
    expires: ExpiryPart
    revoke: RevokePart | None = None


class SlicePart(Part):
    called: ClassVar[str] = "a state slice"
    placeholders: ClassVar[Mapping[str, Json]] = {"fields": {}}

    owner: Literal["app"] = "app"
    refresh: ToolName | None = None
    fields: dict[Ident, FieldPart]
    max_age: Duration | None = None


class ProjectionPart(Part):
    called: ClassVar[str] = "a projection"
    placeholders: ClassVar[Mapping[str, Json]] = {"id": "unknown"}

    id: Id
    from_: Annotated[str, StringConstraints(pattern=r"^state\.[A-Za-z_][A-Za-z0-9_]*$")] = Key(alias="from")
    fields: list[Ident] | None = None
    render: Literal["record", "list", "table"] = "record"
    every_turn: bool = True
    max_age: Duration | None = None
    if_stale: Literal["refresh", "omit", "stop"] = "omit"


class CitationsPart(Part):
    called: ClassVar[str] = "citations"

    kinds: list[Ident]
    min: CountFromZero | None = None
    min_per_section: CountFromZero | None = None
    max_age: Duration | None = None


class FiguresPart(Part):
    called: ClassVar[str] = "figures"

    kinds: list[Literal["money", "percent", "decimal", "int", "date"]]
    from_: list[Ident] = Key(alias="from")
    render: Literal["host"] = "host"
    locale: Literal["en", "de", "de-CH", "es", "fr", "it", "sv"] = "en"


class GatePart(Part):
    """One gate; exactly one of its keys."""

    called: ClassVar[str] = "a gate"
    exact_unknown: ClassVar[Mapping[str, Exact]] = {
        **{name: Exact("G503", f"`{name}` is repeated: {_IMPLICIT}", "delete it") for name in IMPLICIT_GATES},
        "pattern": Exact("S303", "`pattern` would judge wording", "gates read counted facts only"),
    }

    output_committed: Ident | None = None
    citations_eligible: Ident | None = None
    holds_closed: EffectName | None = None
    when: ConditionText | None = None


GateEntry: TypeAlias = Annotated[
    Annotated[str, Tag("text")] | Annotated[GatePart, Tag("part")], Discriminator(text_or_part)
]


class PublishPart(Part):
    called: ClassVar[str] = "publish"

    roles: list[Id] | None = None
    when: ConditionText | None = None
    approval: ApprovalPart | None = None
    gates: list[GateEntry] = Key(default_factory=list)


class TemplatePart(Part):
    called: ClassVar[str] = "a template"

    markdown: FilePath | None = None
    html: FilePath | None = None


class OutputPart(Part):
    called: ClassVar[str] = "an output"
    placeholders: ClassVar[Mapping[str, Json]] = {"fields": {}}

    about: Text | None = None
    fields: dict[Ident, OutputFieldPart]
    citations: CitationsPart | None = None
    figures: FiguresPart | None = None
    publish: PublishPart | None = None
    template: TemplatePart | None = None


class GatesPart(Part):
    called: ClassVar[str] = "gates"
    placeholders: ClassVar[Mapping[str, Json]] = {"finish": []}

    finish: list[GateEntry]


def _budget(key: str, example: str) -> Exact:
    return Exact("B701", f"the budget `{key}` is missing; budgets have no default", f"add `{example}`")


class CallsPart(Part):
    called: ClassVar[str] = "calls"
    placeholders: ClassVar[Mapping[str, Json]] = {"total": 1}
    exact_missing: ClassVar[Mapping[str, Exact]] = {"total": _budget("calls.total", "total: 100")}

    total: Count
    per_tool: dict[ToolName, CountFromZero] = Key(default_factory=dict)


class TokensPart(Part):
    called: ClassVar[str] = "tokens"

    input: Count | None = None
    output: Count | None = None


class BudgetsPart(Part):
    called: ClassVar[str] = "budgets"
    placeholders: ClassVar[Mapping[str, Json]] = {
        "turns": 1,
        "cost_usd": "1",
        "wall_time": "1h",
        "calls": {"total": 1},
    }
    exact_missing: ClassVar[Mapping[str, Exact]] = {
        "turns": _budget("turns", "turns: 30"),
        "cost_usd": _budget("cost_usd", 'cost_usd: "1.00"'),
        "wall_time": _budget("wall_time", "wall_time: 20m"),
        "calls": _budget("calls", "calls: {total: 100}"),
    }

    turns: Count
    cost_usd: Money
    wall_time: Duration
    calls: CallsPart
    tokens: TokensPart | None = None
    invalid_calls_in_a_row: Count | None = None
    no_progress_turns: Count | None = None
    no_call_turns: CountFromZero | None = None
    questions_to_user: CountFromZero | None = None


class PrunePart(Part):
    called: ClassVar[str] = "prune"

    kind: Literal["read"]
    after_turns: Count | None = None
    superseded: bool = False
    keep: Literal["receipt", "receipt_and_evidence"] = "receipt_and_evidence"


class CompactPart(Part):
    called: ClassVar[str] = "compact"

    at_tokens: Count
    covers: list[Covered] = Key(default_factory=lambda: list[Covered](["assistant_text"]))
    model: Literal["fast", "primary"] = "fast"


class ContextPart(Part):
    called: ClassVar[str] = "context"

    max_input_tokens: Count | None = None
    prune: list[PrunePart] = Key(default_factory=list)
    compact: CompactPart | None = None


class ModelUsePart(Part):
    called: ClassVar[str] = "a model"

    id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@/-]{1,200}$")]
    temperature: Temperature | None = None
    max_output_tokens: Count | None = None
    timeout: Duration | None = None


class FallbackPart(ModelUsePart):
    called: ClassVar[str] = "a fallback"

    on: list[Trouble] = Key(default_factory=lambda: list[Trouble](["timeout", "rate_limited", "unavailable"]))


class PromptPart(Part):
    called: ClassVar[str] = "prompt"

    system: FilePath
    vars: list[Text] = Key(default_factory=list)


class ModelPart(Part):
    called: ClassVar[str] = "model"
    placeholders: ClassVar[Mapping[str, Json]] = {"primary": {"id": "unknown/unknown"}}

    primary: ModelUsePart
    fallbacks: list[FallbackPart] = Key(default_factory=list)
    fast: ModelUsePart | None = None
    prompt: PromptPart | None = None


class PolicyDocument(Part):
    called: ClassVar[str] = "a policy"
    placeholders: ClassVar[Mapping[str, Json]] = {
        "id": "unknown",
        "version": 0,
        "owner": "unknown",
        "tool_specs": [],
        "principals": {"roles": [], "may_start": []},
        "permissions": [],
        "gates": {"finish": []},
        "budgets": {"turns": 1, "cost_usd": "1", "wall_time": "1h", "calls": {"total": 1}},
        "model": {"primary": {"id": "unknown/unknown"}},
    }

    agentctl: Literal["policy/v1"]
    id: Id
    version: CountFromZero
    owner: Text
    about: Text | None = None
    tool_specs: list[FilePath]
    overlays: list[FilePath] = Key(default_factory=list)
    limits: dict[Ident, LimitPart] = Key(default_factory=dict)
    principals: PrincipalsPart
    task: dict[Ident, FieldPart] = Key(default_factory=dict)
    sources: dict[Ident, SourceUsePart] = Key(default_factory=dict)
    capabilities: dict[Ident, CapabilityPart] = Key(default_factory=dict)
    permissions: list[RulePart]
    visibility: VisibilityPart | None = None
    state: dict[Ident, SlicePart] = Key(default_factory=dict)
    projections: list[ProjectionPart] = Key(default_factory=list)
    outputs: dict[Ident, OutputPart] = Key(default_factory=dict)
    gates: GatesPart
    budgets: BudgetsPart
    context: ContextPart | None = None
    model: ModelPart
    on_policy_change: Literal["pin", "drain"] = "pin"
    labels: list[Id] = Key(default_factory=list)
    invariants: list[InvariantPart] = Key(default_factory=list)
    tests: list[FilePath] = Key(default_factory=list)
