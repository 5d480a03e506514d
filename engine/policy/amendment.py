"""Owns what a person may change of a held call: declared arguments of the same tool, checked like the model's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.domain.actors import Principal
from engine.domain.canonical import Json, JsonObject, digest_of
from engine.domain.events import Amendment, Requirement
from engine.domain.policy import ToolSpec
from engine.policy.binding import call_digest
from engine.policy.values import Fault, read_value


def not_declared(
    needs: Sequence[Requirement], rules: Sequence[str], names: Sequence[str], key: str
) -> list[str]:
    """Arguments that none of these rules lets a person edit (`key`: edit) or endorse (`key`: endorse)."""
    allowed = {
        path.removeprefix("args.") for need in needs if need.rule in rules for path in getattr(need, key)
    }
    return [name for name in names if name not in allowed]


def amended(spec: ToolSpec, args: Mapping[str, Json], edits: Mapping[str, Json]) -> JsonObject | str:
    """The arguments with the edits in their places; a sentence about the first edit that does not fit."""
    faults: list[Fault] = []
    found = dict(args)
    for name, value in edits.items():
        param = spec.params.get(name)
        if param is None:
            return f"`{spec.name}` has no argument `{name}`"
        if param.bind is not None:
            return f"`{name}` is filled in by the Host from {param.bind}"
        found[name] = read_value(value, param.type, name, faults)
    if faults:
        return faults[0].message
    return {name: found[name] for name in spec.params if name in found}


def amendment(
    spec: ToolSpec,
    principal: Principal | None,
    policy_digest: str,
    args: JsonObject,
    shown: JsonObject,
    edits: Mapping[str, Json],
    by: str,
) -> Amendment:
    """The amended call with its own digest, and what the next reviewer is shown of it."""
    now_shown = _shown(shown, args, edits, by)
    return Amendment(
        digest=call_digest(spec.name, spec.digest, args, principal, policy_digest),
        args=args,
        shown=now_shown,
        shown_digest=digest_of(now_shown),
    )


def _shown(shown: JsonObject, args: JsonObject, edits: Mapping[str, Json], by: str) -> JsonObject:
    known = shown.get("arguments")
    before = {
        str(item["name"]): item
        for item in (known if isinstance(known, list) else [])
        if isinstance(item, dict)
    }
    listed: list[Json] = [
        {"name": name, "value": value, "origin": [f"edited by {by}"], "occurs_in": []}
        if name in edits
        else {"origin": [], "occurs_in": [], **before.get(name, {}), "name": name, "value": value}
        for name, value in args.items()
    ]
    return {**shown, "arguments": listed}
