"""Owns what leaves the log for other eyes: events with their `sensitive` arguments masked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.domain.canonical import Json, JsonObject, NotJson, canonical, parse_json
from engine.domain.events import Event
from engine.domain.policy import ToolSpec

SENSITIVE: Final = "[sensitive]"


def exported(event: Event, tools: Mapping[str, ToolSpec]) -> JsonObject:
    """One event as plain data: envelope and body, each sensitive argument of its calls replaced by a mark.

    `tools` are those of the Run's policy. A call of a tool that the policy does not have, and one whose raw
    arguments cannot be read, is shown without its arguments: nobody can say what of them is sensitive.
    """
    body = parse_json(event.payload)
    assert isinstance(body, dict)
    return {
        "run": event.run,
        "seq": event.seq,
        "kind": event.kind,
        "at": event.recorded_at.isoformat(),
        "actor": event.actor.model_dump(mode="json", exclude_defaults=True),
        "body": _masked(body, tools),
        "hash": event.hash,
    }


def _masked(body: JsonObject, tools: Mapping[str, ToolSpec]) -> JsonObject:
    found = dict(body)
    spec = tools.get(str(body.get("tool")))
    if spec is not None and spec.sensitive:
        for name in ("args", "edits", "original_args"):
            value = found.get(name)
            if isinstance(value, dict):
                found[name] = _without(value, spec.sensitive)
    proposals = body.get("proposals")
    if isinstance(proposals, list):
        found["proposals"] = [_proposal(each, tools) for each in proposals if isinstance(each, dict)]
    shown = body.get("shown")
    if isinstance(shown, dict):
        found["shown"] = _shown(shown, tools)
    return found


def _without(args: Mapping[str, Json], sensitive: frozenset[str]) -> JsonObject:
    return {name: SENSITIVE if name in sensitive else value for name, value in args.items()}


def _proposal(proposal: JsonObject, tools: Mapping[str, ToolSpec]) -> JsonObject:
    spec = tools.get(str(proposal.get("tool")))
    if spec is not None and not spec.sensitive:
        return proposal
    if spec is None:
        return {**proposal, "arguments": SENSITIVE}
    try:
        value = parse_json(str(proposal.get("arguments", "")))
    except NotJson:
        value = None
    if not isinstance(value, dict):
        return {**proposal, "arguments": SENSITIVE}
    return {**proposal, "arguments": canonical(_without(value, spec.sensitive))}


def _shown(shown: JsonObject, tools: Mapping[str, ToolSpec]) -> JsonObject:
    """What a reviewer was shown: arguments by name, wherever they stand in it."""
    spec = tools.get(str(shown.get("tool")))
    sensitive = (
        spec.sensitive if spec is not None else frozenset().union(*(t.sensitive for t in tools.values()))
    )
    return {
        name: _without(value, sensitive)
        if isinstance(value, dict)
        else SENSITIVE
        if name in sensitive
        else value
        for name, value in shown.items()
    }
