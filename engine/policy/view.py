"""Owns the facts that conditions read, as a view over RunState and policy constants.

Values stand in Facts as they were recorded (JSON); conditions convert them to the declared types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final, NamedTuple

from engine.domain.calls import Outcome
from engine.domain.canonical import Json
from engine.domain.events import timestamp
from engine.domain.facts import PENDING, UNKNOWN, Facts, Origin, ToolHistory, Unknown, Value
from engine.domain.ids import CallId
from engine.domain.policy import Output, Param, Policy, Rule, ToolSpec
from engine.domain.state import GrantState, RunState, unattended_tool
from engine.domain.types import ArgClass, TypeName
from engine.policy import budgets

CLASS_OF: Final[Mapping[TypeName, ArgClass]] = {
    TypeName.ID: ArgClass.REFERENCE,
    TypeName.REF: ArgClass.REFERENCE,
    TypeName.PATH: ArgClass.REFERENCE,
    TypeName.EMAIL: ArgClass.ADDRESS,
    TypeName.URL: ArgClass.ADDRESS,
    TypeName.TEXT: ArgClass.PAYLOAD,
    TypeName.RICH_TEXT: ArgClass.PAYLOAD,
}
"""The class of an argument whose parameter states none."""

SOURCE_AVAILABLE: Final = "available"
PUBLISH: Final = "publish_"
_NO_OUTCOMES: Final = {outcome.value: 0 for outcome in Outcome}


def facts_of(policy: Policy, state: RunState, now: datetime, origin: Origin | None = None) -> Facts:
    """Everything that conditions of `policy` may read about this Run at `now`."""
    return FactsView([policy], state, origin).at(now)[0]


class FactsView:
    """The facts of one Run under each policy that governs it: its own first, then those that restrict it.

    `at` refreshes only what changed; the Facts that it returned earlier are not to be used after it.
    """

    def __init__(self, policies: Sequence[Policy], state: RunState, origin: Origin | None = None) -> None:
        self.policies = tuple(policies)
        self.state = state
        self.origin = origin
        self._principal: Mapping[str, Value] = {}
        self._principal_of: object = None
        self._slices: dict[str, tuple[int, datetime, dict[str, Value]]] = {}
        self._limits = [{name: limit.value for name, limit in policy.limits.items()} for policy in policies]
        self._sources = list(dict.fromkeys(name for policy in policies for name in policy.sources))
        self._budgets = budgets.of(policies)
        self._new_caps = [new_caps(policies[0], policy) for policy in policies]

    def at(self, now: datetime) -> tuple[Facts, ...]:
        """The facts at `now`, one per policy, in the order of `policies`."""
        state = self.state
        shared: dict[str, Any] = {
            "principal": self._principal_facts(),
            "task": state.task,
            "state": self._slice_facts(now),
            "source": self._source_facts(now),
            "grants": grants_at(state, now),
            "run": self._run_facts(),
            "now": now,
            "history": state.history,
            "outputs": _outputs(self.policies, state),
            "calls": {**_NO_OUTCOMES, **state.outcomes},
            "evidence": state.newest_evidence,
            "origin": self.origin,
        }
        return tuple(
            Facts(limits=limits, unattended=_unattended(state, caps), **shared)
            for limits, caps in zip(self._limits, self._new_caps, strict=True)
        )

    def _principal_facts(self) -> Mapping[str, Value]:
        principal = self.state.principal
        if principal is not None and principal is not self._principal_of:
            self._principal = {**principal.attrs, "id": principal.id, "roles": list(principal.roles)}
            self._principal_of = principal
        return self._principal

    def _slice_facts(self, now: datetime) -> Mapping[str, Mapping[str, Value]]:
        found: dict[str, Mapping[str, Value]] = {}
        for name, held in self.state.state.items():
            kept = self._slices.get(name)
            if kept is None or kept[0] != held.version or kept[1] != held.at:
                kept = self._slices[name] = (held.version, held.at, dict(held.value))
            kept[2]["age"] = _age(now, held.at)
            found[name] = kept[2]
        return found

    def _source_facts(self, now: datetime) -> Mapping[str, Mapping[str, Value]]:
        states, read = self.state.sources, self.state.source_read
        found: dict[str, Mapping[str, Value]] = {}
        for name in self._sources:
            at = read.get(name)
            status = states.get(name, SOURCE_AVAILABLE)
            found[name] = {"state": status} if at is None else {"state": status, "age": _age(now, at)}
        return found

    def _run_facts(self) -> Mapping[str, Value]:
        state, spent = self.state, self.state.spent
        facts: dict[str, Value] = {
            "id": state.run,
            "turn": spent.turns,
            "calls": spent.calls,
            "budget_left": budgets.left(self._budgets, spent),
            "labels": sorted(state.labels),
            "read_untrusted": state.read_untrusted,
        }
        if not spent.cost_unknown:
            facts["cost_minor"] = int((spent.cost_usd * 100).to_integral_value(ROUND_CEILING))
        return facts


def new_caps(own: Policy, other: Policy) -> tuple[Rule, ...]:
    """Rules that permit without a person, up to a cap, and that the Run's own version does not have."""
    known = {rule.id for rule in own.rules}
    return tuple(rule for rule in other.rules if rule.unattended is not None and rule.id not in known)


