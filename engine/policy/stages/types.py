"""Owns the fourth stage: conditions, bound values and paths against the types of what they read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from engine.domain.types import TypeName, ValueType
from engine.policy.conditions import (
    APPROVE_ROOTS,
    BASE_ROOTS,
    GATE_ROOTS,
    RESULT_ROOTS,
    RULE_ROOTS,
    Environment,
    Fault,
    compile_condition,
    compile_value,
)
from engine.policy.documents.base import Part
from engine.policy.documents.policy import (
    CapabilityPart,
    GatePart,
    HidePart,
    OutputPart,
    PolicyDocument,
    RulePart,
)
from engine.policy.documents.tools import ReconcilePart, ToolPart
from engine.policy.documents.types import value_type
from engine.policy.environments import BIND_ROOTS, KEY_ROOTS, PUBLISH_ROOTS, environment, names_of
from engine.policy.model import Model, PlacedCondition
from engine.policy.selectors import is_selector, selected
from engine.policy.stages.limits import limit_values
from engine.policy.stages.projections import refreshes
from engine.policy.stages.prompts import output_templates, prompt_variables

_ID: Final = ValueType(TypeName.ID)
_NEEDS_NAMES: Final = frozenset({"C102", "C103", "C106", "C108", "R201", "R208"})
"""Faults that prove nothing while a file that may declare the name is not known."""


def types(model: Model) -> None:
    env = model.environment = environment(model)
    for document in model.tools_parts.values():
        for name, tool in document.tools.items():
            _tool(model, name, tool, env)
    policy = model.policy_part
    if policy is not None:
        _policy(model, policy, env)
        limit_values(model, policy)
        prompt_variables(model, policy, env)
        output_templates(model)
        refreshes(model, policy)
    for overlay in model.overlay_parts.values():
        for rule in overlay.permissions:
            _rule(model, rule, env)
        for hide in overlay.visibility.hide if overlay.visibility else ():
            _hide(model, hide, env)
        _gates(model, overlay.gates.finish if overlay.gates else (), env)


def _policy(model: Model, policy: PolicyDocument, env: Environment) -> None:
    for rule in policy.permissions:
        _rule(model, rule, env)
    for hide in policy.visibility.hide if policy.visibility else ():
        _hide(model, hide, env)
    for capability in policy.capabilities.values():
        _capability(model, capability, env)
    for name, output in policy.outputs.items():
        _output(model, name, output, env)
    _gates(model, policy.gates.finish, env)
    for invariant in policy.invariants:
        call = invariant.never_call
        at = env.at(RULE_ROOTS, named=names_of([call] if call else [], env), selects=call is None)
        condition(model, invariant, "when", at)


# --- conditions -------------------------------------------------------------------------------------------


def condition(
    model: Model, part: Part, key: str, env: Environment, *, present: frozenset[str] = frozenset()
) -> PlacedCondition | None:
    """Compiles the condition at a key, if there is one, and keeps it."""
    text = getattr(part, key)
    if text is None:
        return None
    model.conditions_seen += 1
    found, faults = compile_condition(text, env, present=present)
    for fault in faults:
        place_fault(model, part, key, text, fault)
    if found is None:
        return None
    placed = model.conditions[(id(part), key)] = PlacedCondition(part, key, found, env)
    return placed


def place_fault(model: Model, part: Part, key: str, text: str, fault: Fault, code: str | None = None) -> None:
    """Adds a fault of a condition, at the characters of the file that it is about."""
    incomplete = model.policy_part is None or model.unread
    if incomplete and fault.code in _NEEDS_NAMES and not text.lstrip("!( ").startswith("result."):
        return
    place = part.place_within(fault.span.start, fault.span.end, *key.split("/"))
    model.add(code or fault.code, place, fault.message, fault.help)


def _rule(model: Model, rule: RulePart, env: Environment) -> None:
    at = _rule_environment(rule.tools, env)
    when = condition(model, rule, "when", at)
    condition(model, rule, "unless", at, present=when.condition.present if when else frozenset())
    if rule.approval is not None:
        _shown(model, rule.approval, at, rule.approval.shows, rule.tools)
        for key in ("edit", "endorse"):
            _arguments(model, rule.approval, key, at, rule.tools)


def _rule_environment(entries: list[str], env: Environment) -> Environment:
    return env.at(
        RULE_ROOTS, named=names_of(entries, env), selects=any(is_selector(entry) for entry in entries)
    )


def _hide(model: Model, hide: HidePart, env: Environment) -> None:
    condition(model, hide, "when", _rule_environment(hide.tools, env))


def _capability(model: Model, part: CapabilityPart, env: Environment) -> None:
    condition(model, part.request, "when", env.at(BASE_ROOTS))
    params = {name: value_type(type_) for name, type_ in part.params.items()}
    for branch in part.approve:
        condition(model, branch, "when", env.at(APPROVE_ROOTS, params=params))


def _output(model: Model, name: str, part: OutputPart, env: Environment) -> None:
    if part.publish is None:
        return
    at = env.at(PUBLISH_ROOTS, named=[f"publish_{name}"])
    condition(model, part.publish, "when", at)
    if part.publish.approval is not None:
        _shown(model, part.publish.approval, at, part.publish.approval.shows, [f"publish_{name}"])
    _gates(model, part.publish.gates, env)


def _gates(model: Model, gates: Iterable[GatePart | str], env: Environment) -> None:
    at = env.at(GATE_ROOTS)
    for gate in gates:
        if isinstance(gate, str) or gate.when is None:
            continue
        model.conditions_seen += 1
        found, faults = compile_condition(gate.when, at)
        for fault in faults:
            reads_args = fault.code in ("C102", "C103") and gate.when[fault.span.start :].startswith("args")
            place_fault(model, gate, "when", gate.when, _terminal(fault) if reads_args else fault)
        if found is not None:
            model.conditions[(id(gate), "when")] = PlacedCondition(gate, "when", found, at)


def _terminal(fault: Fault) -> Fault:
    return Fault(
        "M404",
        fault.span,
        "a gate reads what the model wrote in an argument",
        "gates read Host facts: `output_committed: OUTPUT`, outputs, calls, state, run",
    )


# --- approvals --------------------------------------------------------------------------------------------


def _shown(model: Model, part: Part, env: Environment, shows: list[str], entries: list[str]) -> None:
    for at, path in enumerate(shows):
        root, _, rest = path.partition(".")
        if path in ("args", "params"):
            continue
        if root == "args":
            _argument(model, part, ("shows", at), rest, entries, env)
            continue
        _, faults = compile_value(path, env)
        for fault in faults:
            place_path_fault(model, part, ("shows", at), path, fault)


def _arguments(model: Model, part: Part, key: str, env: Environment, entries: list[str]) -> None:
    for at, path in enumerate(getattr(part, key)):
        _argument(model, part, (key, at), path.removeprefix("args."), entries, env)


def _argument(
    model: Model, part: Part, steps: tuple[str | int, ...], name: str, entries: list[str], env: Environment
) -> None:
    tools = _tools_of(model, entries, env)
    params = {param for tool in tools for param in env.tools[tool].params}
    if tools and name not in params:
        model.unknown("C103", part.place(*steps), "argument", name, params)


def _tools_of(model: Model, entries: list[str], env: Environment) -> set[str]:
    publications = [name for name in env.tools if name.startswith("publish_")]
    found = {tool for entry in entries for tool in selected(entry, model.tools, publications)}
    return found & set(env.tools)


# --- tools ------------------------------------------------------------------------------------------------


def _tool(model: Model, name: str, tool: ToolPart, env: Environment) -> None:
    for param in tool.params.values():
        if param.bind is not None and model.policy_part is not None:
            _bound(model, param, param.bind, value_type(param), env)
    if tool.idempotency is not None:
        _keys(model, name, tool, tool.idempotency, tool.idempotency.key, env)
    if tool.cache is not None:
        _keys(model, name, tool, tool.cache, tool.cache.key, env)
    if tool.reconcile is not None:
        _reconcile(model, name, tool.reconcile, env)
    if tool.compensate is not None:
        at = env.at(BIND_ROOTS | {"args", "result"}, named=[name], result=env.tools[name].result)
        _passed(model, tool.compensate, tool.compensate.args, tool.compensate.tool, at, "W211")


def _bound(model: Model, part: Part, path: str, wanted: ValueType, env: Environment) -> None:
    if path.startswith("evidence."):
        kind = path.removeprefix("evidence.")
        if kind not in model.evidence_kinds and not model.unread:
            model.unknown("R208", part.place("bind"), "evidence kind", kind, model.evidence_kinds)
        return
    _, faults = compile_value(path, env.at(BIND_ROOTS), wanted)
    for fault in faults:
        place_path_fault(model, part, ("bind",), path, fault)


def place_path_fault(model: Model, part: Part, steps: tuple[str | int, ...], path: str, fault: Fault) -> None:
    unknown_state = path.startswith("state.") and fault.code in ("C102", "C103")
    code = "R206" if unknown_state else fault.code
    model.add(code, part.place_within(fault.span.start, fault.span.end, *steps), fault.message, fault.help)


def _keys(model: Model, name: str, tool: ToolPart, part: Part, key: list[str], env: Environment) -> None:
    for at, entry in enumerate(key):
        if entry in tool.params:
            continue
        if "." not in entry:
            model.unknown("C103", part.place("key", at), f"parameter of `{name}`", entry, set(tool.params))
        elif model.policy_part is not None:
            _, faults = compile_value(entry, env.at(KEY_ROOTS))
            for fault in faults:
                place_path_fault(model, part, ("key", at), entry, fault)


def _reconcile(model: Model, name: str, part: ReconcilePart, env: Environment) -> None:
    if part.probe is None or part.probe not in env.tools:
        return
    at = env.at(RESULT_ROOTS, result=env.tools[part.probe].result)
    condition(model, part, "confirms", at)
    condition(model, part, "refutes", at)
    _passed(model, part, part.args, part.probe, env.at(BIND_ROOTS | {"args"}, named=[name]), "W220")


def _passed(
    model: Model, part: Part, args: Mapping[str, str], tool: str, env: Environment, code: str
) -> None:
    """Arguments that the Host passes to a probe or a compensation: each must exist and fit."""
    target = env.tools.get(tool)
    if target is None:
        return
    free = {name: shape for name, shape in target.params.items() if not shape.bound}
    for name, path in args.items():
        shape = free.get(name)
        if shape is None:
            model.unknown(code, part.key_place("args", name), f"parameter of `{tool}`", name, set(free))
        elif path == "idempotency_key":
            if shape.type.name not in (TypeName.ID, TypeName.REF, TypeName.TEXT):
                model.add(code, part.place("args", name), f"`{name}` is {shape.type}, the key is text",
                          f"declare `{name}` of `{tool}` as {{type: id}}")  # fmt: skip
        elif "." not in path:
            model.add(code, part.place("args", name), f"`{path}` is not a value that the Host has",
                      "write idempotency_key, args.PARAM or a Host fact such as state.SLICE.FIELD")  # fmt: skip
        elif model.policy_part is not None or path.startswith(("args.", "result.")):
            _, faults = compile_value(path, env, shape.type)
            for fault in faults:
                place = part.place_within(fault.span.start, fault.span.end, "args", name)
                model.add(code, place, fault.message, fault.help)
    for name, shape in free.items():
        if shape.required and name not in args and not part.is_lost("args"):
            place = part.key_place("args") if part.is_written("args") else part.here
            model.add(code, place, f"`{tool}` needs `{name}`", f"add `{name}:` to `args`")
