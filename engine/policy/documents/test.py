"""Owns the shape of `test/v1`: scripted proposals and what is expected of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict
from pydantic import Field as Key

from engine.domain.canonical import Json
from engine.policy.documents.base import Part
from engine.policy.documents.values import Duration, FilePath, Id, Ident, Text, ToolName

Outcome: TypeAlias = Literal["confirmed", "failed", "unknown", "not_executed"]
CallOutcome: TypeAlias = Literal[
    "confirmed", "failed", "unknown", "not_executed", "rejected", "held", "fenced", "granted", "committed"
]
RunStatus: TypeAlias = Literal[
    "proposing", "awaiting_approval", "awaiting_input", "awaiting_reconciliation",
    "completed", "failed", "cancelled", "expired",
]  # fmt: skip
SourceState: TypeAlias = Literal["available", "degraded", "unavailable", "unauthorized"]


class PersonPart(Part):
    """`id`, `roles`, and the declared attributes by their names."""

    called: ClassVar[str] = "a principal"
    model_config = ConfigDict(extra="allow")

    id: Text
    roles: list[Id]


class GivenPart(Part):
    called: ClassVar[str] = "given"

    principal: PersonPart
    task: dict[Ident, Any] = Key(default_factory=dict)
    state: dict[Ident, dict[Ident, Any]] = Key(default_factory=dict)
    grant: dict[Ident, dict[Ident, Any]] = Key(default_factory=dict)
    sources: dict[Ident, SourceState] = Key(default_factory=dict)
    now: Text | None = None


class LatePart(Part):
    called: ClassVar[str] = "late"

    after: Duration
    outcome: Outcome
    result: Any = None


class ProposePart(Part):
    called: ClassVar[str] = "a proposal"
    blank_means: ClassVar[frozenset[str]] = frozenset({"args", "result"})

    call: ToolName
    args: Any = None
    """What the model sends: usually a mapping; anything else tests how bad arguments are refused."""
    result: Any = None
    outcome: Outcome = "confirmed"
    late: LatePart | None = None


class DecisionPart(Part):
    called: ClassVar[str] = "a decision"

    call: ToolName
    by: PersonPart


class ExpectedCallPart(Part):
    called: ClassVar[str] = "an expected call"

    outcome: CallOutcome | None = None
    rule: Id | None = None
    for_: list[Id] | None = Key(default=None, alias="for")
    why: Text | None = None


class ExpectPart(Part):
    called: ClassVar[str] = "expect"

    shows: list[ToolName] | None = None
    hides: list[ToolName] | None = None
    calls: list[ExpectedCallPart] | None = None
    run: RunStatus | None = None


class TurnPart(Part):
    called: ClassVar[str] = "a turn"

    advance: Duration | None = None
    source: dict[Ident, SourceState] | None = None
    set: dict[str, Any] | None = None
    reply: Text | None = None
    approve: DecisionPart | None = None
    refuse: DecisionPart | None = None
    propose: list[ProposePart] | None = None
    expect: ExpectPart | None = None


class CasePart(Part):
    called: ClassVar[str] = "a case"
    placeholders: ClassVar[Mapping[str, Json]] = {"id": "unknown"}

    id: Id
    given: GivenPart
    turns: list[TurnPart] = Key(min_length=1)


class TestDocument(Part):
    __test__ = False
    called: ClassVar[str] = "a test file"
    placeholders: ClassVar[Mapping[str, Json]] = {"cases": []}

    agentctl: Literal["test/v1"]
    policy: FilePath
    cases: list[CasePart]
