"""Owns the starter file of `agentctl test --init`: a case for each rule, found by trying its facts out.

Every case expects what the policy does now, so a reader decides whether that is what was meant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Final

import yaml

from engine.domain.canonical import Json
from engine.domain.errors import AgentctlError
from engine.domain.policy import Policy, Rule, ToolSpec
from engine.domain.types import Field, TypeName, ValueType
from engine.policy.documents.base import Faults
from engine.policy.documents.test import CasePart, TestDocument
from engine.policy.source import parse
from engine.policy.stages.shape import check_document
from engine.ports import EventStore
from engine.runtime.scenario.checks import became_of
from engine.runtime.scenario.coverage import deciding_rules
from engine.runtime.scenario.play import Play, Played
from engine.runtime.scenario.samples import candidates, literals_of, sample

TRIES: Final = 64
"""Combinations of facts that are tried for one rule and tool."""


@dataclass(frozen=True, slots=True)
class Starter:
    """The text of a test file, and the rules for which no case was found."""

    text: str
    cases: int
    without: tuple[str, ...]


def starter(policy: Policy, policy_path: str, new_store: Callable[[], EventStore]) -> Starter:
    """Cases for the rules of a policy. `policy_path` is how the test file names it."""
    cases: list[dict[str, Any]] = []
    without: list[str] = []
    for rule in policy.rules:
        if rule.origin != "policy":
            continue
        found = _case_for(policy, rule, new_store)
        if found is None:
            without.append(rule.id)
        else:
            cases.append(found)
    return Starter(_text(policy_path, cases), len(cases), tuple(without))


def _text(policy_path: str, cases: Sequence[Mapping[str, Any]]) -> str:
    head = yaml.safe_dump({"agentctl": "test/v1", "policy": policy_path}, sort_keys=False)
    body = yaml.safe_dump(
        {"cases": [*cases]}, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True
    )
    return head + body


def _case_for(policy: Policy, rule: Rule, new_store: Callable[[], EventStore]) -> dict[str, Any] | None:
    for trial in _trials(policy, rule):
        expected = _played(policy, rule, trial, new_store())
        if expected is not None:
            trial["turns"][-1]["expect"] = expected
            return trial
    return None


def _played(policy: Policy, rule: Rule, trial: dict[str, Any], store: EventStore) -> dict[str, Any] | None:
    """What the engine does with the trial; None if the rule had no part in it."""
    part = _part(trial)
    if part is None:
        return None
    play = Play(policy, store)
    try:
        play.start(part.given)
        for turn in part.turns:
            played = asyncio.run(play.turn(turn))
    except AgentctlError:
        return None
    if rule.id not in deciding_rules(policy, play.run, store.events(play.run)):
        return None
    return _expected(played)


def _part(trial: Mapping[str, Any]) -> CasePart | None:
    document = {"agentctl": "test/v1", "policy": "p", "cases": [trial]}
    tree = parse("trial", yaml.safe_dump(document, sort_keys=False))
    faults = Faults()
    part = check_document(tree, TestDocument, lambda _: None, faults)
    return None if part is None or list(faults) or not part.cases else part.cases[0]


def _expected(played: Played) -> dict[str, Any] | None:
    if not played.proposals:
        return None
    call = played.state.calls[played.proposals[0]]
    became = became_of(call)
    found: dict[str, Any] = {"outcome": became.outcome}
    if became.rule is not None:
        found["rule"] = became.rule
    if became.missing:
        found["for"] = sorted(became.missing)
    where = "shows" if call.tool in played.contract.names else "hides"
    return {where: [call.tool], "calls": [found]}


# --- trials -------------------------------------------------------------------------------------------------


def _trials(policy: Policy, rule: Rule) -> Iterator[dict[str, Any]]:
    roles = sorted((rule.roles or policy.may_start) & policy.may_start)
    tools = [name for name in sorted(rule.matches) if _proposable(policy, name)]
    for tool in tools:
        params = {p.name: Field(p.type, p.required) for p in policy.tools[tool].model_params}
        axes = _axes(policy, rule, params)
        for role, values in islice(product(roles, product(*axes.values())), TRIES):
            yield _trial(policy, rule, tool, role, dict(zip(axes, values, strict=True)), params)


def _proposable(policy: Policy, tool: str) -> bool:
    spec = policy.tools.get(tool)
    return spec is not None and spec.exposed == "model"


def _axes(policy: Policy, rule: Rule, params: Mapping[str, Field]) -> dict[str, list[Json]]:
    """Facts that the rule's conditions read -> the values to try."""
    reads = {
        path
        for condition in (rule.when, rule.unless)
        if condition is not None
        for path in (*condition.reads, *(f"args.{name}" for name in condition.args_read))
    }
    types = {
        **{f"task.{name}": field.type for name, field in policy.task.items()},
        **{f"principal.{name}": type_ for name, type_ in policy.attrs.items()},
        **{f"args.{name}": field.type for name, field in params.items()},
        **{
            f"grant.{name}.{param}": type_
            for name in rule.needs
            for param, type_ in policy.capabilities[name].params.items()
        },
        **{
            f"state.{name}.{key}": field.type
            for name, slice_ in policy.state.items()
            for key, field in slice_.fields.items()
        },
    }
    literals = literals_of([each.text for each in (rule.when, rule.unless) if each is not None])
    return {path: candidates(types[path], literals) for path in sorted(reads) if path in types}