def _unattended(state: RunState, caps: Sequence[Rule]) -> Mapping[str, int]:
    """Rule -> calls that ran unattended under it. Of a rule of another version: those of its tools, under any rule,
    since what it was called when they ran is not known."""
    spent = state.spent.unattended
    if not caps:
        return spent
    counted = {rule.id: sum(spent.get(unattended_tool(tool), 0) for tool in rule.matches) for rule in caps}
    return {**spent, **counted}


def _age(now: datetime, at: datetime) -> timedelta:
    return max(now - at, timedelta(0))


def _outputs(policies: Sequence[Policy], state: RunState) -> Mapping[str, Mapping[str, Value]]:
    return {name: {"committed": name in state.publications} for policy in policies for name in policy.outputs}


def is_active(grant: GrantState, now: datetime) -> bool:
    """True while the grant may be used: by the clock too, before its expiry is recorded."""
    if grant.ended or (grant.calls_left is not None and grant.calls_left <= 0):
        return False
    return grant.expires_at is None or now < grant.expires_at


def active_grants(state: RunState, now: datetime) -> dict[str, list[GrantState]]:
    """Capability -> its active grants, in the order they were granted."""
    found: dict[str, list[GrantState]] = {}
    for grant in (state.grants[name] for name in state.open_grants):
        if is_active(grant, now):
            found.setdefault(grant.capability, []).append(grant)
    return found


def grants_at(state: RunState, now: datetime) -> Mapping[str, Sequence[Mapping[str, Value]]]:
    return {name: [grant.params for grant in held] for name, held in active_grants(state, now).items()}


# --- one call --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What is true of a tool whatever the state of the Run: `tool`, the classes of its arguments."""

    tool: Mapping[str, Value]
    arg_classes: Mapping[str, Sequence[str]]
    pending: Mapping[str, Value]
    """Every argument of the model as not supplied yet."""


def tool_facts(spec: ToolSpec) -> ToolFacts:
    tool: dict[str, Value] = {
        "name": spec.name,
        "kind": spec.kind.value,
        "reversible": spec.reversible,
        "egress": spec.egress,
    }
    if spec.source is not None:
        tool["source"] = spec.source
    classes: dict[str, list[str]] = {}
    for param in spec.model_params:
        arg_class = param.arg_class or CLASS_OF.get(param.type.name)
        if arg_class is not None:
            classes.setdefault(arg_class.value, []).append(param.name)
    return ToolFacts(tool, classes, {param.name: PENDING for param in spec.model_params})


