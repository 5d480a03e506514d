"""Owns the reading of what is typed: `k=v` by declared type, who acts, a call by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.domain.actors import Actor, Principal
from engine.domain.canonical import Json, JsonObject, NotJson, parse_json
from engine.domain.diagnostics import did_you_mean, suggest
from engine.domain.errors import UsageError
from engine.domain.ids import CallId
from engine.domain.policy import Policy
from engine.domain.types import TypeName, ValueType
from engine.policy.documents.project import LocalPart

_AS_JSON = {TypeName.BOOL, TypeName.INT, TypeName.LIST, TypeName.RECORD, TypeName.ARGV}
_EXAMPLES = {TypeName.BOOL: "true", TypeName.INT: "42", TypeName.RECORD: '{"a": 1}'}


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """`["a=1", "b=2"]` -> {"a": "1", "b": "2"}. Raises UsageError."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"`{option} {text}` is no assignment", remedy=f"write `{option} name=value`")
        if name.strip() in found:
            raise UsageError(f"`{option} {name.strip()}` is given twice", remedy="keep one")
        found[name.strip()] = value
    return found


def typed(given: Mapping[str, str], types: Mapping[str, ValueType], option: str) -> JsonObject:
    """Values as their declared types want them; what is not declared stays text and is refused later, by name."""
    return {name: _value(name, text, types.get(name), option) for name, text in given.items()}


def _value(name: str, text: str, type_: ValueType | None, option: str) -> Json:
    if type_ is None or type_.name not in _AS_JSON:
        return text
    try:
        return parse_json(text)
    except NotJson as error:
        example = _EXAMPLES.get(type_.name, '["a", "b"]')
        raise UsageError(
            f"`{option} {name}={text}` is no {type_}", remedy=f"write it as JSON, such as `{name}={example}`"
        ) from error


def task_of(policy: Policy, given: Sequence[str], defaults: Mapping[str, Mapping[str, Any]]) -> JsonObject:
    """The task: what is typed over `task_defaults` of the policy."""
    types = {name: field.type for name, field in policy.task.items()}
    return {**defaults.get(policy.id, {}), **typed(pairs(given, "--task"), types, "--task")}


def principal_of(
    policy: Policy | None,
    identity: str | None,
    roles: Sequence[str],
    attrs: Sequence[str],
    local: LocalPart | None,
) -> Principal:
    """Who acts. Options stand over `local`, of which nothing carries over to somebody else.

    Raises UsageError where nobody is named, and for a role that the policy does not have.
    """
    name = identity or (local.id if local is not None else "")
    if local is not None and name != local.id:
        local = None
    if not name:
        raise UsageError(
            "nobody is named",
            remedy="say who acts with `--as ID --role ROLE`, or with `local` in agentctl.yaml",
        )
    if policy is not None:
        _check_roles(policy, roles, local)
    types = policy.attrs if policy is not None else {}
    known = {key: value for key, value in local.attrs.items() if key in types} if local is not None else {}
    return Principal(
        id=name,
        roles=tuple(roles) or (tuple(local.roles) if local is not None else ()),
        attrs={**known, **typed(pairs(attrs, "--attr"), types, "--attr")},
    )


def _check_roles(policy: Policy, roles: Sequence[str], local: LocalPart | None) -> None:
    for role in roles or (local.roles if local is not None else ()):
        if role not in policy.roles:
            near = did_you_mean(role, policy.roles)
            raise UsageError(
                f"the policy has no role `{role}`",
                remedy=(f"did you mean `{near}`? " if near else "")
                + f"say who acts with `--as ID --role ROLE`; roles of `{policy.id}`: {', '.join(sorted(policy.roles))}",
            )


def actor_of(identity: str | None, roles: Sequence[str], local: LocalPart | None) -> Actor:
    return principal_of(None, identity, roles, (), local).actor()


def grants_of(policy: Policy, given: Sequence[str]) -> dict[str, list[JsonObject]]:
    """`CAP:k=v,k=v` for each grant. Raises UsageError for a capability that the policy does not have."""
    found: dict[str, list[JsonObject]] = {}
    for text in given:
        name, _, params = text.partition(":")
        capability = policy.capabilities.get(name)
        if capability is None:
            known = ", ".join(policy.capabilities) or "none"
            raise UsageError(
                f"the policy has no capability `{name}`",
                remedy=suggest(name, policy.capabilities, f"capabilities: {known}"),
            )
        parts = [part for part in params.split(",") if part.strip()]
        found.setdefault(name, []).append(typed(pairs(parts, "--grant"), capability.params, "--grant"))
    return found


def call_of(text: str) -> CallId:
    found = CallId.parse(text)
    if found is None:
        raise UsageError(f"`{text}` names no call", remedy="calls are named TURN.ORDINAL, such as `3.1`")
    return found
