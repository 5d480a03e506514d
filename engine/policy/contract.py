"""Owns the contract of a turn: the exact tools[], derived from policies and facts and never listed anywhere.

A tool is shown if the rules, evaluated with the model's arguments unknown, may still permit it. Its enums keep
the values for which that is so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, NamedTuple

from engine.domain.canonical import canonical, digest
from engine.domain.conditions import Condition
from engine.domain.facts import PENDING, UNKNOWN, Facts, Value
from engine.domain.messages import ToolSchema
from engine.domain.policy import Effect, HideRule, Param, Policy, Rule, ToolSpec
from engine.domain.state import RunState
from engine.domain.types import TypeName
from engine.policy import budgets, builtin, capabilities
from engine.policy.decision import (
    hidden_by,
    holds,
    may_permit,
    may_publish,
    not_applied,
    where,
)
from engine.policy.schema import narrowed, parameters_of
from engine.policy.view import (
    PUBLISH,
    SOURCE_AVAILABLE,
    ToolFacts,
    bound_or_unknown,
    for_call,
    publication_facts,
    tool_facts,
)
from engine.policy.watch import Readers, Watch

MAX_COMBINATIONS: Final = 128
"""Combinations of enum values of one tool that are tried together; beyond, each parameter by itself."""


@dataclass(frozen=True, slots=True)
class Contract:
    """What the model may propose in one turn."""

    tools: tuple[ToolSchema, ...]
    names: frozenset[str]
    digest: str
    """SHA-256 of `text`."""
    text: str
    """The tools as canonical JSON: what is stored for audit."""
    epoch: int
    absent: Mapping[str, str]
    """Tool that is not shown -> one line that says why, with the rule and its place."""


@dataclass(frozen=True, slots=True)
class _Entry:
    schema: ToolSchema | None
    reason: str
    text: str


class ToolPlan(NamedTuple):
    """What the contract needs of one tool, whatever the facts."""

    facts: ToolFacts
    bound: tuple[Param, ...]
    whole: ToolSchema
    text: str
    axes: tuple[Param, ...]
    """Parameters of few values that rules read: those that are tried out."""


class Plan:
    """What is the same for every Run under the same policies; its parts are made when first needed."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.policies = tuple(policies)
        self.readers = Readers(policies)
        self._tools: dict[str, ToolPlan] = {}

    def tool(self, spec: ToolSpec) -> ToolPlan:
        found = self._tools.get(spec.name)
        if found is None:
            whole = ToolSchema(spec.name, spec.description, parameters_of(spec))
            read = self.readers.args[spec.name]
            axes = tuple(
                param for param in spec.model_params if param.name in read and param.type.name in _FINITE
            )
            found = ToolPlan(tool_facts(spec), spec.bound_params, whole, _text(whole), axes)
            self._tools[spec.name] = found
        return found

    def text(self, schema: ToolSchema) -> str:
        known = self._tools.get(schema.name)
        return known.text if known is not None and known.whole is schema else _text(schema)


_FINITE: Final = (TypeName.ENUM, TypeName.BOOL)
_PLANS: Final[dict[tuple[int, ...], Plan]] = {}
MAX_PLANS: Final = 64


def plan_of(policies: Sequence[Policy]) -> Plan:
    """The plan of these very policy objects, made once: it keeps them alive, so their ids stay theirs."""
    key = tuple(map(id, policies))
    plan = _PLANS.get(key)
    if plan is None:
        if len(_PLANS) >= MAX_PLANS:
            _PLANS.pop(next(iter(_PLANS)), None)
        plan = _PLANS[key] = Plan(policies)
    return plan


def _text(tool: ToolSchema) -> str:
    return canonical({"name": tool.name, "description": tool.description, "parameters": tool.parameters})