def publication_facts(output: Output) -> ToolFacts:
    """A publication is an effect of the Host that nothing undoes; its arguments are the output's fields."""
    tool = {"name": output.tool, "kind": "write", "reversible": False, "egress": False}
    classes: dict[str, list[str]] = {}
    for name, field in output.fields.items():
        arg_class = CLASS_OF.get(field.type.name)
        if arg_class is not None:
            classes.setdefault(arg_class.value, []).append(name)
    return ToolFacts(tool, classes, dict.fromkeys(output.fields, PENDING))


def for_call(facts: Facts, tool: ToolFacts, args: Mapping[str, Value], call: CallId | None = None) -> Facts:
    """The facts with one call in view; `args` are those after binding."""
    return Facts(
        principal=facts.principal,
        task=facts.task,
        state=facts.state,
        source=facts.source,
        grants=facts.grants,
        run=facts.run,
        limits=facts.limits,
        now=facts.now,
        tool=tool.tool,
        call={} if call is None else {"id": f"{facts.run.get('id', '')}/{call}"},
        args=args,
        outputs=facts.outputs,
        calls=facts.calls,
        history=facts.history,
        evidence=facts.evidence,
        origin=None if facts.origin is None else facts.origin.for_tool(str(tool.tool["name"])),
        arg_classes=tool.arg_classes,
        unattended=facts.unattended,
    )


# --- paths -----------------------------------------------------------------------------------------------

_ROOTS: Final = ("principal", "task", "state", "source", "run", "limits", "tool", "call", "args", "params")


def look(facts: Facts, path: str) -> Value:
    """The value at a dotted path such as `state.cart.id`, as recorded; UNKNOWN if it is not there.

    Under several active grants of one capability they must agree about it.
    """
    root, _, rest = path.partition(".")
    if root == "now":
        return facts.now
    if root == "grant":
        capability, _, rest = rest.partition(".")
        found = [_descend(held, rest) for held in facts.grants.get(capability, ())]
        return found[0] if found and all(each == found[0] for each in found) else UNKNOWN
    known = root in _ROOTS or root in ("outputs", "calls", "evidence")
    return _descend(getattr(facts, root), rest) if known else UNKNOWN


def _descend(value: Value, rest: str) -> Value:
    for name in rest.split(".") if rest else ():
        value = value.get(name) if isinstance(value, Mapping) else None
    return UNKNOWN if value is None else value


class Unbound(NamedTuple):
    """A host-bound parameter whose fact is not there."""

    param: str
    path: str


def bind(spec: ToolSpec, facts: Facts) -> dict[str, Json] | Unbound:
    """Host-bound parameter -> its value as recorded; the first that cannot be filled in, otherwise.

    One that is not required is left out where its fact is not there.
    """
    found: dict[str, Json] = {}
    for param in spec.bound_params:
        value = look(facts, str(param.bind))
        if not isinstance(value, Unknown):
            found[param.name] = as_json(value)
        elif param.required:
            return Unbound(param.name, str(param.bind))
    return found


def bound_or_unknown(params: Sequence[Param], facts: Facts) -> dict[str, Value]:
    """As `bind`, with UNKNOWN in the place of what is not there."""
    return {param.name: look(facts, str(param.bind)) for param in params}


def as_json(value: Value) -> Json:
    """A fact as JSON: times as RFC 3339, durations as seconds (`90s`), decimals as strings."""
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, timedelta):
        return f"{int(value.total_seconds())}s"
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Unknown):
        return None
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, ToolHistory):
        return {"counts": dict(value.counts), "open": len(value.open)}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(item) for item in (value if isinstance(value, list | tuple) else sorted(value))]
    return value  # type: ignore[no-any-return]  # Value is Any: what was recorded is JSON already


def read_facts(reads: Sequence[str] | frozenset[str], facts: Facts) -> dict[str, Json]:
    """The facts that a condition read, for people: dotted path -> value, None where unknown."""
    found: dict[str, Json] = {}
    for path in sorted(reads):
        if path.startswith("history."):
            found[path] = as_json(facts.history.get(path[8:], ToolHistory()))
        elif path != "origin" and not path.startswith("args_of."):
            found[path] = as_json(look(facts, path))
    return found
