"""Owns the neutral form of what a model is shown: a view over the log, before any provider's wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from engine.domain.canonical import Json, JsonObject
from engine.domain.events import StoredResult
from engine.domain.ids import CallId


@dataclass(frozen=True, slots=True)
class Instructions:
    """The one system part, at the head, rendered from the policy's prompt."""

    text: str


@dataclass(frozen=True, slots=True)
class UserInput:
    """A person's words, byte for byte."""

    text: str


@dataclass(frozen=True, slots=True)
class HostBlock:
    """What the Host says: projections, marks for omitted parts. Labelled as the Host's, never in the user's name."""

    text: str


UNPARSED = "_unparsed"
"""Key under which a call is shown whose arguments are no JSON object: what the Host had to change."""


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A proposal as the model is shown it again. `arguments` is a JSON object, always valid."""

    id: CallId
    tool: str
    arguments: dict[str, Json]


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    turn: int
    model: str
    """Producer of the opaque parts: they go back to the same model verbatim, or not at all."""
    text: str
    parts: tuple[Json, ...] = ()
    calls: tuple[ShownCall, ...] = ()


@dataclass(frozen=True, slots=True)
class CallResult:
    """The one result of one proposal, right after its AssistantTurn, in proposal order."""

    id: CallId
    tool: str
    outcome: str
    text: str
    """What the model reads."""
    is_error: bool = False
    value: StoredResult | None = None
    """The result itself, for scripted models that read it."""
    evidence: tuple[tuple[str, str, str], ...] = field(default=())
    """(handle, kind, id) of the evidence it brought."""


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """One entry of tools[], as the model sees it."""

    name: str
    description: str
    parameters: JsonObject


Message: TypeAlias = Instructions | UserInput | HostBlock | AssistantTurn | CallResult
