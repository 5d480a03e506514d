"""Owns the shape of a facts file: what `why` and `contract` are to take for given."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field as Key

from engine.policy.documents.base import Part
from engine.policy.documents.test import Outcome, PersonPart, SourceState
from engine.policy.documents.values import Ident, Text, ToolName


class PastCallPart(Part):
    called: ClassVar[str] = "a past call"
    blank_means: ClassVar[frozenset[str]] = frozenset({"result"})

    call: ToolName
    args: dict[Ident, Any] = Key(default_factory=dict)
    """Bound ones are filled in from the facts where they are not stated."""
    outcome: Outcome = "confirmed"
    result: Any = None


class FactsDocument(Part):
    """The keys of `given` in a test, all of them optional, and the calls that went before."""

    called: ClassVar[str] = "a facts file"

    principal: PersonPart | None = None
    task: dict[Ident, Any] = Key(default_factory=dict)
    state: dict[Ident, dict[Ident, Any]] = Key(default_factory=dict)
    grant: dict[Ident, dict[Ident, Any]] = Key(default_factory=dict)
    sources: dict[Ident, SourceState] = Key(default_factory=dict)
    now: Text | None = None
    history: list[PastCallPart] = Key(default_factory=list)