class ContractCompiler:
    """Compiles the contracts of one Run; recomputes only tools whose facts changed since the last one."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.policies = tuple(policies)
        self._own = policies[0]
        self._budgets = budgets.of(policies)
        self._plan = plan_of(self.policies)
        self._entries: dict[str, _Entry] = {}
        self._watch = Watch(self._plan.readers)
        self._last: Contract | None = None

    def compile(self, state: RunState, facts: Sequence[Facts]) -> Contract:
        """The contract under these facts (one Facts per policy, from `FactsView`); the same object if equal."""
        changed = False
        for name in self._watch.changed(state, facts[0]):
            entry = self._entry(name, state, facts)
            if self._entries.get(name) != entry:
                self._entries[name] = entry
                changed = True
        if self._last is None or changed:
            self._last = self._assemble(state.epoch)
        elif self._last.epoch != state.epoch:
            self._last = replace(self._last, epoch=state.epoch)
        return self._last

    def _assemble(self, epoch: int) -> Contract:
        tools: list[ToolSchema] = []
        texts: list[str] = []
        absent: dict[str, str] = {}
        for name in self._plan.readers.names:
            entry = self._entries[name]
            if entry.schema is None:
                absent[name] = entry.reason
            else:
                tools.append(entry.schema)
                texts.append(entry.text)
        text = f"[{','.join(texts)}]"
        names = frozenset([tool.name for tool in tools])
        return Contract(tuple(tools), names, digest(text), text, epoch, absent)

    def _entry(self, name: str, state: RunState, facts: Sequence[Facts]) -> _Entry:
        if name in self._own.tools:
            found = self._tool(self._own.tools[name], state, facts)
        else:
            found = self._builtin(name, state, facts)
        if isinstance(found, str):
            return _Entry(None, found, "")
        known = self._entries.get(name)
        if known is not None and known.schema == found:
            return known
        return _Entry(found, "", self._plan.text(found))

    # --- tools of the policy -----------------------------------------------------------------------------

    def _tool(self, spec: ToolSpec, state: RunState, facts: Sequence[Facts]) -> ToolSchema | str:
        closed = self._structure(spec, state, facts)
        if closed is not None:
            return closed
        plan = self._plan.tool(spec)
        bound = bound_or_unknown(plan.bound, facts[0])
        for param in plan.bound:
            if param.required and bound[param.name] is UNKNOWN:
                return f"`{param.name}` is filled in from {param.bind}, which is not recorded"
        static = plan.facts
        args = {**bound, **static.pending}
        seen = [for_call(each, static, args) for each in facts]
        for policy, each in zip(self.policies, seen, strict=True):
            stop = blocker(policy, spec.name, each)
            if stop is not None:
                return _said(stop, policy, spec.name, each)
        return self._narrow(spec, plan, seen, args)

    def _structure(self, spec: ToolSpec, state: RunState, facts: Sequence[Facts]) -> str | None:
        if spec.exposed == "host":
            return "only the Host calls it"
        left = budgets.tool_calls_left(self._budgets, state.spent, spec.name)
        if left == 0:
            return _used_up(self._budgets.calls_per_tool[spec.name], "it")
        if state.spent.calls >= self._budgets.calls_total:
            return _used_up(self._budgets.calls_total, "the Run")
        for policy in self.policies:
            if spec.name not in policy.tools:
                return f"version {policy.version} of the policy does not have it"
            status = unusable(policy, spec, facts[0])
            if status is not None:
                return f"source `{spec.source}` is {status}"
        return None

    def _narrow(
        self, spec: ToolSpec, plan: ToolPlan, seen: Sequence[Facts], args: dict[str, Value]
    ) -> ToolSchema | str:
        whole, axes = plan.whole, plan.axes
        if not axes or not self._waits_for(spec.name, axes, seen):
            return whole
        kept = self._kept(spec.name, axes, seen, args)
        if kept is None:
            return f"every value of {_quoted(param.name for param in axes)} is refused now"
        cut = {
            param.name: tuple(value for value in param.type.values if value in kept[param.name])
            for param in axes
            if param.type.name is TypeName.ENUM and len(kept[param.name]) < len(param.type.values)
        }
        if not cut or not spec.narrow:
            return whole
        return ToolSchema(spec.name, spec.description, narrowed(whole.parameters, cut))

    def _waits_for(self, tool: str, axes: Sequence[Param], seen: Sequence[Facts]) -> bool:
        """True if a rule or hide that reads one of the parameters is not settled by the other facts already."""
        names = {param.name for param in axes}
        for policy, facts in zip(self.policies, seen, strict=True):
            for rule in policy.rules_of.get(tool, ()):
                if rule.effect is not Effect.REQUIRE and _reads(rule.when, rule.unless, names=names):
                    truth, _ = holds(rule, facts, [])
                    if truth is not True and truth is not False:
                        return True
            for hide in policy.hides_of.get(tool, ()):
                if hide.when is not None and _reads(hide.when, names=names):
                    return True
        return False

    def _kept(
        self, tool: str, axes: Sequence[Param], seen: Sequence[Facts], args: dict[str, Value]
    ) -> dict[str, set[Value]] | None:
        """Parameter -> the values that some combination still permits; None if there is no such combination."""
        choices = [_choices(param) for param in axes]
        size = 1
        for values in choices:
            size *= len(values)
        if size <= MAX_COMBINATIONS:
            return self._try(tool, axes, list(product(*choices)), seen, args)
        found: dict[str, set[Value]] = {}
        for param, values in zip(axes, choices, strict=True):
            one = self._try(tool, [param], [(value,) for value in values], seen, args)
            if one is None:
                return None
            found.update(one)
        return found

    def _try(
        self,
        tool: str,
        axes: Sequence[Param],
        combinations: Sequence[tuple[Value, ...]],
        seen: Sequence[Facts],
        args: dict[str, Value],
    ) -> dict[str, set[Value]] | None:
        found: dict[str, set[Value]] = {param.name: set() for param in axes}
        permitted = False
        for combination in combinations:
            trial = dict(args)
            for param, value in zip(axes, combination, strict=True):
                if value is _ABSENT:
                    del trial[param.name]
                else:
                    trial[param.name] = value
            if self._open(tool, seen, trial):
                permitted = True
                for param, value in zip(axes, combination, strict=True):
                    if value is not _ABSENT:
                        found[param.name].add(value)
        return found if permitted else None

    def _open(self, tool: str, seen: Sequence[Facts], args: dict[str, Value]) -> bool:
        for policy, facts in zip(self.policies, seen, strict=True):
            facts.args = args
            if blocker(policy, tool, facts) is not None:
                return False
        return True

    # --- built-in tools ----------------------------------------------------------------------------------

    def _builtin(self, name: str, state: RunState, facts: Sequence[Facts]) -> ToolSchema | str:
        if name == builtin.FINISH:
            return builtin.FINISH_SCHEMA
        if name == builtin.ASK_USER:
            return self._ask_user(state)
        if name == builtin.REQUEST_CAPABILITY:
            names = capabilities.requestable(self.policies, facts)
            if not names:
                return "there is no capability that this principal may request now"
            return builtin.request_schema(self._own, names)
        return self._publish(name, state, facts)

    def _ask_user(self, state: RunState) -> ToolSchema | str:
        cap = self._budgets.questions_to_user
        if cap is None:
            return "budgets.questions_to_user is not stated"
        if state.spent.questions >= cap:
            return f"all {cap} questions to the user are used"
        return builtin.ASK_SCHEMA

    def _publish(self, name: str, state: RunState, facts: Sequence[Facts]) -> ToolSchema | str:
        output = self._own.outputs[name[len(PUBLISH) :]]
        if output.name in state.publications:
            return "it is published"
        static = publication_facts(output)
        for policy, each in zip(self.policies, facts, strict=True):
            seen = for_call(each, static, static.pending)
            stop = blocker(policy, name, seen)
            if stop is not None:
                return _said(stop, policy, name, seen)
        return builtin.publish_schema(output)


def _reads(*conditions: Condition | None, names: set[str]) -> bool:
    return any(each is not None and not names.isdisjoint(each.args_read) for each in conditions)


_ABSENT: Final = object()


def _choices(param: Param) -> list[Value]:
    values: list[Value] = list(param.type.values) if param.type.name is TypeName.ENUM else [True, False]
    return values if param.required else [*values, _ABSENT]


def unusable(policy: Policy, spec: ToolSpec, facts: Facts) -> str | None:
    """The state of the tool's source if the policy does not use it in that state, else None."""
    if spec.source is None:
        return None
    status = str(facts.source.get(spec.source, {}).get("state", SOURCE_AVAILABLE))
    use = policy.source_use.get(spec.source)
    usable = {SOURCE_AVAILABLE} if use is None else use.usable_when
    return None if status in usable else status


