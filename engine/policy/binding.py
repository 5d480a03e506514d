"""Owns what binds a person's yes, or a retry, to one call: its digest, what was shown, its idempotency key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from engine.domain.actors import Principal
from engine.domain.canonical import Json, JsonObject, digest_of
from engine.domain.events import Requirement
from engine.domain.facts import UNKNOWN, Facts, Unknown, Value
from engine.domain.ids import CallId, RunId
from engine.domain.policy import ToolSpec
from engine.domain.state import CallState
from engine.policy.decision import Need
from engine.policy.view import as_json, look

MAX_PLACES = 8
"""Places that a reviewer is shown for one argument."""


def call_digest(
    tool: str, spec_digest: str, args: Mapping[str, Json], principal: Principal | None, policy_digest: str
) -> str:
    """What an approval fits: tool, spec, bound and model arguments, principal, policy."""
    return digest_of(
        {
            "tool": tool,
            "spec": spec_digest,
            "args": dict(args),
            "principal": None if principal is None else principal.model_dump(mode="json"),
            "policy": policy_digest,
        }
    )


def requirements_of(needs: Sequence[Need], now: datetime) -> tuple[Requirement, ...]:
    """The approvals as they are recorded with the request; each expires by its own time."""
    return tuple(_requirement(need, now) for need in needs)


def _requirement(need: Need, now: datetime) -> Requirement:
    spec = need.approval
    return Requirement(
        rule=need.rule,
        roles=tuple(sorted(spec.roles)),
        same_principal=spec.same_principal,
        not_requester=spec.not_requester,
        quorum=spec.quorum,
        edit=spec.edit,
        endorse=spec.endorse,
        standing_max_age=None if spec.standing_max_age is None else spec.standing_max_age.total_seconds(),
        standing_max_calls=spec.standing_max_calls,
        signed=spec.signed,
        expires_at=now + spec.expires,
    )


def shown_to_reviewer(
    tool: str, args: JsonObject, bound: frozenset[str], needs: Sequence[Need], facts: Facts
) -> JsonObject:
    """What a reviewer is shown: every argument with where its value occurs, then what `shows` adds.

    `occurs_in` names the places: an input, a receipt and its field, a slice; empty for a value of the model's own.
    """
    added: JsonObject = {}
    for need in needs:
        for path in need.approval.shows:
            if not path.startswith("args"):
                added[path] = as_json(look(facts, path))
    return {
        "tool": tool,
        "arguments": [
            {
                "name": name,
                "value": value,
                "origin": _origin(name, value, bound, facts),
                "occurs_in": _occurs_in(name, value, bound, facts),
            }
            for name, value in args.items()
        ],
        "facts": added,
        "rules": [{"rule": need.rule, "place": need.place, "because": need.because or ""} for need in needs],
    }


def _origin(name: str, value: Json, bound: frozenset[str], facts: Facts) -> Json:
    if name in bound:
        return ["bound"]
    if facts.origin is None:
        return []
    found = [facts.origin(leaf) for leaf in _scalars(value)]
    return [*sorted({each for origins in found if not isinstance(origins, Unknown) for each in origins})]


def _occurs_in(name: str, value: Json, bound: frozenset[str], facts: Facts) -> Json:
    """At most MAX_PLACES places, those that strangers wrote first."""
    if name in bound or facts.origin is None:
        return []
    found = [
        f"{origin}: {where}" if leaf is value else f"{origin}: {where} ({leaf})"
        for leaf in _scalars(value)
        for origin, where in facts.origin.places(leaf)
    ]
    found.sort(key=lambda place: not place.startswith("untrusted"))
    shown: list[Json] = [*dict.fromkeys(found)]
    return shown[:MAX_PLACES]


def _scalars(value: Json) -> Iterator[Json]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _scalars(item)
    else:
        yield value


def idempotency_key(
    spec: ToolSpec, run: RunId, call: CallId, args: Mapping[str, Json], facts: Facts
) -> str | None:
    """The declared key of a call as 64 hex digits, from Host facts and typed arguments; None without one.

    An argument that was left out is null. Raises KeyError if a Host fact of the key is not recorded.
    """
    if spec.idempotency is None:
        return None
    parts = [[name, _key_part(name, spec, run, call, args, facts)] for name in spec.idempotency.key]
    return digest_of([spec.name, parts])


def _key_part(
    name: str, spec: ToolSpec, run: RunId, call: CallId, args: Mapping[str, Json], facts: Facts
) -> Json:
    if name in spec.params:
        return args.get(name)
    if name == "run.id":
        return run
    if name == "call.id":
        return f"{run}/{call}"
    value = look(facts, name)
    if isinstance(value, Unknown):
        raise KeyError(name)
    return as_json(value)


def host_arguments(
    spec: ToolSpec, declared: Mapping[str, str], call: CallState | None, facts: Facts
) -> JsonObject | None:
    """Arguments of a call of the Host (probe, compensation) about `call`; None if one of them is not recorded.

    `declared` maps a parameter to `idempotency_key`, `args.<param>`, `result.<field>` or a Host fact; parameters
    with a `bind` of their own are filled in as usual.
    """
    found: JsonObject = {}
    for name, param in spec.params.items():
        path = declared.get(name) or param.bind
        if path is None:
            continue
        value = _about(path, call, facts)
        if isinstance(value, Unknown):
            if param.required:
                return None
            continue
        found[name] = as_json(value)
    return found


def _about(path: str, call: CallState | None, facts: Facts) -> Value:
    if call is None:
        return look(facts, path)
    if path == "idempotency_key":
        return UNKNOWN if call.idempotency_key is None else call.idempotency_key
    root, _, rest = path.partition(".")
    if root == "args":
        return (call.args or {}).get(rest, UNKNOWN)
    if root == "result":
        return call.fields.get(rest, UNKNOWN)
    return look(facts, path)
