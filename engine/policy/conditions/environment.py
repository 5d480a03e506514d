"""Owns what a condition may read at one place of a policy: roots, their types, the tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from engine.domain.types import ArgClass, Field, Trust, TypeName, ValueType

BOOL: Final = ValueType(TypeName.BOOL)
INT: Final = ValueType(TypeName.INT)
DECIMAL: Final = ValueType(TypeName.DECIMAL)
STRING: Final = ValueType(TypeName.ID)
TIMESTAMP: Final = ValueType(TypeName.TIMESTAMP)
DURATION: Final = ValueType(TypeName.DURATION)

OUTCOMES: Final = ("confirmed", "failed", "unknown", "not_executed")
SOURCE_STATES: Final = ("available", "degraded", "unavailable", "unauthorized")
TOOL_KINDS: Final = ("read", "write", "hybrid")
ORIGINS: Final = ("user", "mention", "task", "state", "trusted", "untrusted", "endorsed", "model")

BASE_ROOTS: Final = frozenset({"principal", "task", "state", "source", "grant", "run", "limits", "now"})
"""Readable everywhere, also where no call is being judged (`request.when`)."""
RULE_ROOTS: Final = BASE_ROOTS | {"tool", "call", "args"}
"""Rules and `visibility.hide`."""
APPROVE_ROOTS: Final = BASE_ROOTS | {"params"}
"""`capabilities.<c>.approve.when`."""
RESULT_ROOTS: Final = frozenset({"result"})
"""`confirms` and `refutes`."""
GATE_ROOTS: Final = frozenset({"outputs", "calls", "state", "run"})
"""`gates.finish[].when`."""
ALL_ROOTS: Final = RULE_ROOTS | APPROVE_ROOTS | RESULT_ROOTS | GATE_ROOTS


def enum(values: Iterable[str]) -> ValueType:
    return ValueType(TypeName.ENUM, values=tuple(values))


def list_of(element: ValueType) -> ValueType:
    return ValueType(TypeName.LIST, of=element)


def record(**types: ValueType) -> ValueType:
    return ValueType(TypeName.RECORD, fields={name: Field(type_) for name, type_ in types.items()})


@dataclass(frozen=True, slots=True)
class ParamShape:
    """What a condition must know of a parameter."""

    type: ValueType
    required: bool = True
    bound: bool = False
    """The Host fills it in."""
    arg_class: ArgClass | None = None


@dataclass(frozen=True, slots=True)
class ToolShape:
    """What a condition must know of a tool."""

    params: Mapping[str, ParamShape] = field(default_factory=dict)
    result: Mapping[str, Field] = field(default_factory=dict)
    trust: Trust = Trust.TRUSTED
    """Of its source: the trust of each result field that states none."""


@dataclass(frozen=True)
class Environment:
    """Immutable. Make one per policy, then `at(...)` per place."""

    roots: frozenset[str] = BASE_ROOTS
    attrs: Mapping[str, ValueType] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    task: Mapping[str, Field] = field(default_factory=dict)
    state: Mapping[str, Mapping[str, Field]] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    capabilities: Mapping[str, Mapping[str, ValueType]] = field(default_factory=dict)
    limits: Mapping[str, ValueType] = field(default_factory=dict)
    budgets: Mapping[str, ValueType] = field(default_factory=dict)
    """The types of `run.budget_left.<budget>`."""
    labels: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    tools: Mapping[str, ToolShape] = field(default_factory=dict)
    """Every tool, those of the Host too."""
    evidence_kinds: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    """The tools that the rule names: `args` are theirs."""
    selects: bool = False
    """The rule uses selectors, so its arguments differ per tool and `args` may not be read."""
    params: Mapping[str, ValueType] = field(default_factory=dict)
    result: Mapping[str, Field] = field(default_factory=dict)
    _shared: dict[str, ValueType] = field(default_factory=dict, repr=False, compare=False)
    """Types of the roots that `at` does not change, worked out once for a policy."""

    def at(
        self,
        roots: frozenset[str],
        *,
        named: Iterable[str] = (),
        selects: bool = False,
        params: Mapping[str, ValueType] | None = None,
        result: Mapping[str, Field] | None = None,
    ) -> Environment:
        """The same policy seen from one place: its roots, the tools named there, requested params, a result."""
        return replace(
            self, roots=roots, named=tuple(named), selects=selects, params=params or {}, result=result or {}
        )

    @property
    def origins(self) -> tuple[str, ...]:
        return (*ORIGINS, *(f"trusted.{kind}" for kind in self.evidence_kinds))

    @cached_property
    def root_types(self) -> Mapping[str, ValueType]:
        """The type of each readable root but `args`, whose fields depend on the tool."""
        if not self._shared:
            self._shared.update(self._policy_types)
        known = {
            **self._shared,
            "params": record(**self.params),
            "result": ValueType(TypeName.RECORD, fields=self.result),
        }
        return {name: type_ for name, type_ in known.items() if name in self.roots}

    @property
    def _policy_types(self) -> Mapping[str, ValueType]:
        """The roots that are the same at every place of a policy."""
        return {
            "principal": record(**{**self.attrs, "id": STRING, "roles": list_of(enum(self.roles))}),
            "task": ValueType(TypeName.RECORD, fields=self.task),
            "state": record(**{name: _slice(fields) for name, fields in self.state.items()}),
            "source": record(
                **{name: record(state=enum(SOURCE_STATES), age=DURATION) for name in self.sources}
            ),
            "grant": record(**{name: record(**params) for name, params in self.capabilities.items()}),
            "run": self._run,
            "limits": record(**self.limits),
            "now": TIMESTAMP,
            "tool": self._tool,
            "call": record(id=STRING),
            "outputs": record(**{name: record(committed=BOOL) for name in self.outputs}),
            "calls": record(**dict.fromkeys(OUTCOMES, INT)),
        }

    @property
    def _run(self) -> ValueType:
        return record(
            id=STRING,
            turn=INT,
            calls=INT,
            cost_minor=INT,
            budget_left=record(**self.budgets),
            labels=list_of(enum(self.labels)),
            read_untrusted=BOOL,
        )

    @property
    def _tool(self) -> ValueType:
        return record(
            name=enum(self.tools) if self.tools else STRING,
            kind=enum(TOOL_KINDS),
            reversible=BOOL,
            source=enum(self.sources) if self.sources else STRING,
            egress=BOOL,
        )


def _slice(fields: Mapping[str, Field]) -> ValueType:
    return ValueType(TypeName.RECORD, fields={**fields, "age": Field(DURATION)})