def source_shut(policies: Sequence[Policy], spec: ToolSpec, facts: Facts) -> str | None:
    """The same under every policy of the Run."""
    found = (unusable(policy, spec, facts) for policy in policies)
    return next((status for status in found if status is not None), None)


def blocker(policy: Policy, tool: str, facts: Facts) -> Rule | HideRule | str | None:
    """What keeps a tool out of the contract with the arguments known so far; None if it may be shown.

    PENDING (the model's own arguments) neither hides nor refuses; every other unknown does.
    """
    hide = hidden_by(policy, tool, facts)
    if hide is not None:
        return hide
    permitted = False
    for rule in policy.rules_of.get(tool, ()):
        if rule.effect is Effect.REQUIRE:
            continue
        if rule.effect is not Effect.DENY and (permitted or not may_permit(rule, facts)):
            continue
        truth, _ = holds(rule, facts, [])
        if rule.effect is Effect.DENY:
            if truth is True or truth is UNKNOWN:
                return rule
        elif truth is True or truth is PENDING:
            permitted = True
    if permitted or may_publish(policy, tool, facts):
        return None
    return "no rule permits it"


def _said(stop: Rule | HideRule | str, policy: Policy, tool: str, facts: Facts) -> str:
    if isinstance(stop, HideRule):
        return f"hidden by `{stop.id}` ({where(stop)})"
    if isinstance(stop, Rule):
        return f"deny `{stop.id}` ({where(stop)})"
    kept_out = [each for each in not_applied(policy, tool, facts) if each.rule.effect.permits]
    named = "; ".join(f"`{each.rule.id}` ({where(each.rule)}): {each.clause}" for each in kept_out[:3])
    return f"{stop}: {named}" if named else stop


def _used_up(cap: int, of: str) -> str:
    return f"the one call of {of} is used" if cap == 1 else f"all {cap} calls of {of} are used"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
