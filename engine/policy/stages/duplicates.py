"""Owns the finding of two things with one id (R204)."""

from __future__ import annotations

from collections.abc import Iterable

from engine.domain.diagnostics import Location
from engine.policy.documents.base import Part
from engine.policy.documents.policy import PolicyDocument
from engine.policy.documents.types import value_type
from engine.policy.model import Model

_CITED = "rename one: ids are cited in receipts and by `why`"


def duplicates(model: Model) -> None:
    _once(
        model,
        (
            (name, part.key_place("tools", name), "tool")
            for part in model.tools_parts.values()
            for name in part.tools
        ),
    )
    _once(
        model,
        (
            (name, part.key_place("sources", name), "source")
            for part in model.tools_parts.values()
            for name in part.sources
        ),
    )
    for case_file in model.test_parts.values():
        _ids(model, "case", case_file.cases)
    policy = model.policy_part
    if policy is None:
        return
    rules: list[Part] = [*policy.permissions]
    hides: list[Part] = [*(policy.visibility.hide if policy.visibility else ())]
    for overlay in model.overlay_parts.values():
        rules.extend(overlay.permissions)
        hides.extend(overlay.visibility.hide if overlay.visibility else ())
    _ids(model, "rule", [*rules, *hides])
    _ids(model, "projection", policy.projections)
    _ids(model, "invariant", policy.invariants)
    _once(model, ((overlay.id, overlay.place("id"), "overlay") for overlay in model.overlay_parts.values()))
    for key, roles in (("roles", policy.principals.roles), ("may_start", policy.principals.may_start)):
        _once(model, ((role, policy.principals.place(key, at), "role") for at, role in enumerate(roles)))
    _flat_parameters(model, policy)


def _ids(model: Model, what: str, parts: Iterable[Part]) -> None:
    _once(
        model, ((getattr(part, "id", ""), part.place("id"), what) for part in parts if part.is_written("id"))
    )


def _once(model: Model, named: Iterable[tuple[str, Location, str]]) -> None:
    first: dict[str, Location] = {}
    for name, place, what in named:
        known = first.setdefault(name, place)
        if known is not place:
            model.add("R204", place, f"{what} `{name}` is already declared at {known}", _CITED)


def _flat_parameters(model: Model, policy: PolicyDocument) -> None:
    """`request_capability` takes the parameters of every capability side by side."""
    seen = dict.fromkeys(("capability", "reason"), (None, "a parameter of request_capability itself"))
    types: dict[str, tuple[object, str]] = dict(seen)
    for name, part in policy.capabilities.items():
        for param, type_part in part.params.items():
            mine = value_type(type_part)
            theirs, owner = types.setdefault(param, (mine, f"of another type in capability `{name}`"))
            if theirs != mine:
                model.add("R204", part.key_place("params", param), f"parameter `{param}` is also {owner}",
                          "rename it: request_capability takes all parameters side by side")  # fmt: skip
