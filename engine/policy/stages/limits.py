"""Owns the values of typed constants: as the policy states them, or as the deployment sets them up to `max`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.canonical import Json
from engine.domain.diagnostics import Location
from engine.domain.facts import Unknown
from engine.domain.policy import Limit
from engine.domain.types import TypeName, ValueType
from engine.policy.conditions.values import converter
from engine.policy.documents.policy import LimitPart, PolicyDocument
from engine.policy.documents.values import parse_duration
from engine.policy.environments import limit_type
from engine.policy.model import Model

_EXAMPLES: Mapping[TypeName, str] = {
    TypeName.INT: "5000",
    TypeName.DECIMAL: '"1.50" (in quotes)',
    TypeName.DURATION: "10m",
    TypeName.TIMESTAMP: '"2026-01-31T00:00:00Z"',
    TypeName.BOOL: "true",
}


def limit_values(model: Model, policy: PolicyDocument) -> None:
    """Checks every limit and every value that the deployment gives."""
    for part in policy.limits.values():
        type_ = limit_type(part)
        value = _checked(model, part, "value", type_)
        if part.max is not None:
            most = _checked(model, part, "max", type_)
            if most is not None and value is not None and _above(value, most):
                model.add(
                    "Y205", part.place("value"), f"`value` {part.value} is above `max` {part.max}", "lower it"
                )
    for name, given in model.limits.items():
        _deployed(model, policy, name, given)


def _deployed(model: Model, policy: PolicyDocument, name: str, given: Json) -> None:
    place = policy.key_place("limits", name) if name in policy.limits else Location("agentctl.yaml", 1, 1)
    part = policy.limits.get(name)
    if part is None:
        model.unknown("C103", place, f"limit of policy `{policy.id}`", name, policy.limits)
        return
    type_ = limit_type(part)
    value, most = value_of(type_, given), value_of(type_, part.max)
    if value is None:
        model.add(
            "Y205",
            place,
            f"the deployment sets `{name}` to `{given}`, which is not {type_}",
            "mend agentctl.yaml",
        )
    elif value != value_of(type_, part.value) and (most is None or _above(value, most)):
        allowed = f"up to {part.max}" if most is not None else "not at all: the limit has no `max`"
        model.add("Y205", place, f"the deployment sets `{name}` to `{given}`", f"it may set it {allowed}")


def _checked(model: Model, part: LimitPart, key: str, type_: ValueType) -> Any:
    written = getattr(part, key)
    value = value_of(type_, written)
    if value is None:
        example = _EXAMPLES.get(type_.name, "a value of its type")
        model.add("Y205", part.place(key), f"`{written}` is not {type_}", f"write {example}")
    return value


def value_of(type_: ValueType, written: Any) -> Any:
    """The typed value, or None if it is not of the type."""
    if written is None:
        return None
    if type_.name is TypeName.DURATION:
        return parse_duration(written) if isinstance(written, str) else None
    if type_.name is TypeName.DECIMAL and not isinstance(written, str):
        return None
    if type_.name is TypeName.ENUM and written not in type_.values:
        return None
    value = converter(type_)(written)
    return None if isinstance(value, Unknown) else value


def limit_of(part: LimitPart, deployed: Json) -> Limit:
    type_ = limit_type(part)
    value = value_of(type_, part.value if deployed is None else deployed)
    return Limit(type_, value, value_of(type_, part.max))


def _above(value: Any, most: Any) -> bool:
    return bool(value > most) if type(value) is type(most) and not isinstance(value, str) else False
