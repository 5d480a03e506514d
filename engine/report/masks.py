"""Owns the masking of sensitive values in exports: parameters and result fields that a tool spec names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from engine.domain import events as e
from engine.domain.canonical import Json, JsonObject, NotJson, canonical, parse_json
from engine.domain.policy import Policy
from engine.domain.state import RunState

MASK: Final = "[sensitive]"


class Masks:
    """What is sensitive of each tool; `state` is the fold of the whole Run."""

    def __init__(self, policy: Policy, state: RunState) -> None:
        self._names = {name: spec.sensitive for name, spec in policy.tools.items() if spec.sensitive}
        self._slices = {
            name: self._names.get(declared.refresh or "", frozenset())
            for name, declared in policy.state.items()
        }
        """Slice -> what is sensitive of the answers that it is read from."""
        self._state = state

    def value(self, tool: str, value: Json) -> Json:
        """JSON data about a tool with its sensitive fields masked, at any depth."""
        names = self._names.get(tool)
        return _masked(value, names) if names else value

    def raw(self, tool: str, arguments: str) -> str:
        """Arguments as a model wrote them; wholly masked where they cannot be read."""
        if tool not in self._names:
            return arguments
        try:
            return canonical(self.value(tool, parse_json(arguments))) if arguments.strip() else arguments
        except NotJson:
            return MASK

    def payload(self, event: e.Event, payload: JsonObject) -> JsonObject:
        """The payload of an event as it may leave the house."""
        body = event.body
        if isinstance(body, e.ModelTurnRecorded):
            return {**payload, "proposals": [self._proposal(each) for each in _list(payload, "proposals")]}
        if isinstance(body, e.StateUpdated):
            return {**payload, "value": _masked(payload["value"], self._slices.get(body.slice, frozenset()))}
        tool = self._tool(body)
        if isinstance(body, e.ValueEndorsed) and _root(body.arg) in self._names.get(tool, ()):
            return {**payload, "value": MASK}
        found = self.value(tool, payload)
        assert isinstance(found, dict)
        if tool in self._names and isinstance(found.get("evidence"), list):
            found = {**found, "evidence": MASK}
        return found

    def _proposal(self, proposal: Json) -> Json:
        if not isinstance(proposal, dict):
            return proposal
        return {
            **proposal,
            "arguments": self.raw(str(proposal.get("tool")), str(proposal.get("arguments", ""))),
        }

    def _tool(self, body: e.Body) -> str:
        tool = getattr(body, "tool", None)
        if isinstance(tool, str):
            return tool
        call = self._state.calls.get(getattr(body, "call", None))  # type: ignore[arg-type]  # None is no call
        return call.tool if call is not None else ""


def _root(path: str) -> str:
    """The parameter that a place such as `to[0].account` is within."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]


def _list(payload: Mapping[str, Json], key: str) -> list[Json]:
    found = payload.get(key)
    return found if isinstance(found, list) else []


def _masked(value: Json, names: frozenset[str]) -> Json:
    if isinstance(value, list):
        return [_masked(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    shown = value.get("name")
    if isinstance(shown, str) and shown in names and "value" in value:
        return {**value, "value": MASK}
    return {name: MASK if name in names else _masked(item, names) for name, item in value.items()}
