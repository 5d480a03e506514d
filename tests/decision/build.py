"""Small policies and Run states, built by hand with real conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from engine.domain.actors import HOST, Principal
from engine.domain.canonical import Json
from engine.domain.conditions import Condition
from engine.domain.diagnostics import Location
from engine.domain.events import EvidenceFigure, EvidenceItem, ModelTurnRecorded, Proposal
from engine.domain.ids import CallId, RunId
from engine.domain.policy import (
    ApproveBranch,
    ApproverSpec,
    Budgets,
    Capability,
    Citations,
    ContextPolicy,
    Effect,
    FigureUse,
    Gate,
    HideRule,
    Idempotency,
    Kind,
    Limit,
    ModelPolicy,
    ModelUse,
    Output,
    OutputField,
    Param,
    Policy,
    PythonHandler,
    Retry,
    Rule,
    Source,
    SourceUse,
    ToolSpec,
    Unattended,
)
from engine.domain.state import EvidenceState, GrantState, RunState, SliceState, TurnState
from engine.domain.types import Field, Trust, TypeName, ValueType
from engine.policy.conditions import APPROVE_ROOTS, BASE_ROOTS, GATE_ROOTS, RULE_ROOTS, compile_condition
from engine.policy.conditions.environment import Environment, ParamShape, ToolShape
from engine.policy.names import BUDGETS

NOW = datetime(2026, 6, 30, 12, tzinfo=UTC)
PLACE = Location("p.policy.yaml", 1, 1)
COLLECTIONS = ("prospectus", "annual_report", "internal_memo")

TEXT = ValueType(TypeName.TEXT, max_len=200)
ID = ValueType(TypeName.ID)
INT = ValueType(TypeName.INT)
BOOL = ValueType(TypeName.BOOL)
COLLECTION = ValueType(TypeName.ENUM, values=COLLECTIONS)


def enum(*values: str) -> ValueType:
    return ValueType(TypeName.ENUM, values=values)


def ref(kind: str) -> ValueType:
    return ValueType(TypeName.REF, kind=kind)


def param(name: str, type_: ValueType, bind: str | None = None, required: bool = True) -> Param:
    return Param(name, type_, bind, required, None, None, PLACE)


def tool(name: str, kind: Kind = Kind.READ, params: Sequence[Param] = (), **more: Any) -> ToolSpec:
    values: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "handler": PythonHandler("m", name),
        "exposed": "model",
        "narrow": True,
        "source": None,
        "description": f"Does {name}.",
        "params": {each.name: each for each in params},
        "result": {},
        "labels": frozenset(),
        "egress": False,
        "evidence": None,
        "cache": None,
        "effects": (),
        "reconcile": None,
        "reversible": False,
        "compensate": None,
        "idempotency": None if kind is Kind.READ else Idempotency(("call.id",), None, None),
        "holds": None,
        "serialize_by": None,
        "sensitive": frozenset(),
        "timeout": timedelta(seconds=60),
        "retry": Retry.NEVER,
        "digest": f"spec-{name}",
        "place": PLACE,
    }
    return ToolSpec(**{**values, **more})


def approval(*roles: str, **more: Any) -> ApproverSpec:
    values: dict[str, Any] = {
        "roles": frozenset(roles),
        "same_principal": False,
        "not_requester": False,
        "quorum": 1,
        "shows": (),
        "expires": timedelta(minutes=10),
        "edit": (),
        "endorse": (),
        "standing_max_age": None,
        "standing_max_calls": None,
        "signed": False,
    }
    return ApproverSpec(**{**values, **more})


def budgets(**more: Any) -> Budgets:
    values: dict[str, Any] = {
        "turns": 20,
        "cost_usd": Decimal(1),
        "wall_time": timedelta(minutes=10),
        "calls_total": 40,
        "calls_per_tool": {},
        "questions_to_user": 3,
    }
    return Budgets(**{**values, **more})


class Build:
    """Collects the parts of a policy; `policy()` compiles conditions against them."""

    def __init__(self, *tools: ToolSpec, **more: Any) -> None:
        self.tools = {each.name: each for each in tools}
        self.task: dict[str, Field] = {"depth": Field(enum("brief", "full")), "flag": Field(BOOL)}
        self.state: dict[str, dict[str, Field]] = {
            "cart": {"id": Field(ID), "version": Field(INT), "total": Field(INT), "open": Field(BOOL)}
        }
        self.capabilities: dict[str, Mapping[str, ValueType]] = {"documents": {"collection": COLLECTION}}
        self.rules: list[Rule] = []
        self.hides: list[HideRule] = []
        self.caps: dict[str, Capability] = {}
        self.outputs: dict[str, Output] = {}
        self.gates: list[Gate] = []
        self.more = more

    def environment(self) -> Environment:
        shapes = {
            name: ToolShape(
                {
                    each.name: ParamShape(each.type, each.required, each.bind is not None, each.arg_class)
                    for each in spec.params.values()
                },
                spec.result,
                Trust.TRUSTED,
            )
            for name, spec in self.tools.items()
        }
        return Environment(
            attrs={"desk": enum("funds", "wealth"), "suspended": BOOL},
            roles=("analyst", "manager"),
            task=self.task,
            state=self.state,
            sources=("filings",),
            capabilities=self.capabilities,
            limits={"cap": INT},
            budgets=BUDGETS,
            labels=("confidential",),
            outputs=tuple(self.outputs),
            tools=shapes,
            evidence_kinds=("document",),
        )

    def condition(self, text: str, roots: frozenset[str] = RULE_ROOTS, **at: Any) -> Condition:
        found, faults = compile_condition(text, self.environment().at(roots, **at))
        assert found is not None, (text, faults)
        return found

    def rule(
        self, id_: str, effect: str, *names: str, when: str = "", unless: str = "", **more: Any
    ) -> Build:
        selects = any(":" in name or name == "*" for name in names)
        chosen = frozenset(self.tools) if "*" in names else frozenset(names)
        named = () if selects else [name for name in names if name in self.tools]
        values: dict[str, Any] = {
            "id": id_,
            "effect": Effect(effect),
            "tools": names,
            "matches": chosen,
            "roles": frozenset({"analyst"}) if effect in ("allow", "ask") else None,
            "needs": (),
            "when": self.condition(when, named=named, selects=selects) if when else None,
            "unless": self.condition(unless, named=named, selects=selects) if unless else None,
            "fresh": (),
            "approval": approval("manager") if effect in ("ask", "require") else None,
            "unattended": None,
            "because": None,
            "origin": "policy",
            "place": Location("p.policy.yaml", 10 + len(self.rules), 5),
        }
        if isinstance(more.get("roles"), set):
            more["roles"] = frozenset(more["roles"])
        self.rules.append(Rule(**{**values, **more}))
        return self

    def hide(self, id_: str, *names: str, when: str = "") -> Build:
        condition = self.condition(when, named=names) if when else None
        self.hides.append(HideRule(id_, names, frozenset(names), None, condition, "policy", PLACE))
        return self

    def capability(self, name: str, *branches: tuple[str, Any], **more: Any) -> Build:
        params = self.capabilities[name]
        approve = tuple(
            ApproveBranch(
                self.condition(when, APPROVE_ROOTS, params=params) if when else None, by, False, None, PLACE
            )
            for when, by in branches
        )
        request = more.pop("request", "")
        values: dict[str, Any] = {
            "name": name,
            "about": f"Use {name}",
            "params": params,
            "request_roles": frozenset({"analyst"}),
            "request_when": self.condition(request, BASE_ROOTS) if request else None,
            "approve": approve,
            "expires_after": timedelta(hours=2),
            "expires_calls": 40,
            "revoke_roles": frozenset(),
            "place": PLACE,
        }
        self.caps[name] = Capability(**{**values, **more})
        return self

    def output(self, name: str, **more: Any) -> Build:
        rich = ValueType(TypeName.RICH_TEXT, max_len=5000)
        values: dict[str, Any] = {
            "name": name,
            "about": "The note",
            "fields": {
                "title": OutputField("title", TEXT, True, False, False),
                "body": OutputField("body", rich, True, True, True),
            },
            "citations": Citations(frozenset({"document", "holding"}), None, 1, timedelta(hours=24)),
            "figures": FigureUse(frozenset({"money", "percent"}), frozenset({"holding"})),
            "publish": None,
            "place": PLACE,
        }
        self.outputs[name] = Output(**{**values, **more})
        return self

    def gate(self, name: str, subject: str) -> Build:
        when = self.condition(subject, GATE_ROOTS) if name == "when" else None
        self.gates.append(Gate(name, subject, when, PLACE))  # type: ignore[arg-type]
        return self

    def policy(self, **more: Any) -> Policy:
        values: dict[str, Any] = {
            "id": "p",
            "version": 1,
            "owner": "team",
            "about": "",
            "digest": "policy-digest",
            "bundle": {},
            "file": "p.policy.yaml",
            "roles": frozenset({"analyst", "manager"}),
            "may_start": frozenset({"analyst"}),
            "attrs": {},
            "task": self.task,
            "limits": {"cap": Limit(INT, 100, None)},
            "sources": {"filings": Source("filings", "Filings", Trust.TRUSTED, PLACE)},
            "source_use": {"filings": SourceUse(frozenset({"available"}), None)},
            "tools": self.tools,
            "capabilities": self.caps,
            "rules": tuple(self.rules),
            "hides": tuple(self.hides),
            "state": {},
            "projections": (),
            "outputs": self.outputs,
            "gates": tuple(self.gates),
            "budgets": budgets(),
            "context": ContextPolicy(),
            "model": ModelPolicy(ModelUse("m")),
            "on_policy_change": "pin",
            "labels": frozenset(),
            "overlays": (),
            "invariants": (),
            "tests": (),
        }
        found = Policy(**{**values, **self.more, **more})
        names = [*found.tools, *(output.tool for output in found.outputs.values())]
        return replace(
            found,
            rules_of={name: tuple(rule for rule in found.rules if name in rule.matches) for name in names},
            hides_of={name: tuple(hide for hide in found.hides if name in hide.matches) for name in names},
        )


def run_state(**more: Any) -> RunState:
    state = RunState(RunId("r1"), status="proposing", policy="p", policy_digest="policy-digest")
    state.principal = Principal(id="a1", roles=("analyst",), attrs={"desk": "funds", "suspended": False})
    state.task = {"depth": "full", "flag": False}
    for name, value in more.items():
        setattr(state, name, value)
    return state


def cart(state: RunState, host: int = 1, /, at: datetime = NOW, **value: Json) -> RunState:
    held: dict[str, Json] = {"id": "c1", "version": 3, "total": 10, "open": True, **value}
    state.state["cart"] = SliceState(held, host, at, HOST)
    return state


def grant(state: RunState, collection: str, id_: str = "g1", **more: Any) -> RunState:
    state.open_grants[id_] = None
    state.grants[id_] = GrantState(
        id_,
        "documents",
        {"collection": collection},
        "host",
        NOW,
        more.get("expires_at"),
        more.get("calls_left"),
    )
    return state


def evidence(
    state: RunState, handle: str, kind: str, id_: str, read_at: datetime = NOW, **more: Any
) -> RunState:
    figures = tuple(EvidenceFigure(**figure) for figure in more.pop("figures", ()))
    spans = more.pop("spans", ())
    item = EvidenceItem(kind=kind, id=id_, as_of=more.pop("as_of", None), spans=spans, figures=figures)
    state.evidence[handle] = EvidenceState(
        handle, item, CallId(1, 1), "t", more.pop("source", None), read_at, **more
    )
    state.evidence_index[kind, id_] = handle
    return state


def turn_of(state: RunState, *proposals: Proposal, number: int = 1) -> TurnState:
    """Adds a turn with these proposals, counted as the fold counts them."""
    recorded = ModelTurnRecorded(
        turn=number, attempt=1, model="m", contract="c", epoch=0, proposals=proposals
    )
    turn = TurnState(number, recorded, state.epoch, 0)
    state.turns.append(turn)
    state.spent.calls += len(proposals)
    return turn


def propose(tool_name: str, arguments: str = "{}", ordinal: int = 1) -> Proposal:
    return Proposal(ordinal=ordinal, tool=tool_name, arguments=arguments)


def unattended(cap: int = 2) -> Unattended:
    return Unattended("harmless", cap)