def _trial(
    policy: Policy, rule: Rule, tool: str, role: str, chosen: Mapping[str, Json], params: Mapping[str, Field]
) -> dict[str, Any]:
    def value(path: str, type_: ValueType, name: str) -> Json:
        return chosen[path] if path in chosen else sample(type_, name)

    principal: dict[str, Json] = {"id": "p1", "roles": [role]}
    principal |= {name: value(f"principal.{name}", type_, name) for name, type_ in policy.attrs.items()}
    given: dict[str, Any] = {"principal": principal}
    task = {name: value(f"task.{name}", each.type, name) for name, each in policy.task.items()}
    state = {
        name: {key: value(f"state.{name}.{key}", each.type, key) for key, each in slice_.fields.items()}
        for name, slice_ in policy.state.items()
    }
    grant = {
        name: {
            param: value(f"grant.{name}.{param}", type_, param)
            for param, type_ in policy.capabilities[name].params.items()
        }
        for name in rule.needs
    }
    given |= {key: held for key, held in (("task", task), ("state", state), ("grant", grant)) if held}
    args = {
        name: value(f"args.{name}", each.type, name)
        for name, each in params.items()
        if each.required or f"args.{name}" in chosen
    }
    call: dict[str, Any] = {"call": tool, **({"args": args} if args else {})}
    return {"id": rule.id, "given": given, "turns": [*_readings(policy, params, args), {"propose": [call]}]}


def _readings(policy: Policy, params: Mapping[str, Field], args: Mapping[str, Json]) -> list[dict[str, Any]]:
    """Turns that bring the evidence which the call's references need."""
    found = []
    for name, value in args.items():
        type_ = params[name].type
        if type_.name is TypeName.REF and isinstance(value, str):
            reader = next((spec for spec in policy.tools.values() if _brings(spec, type_.kind)), None)
            if reader is not None and reader.evidence is not None:
                needed = {p.name: sample(p.type, p.name) for p in reader.model_params if p.required}
                result = _result(reader.evidence.id.split(".")[1:], value)
                call = {"call": reader.name, **({"args": needed} if needed else {}), "result": result}
                found.append({"propose": [call]})
    return found


def _brings(spec: ToolSpec, kind: str | None) -> bool:
    return spec.exposed == "model" and spec.evidence is not None and spec.evidence.kind == kind


def _result(steps: Sequence[str], value: str) -> Json:
    """The smallest result with this value at a path such as `notes[].id`."""
    if not steps:
        return value
    inner = _result(steps[1:], value)
    key = steps[0].removesuffix("[]")
    return {key: [inner] if steps[0].endswith("[]") else inner}
