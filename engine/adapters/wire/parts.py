"""Owns the opaque provider parts: kept with the model that made them, sent back verbatim to it or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from engine.domain.canonical import Json, NotJson, canonical

THINKING = "thinking_blocks"
REASONING = "reasoning_content"
CALL_FIELDS = "call_fields"


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that go back with one assistant message."""

    thinking: list[Json] = field(default_factory=list)
    reasoning: str | None = None
    call_fields: dict[int, Json] = field(default_factory=dict)
    """Place of the call in its response, from 0 -> the provider's own fields of that call."""

    def attach(self, message: dict[str, Any]) -> None:
        if self.thinking:
            message[THINKING] = self.thinking
        elif self.reasoning:
            message[REASONING] = self.reasoning
        for place, value in self.call_fields.items():
            if place < len(message.get("tool_calls", ())):
                message["tool_calls"][place]["provider_specific_fields"] = value


def opaque(
    model: str, thinking: Iterable[object], reasoning: object, calls: Iterable[object]
) -> tuple[Json, ...]:
    """The parts of a response as ModelResponse keeps them: `{model, field, value}`, with `at` for a call's fields.

    `model` is the litellm id that was asked. A part that is not storable byte for byte is left out.
    """
    found: list[dict[str, Any]] = [{"field": THINKING, "value": block} for block in thinking]
    if not found and isinstance(reasoning, str) and reasoning:
        found.append({"field": REASONING, "value": reasoning})
    found += [
        {"field": CALL_FIELDS, "at": place, "value": value}
        for place, value in enumerate(calls)
        if value is not None
    ]
    return tuple({"model": model, **part} for part in found if _keepable(part))


def parts_for(parts: Iterable[Json], model: str) -> Parts:
    """What of `parts` goes back to `model`."""
    thinking: list[Json] = []
    reasoning: str | None = None
    call_fields: dict[int, Json] = {}
    for part in parts:
        if not isinstance(part, dict) or part.get("model") != model:
            continue
        match part:
            case {"field": "thinking_blocks", "value": value}:
                thinking.append(value)
            case {"field": "reasoning_content", "value": str(text)}:
                reasoning = text
            case {"field": "call_fields", "at": int(place), "value": value}:
                call_fields[place] = value
    return Parts(thinking, reasoning, call_fields)


def _keepable(part: object) -> bool:
    try:
        canonical(part)
    except NotJson:
        return False
    return True
