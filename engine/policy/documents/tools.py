"""Owns the shape of `tools/v1`: what a tool is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, StringConstraints, Tag
from pydantic import Field as Key

from engine.domain.canonical import Json
from engine.policy.documents.base import Exact, Part
from engine.policy.documents.types import FieldPart, ParamPart, text_or_part
from engine.policy.documents.values import (
    ConditionText,
    Duration,
    EffectName,
    FactPath,
    Id,
    Ident,
    ResultPath,
    Text,
    ToolName,
)

PythonHandlerText = Annotated[
    str,
    StringConstraints(
        pattern=r"^python:[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$"
    ),
]


class SourcePart(Part):
    called: ClassVar[str] = "a source"

    title: Text | None = None
    trust: Literal["trusted", "untrusted"] = "trusted"


class McpPart(Part):
    called: ClassVar[str] = "an MCP handler"

    mcp: Id
    tool: Text
    schema_sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None


class FigurePart(Part):
    called: ClassVar[str] = "a figure"

    type: Literal["money", "percent", "decimal", "int", "date"]
    at: ResultPath
    key: Ident | None = None
    currency: ResultPath | None = None


class EvidencePart(Part):
    called: ClassVar[str] = "evidence"

    kind: Ident
    id: ResultPath
    as_of: ResultPath | None = None
    spans: ResultPath | None = None
    figures: dict[Ident, FigurePart] = Key(default_factory=dict)


class CachePart(Part):
    called: ClassVar[str] = "a cache"
    exact_bad: ClassVar[Mapping[tuple[str, Any], Exact]] = {
        ("scope", "shared"): Exact(
            "W216", "a shared cache would hold data that belongs to one principal", "write `scope: run`"
        )
    }

    ttl: Duration
    key: list[FactPath]
    scope: Literal["run", "principal"] = "run"
    invalidated_by: list[EffectName] | None = None


class IdempotencyPart(Part):
    called: ClassVar[str] = "an idempotency key"

    key: list[FactPath]
    send_as: Annotated[str, StringConstraints(pattern=r"^header:[A-Za-z0-9-]+$")] | None = None
    window: Duration | None = None


class ReconcilePart(Part):
    called: ClassVar[str] = "reconcile"

    probe: ToolName | None = None
    args: dict[Ident, FactPath] = Key(default_factory=dict)
    confirms: ConditionText | None = None
    refutes: ConditionText | None = None
    manual: Text | None = None


class CompensatePart(Part):
    called: ClassVar[str] = "compensate"

    tool: ToolName
    args: dict[Ident, FactPath] = Key(default_factory=dict)
    on: list[Literal["run_failed", "run_cancelled", "run_finished"]] = Key(min_length=1)


class HoldPart(Part):
    called: ClassVar[str] = "a hold"

    ttl: Duration | None = None
    consumed_by: EffectName | None = None


class ToolPart(Part):
    called: ClassVar[str] = "a tool"
    placeholders: ClassVar[Mapping[str, Json]] = {"handler": "python:missing:missing"}

    kind: Literal["read", "write", "hybrid"]
    handler: Annotated[
        Annotated[PythonHandlerText, Tag("text")] | Annotated[McpPart, Tag("part")],
        Discriminator(text_or_part),
    ]
    exposed: Literal["model", "host"] = "model"
    narrow: bool = True
    source: Ident | None = None
    description: Annotated[str, Key(min_length=1, max_length=1024)] | None = None
    params: dict[Ident, ParamPart] = Key(default_factory=dict)
    result: dict[Ident, FieldPart] | None = None
    labels: list[Id] = Key(default_factory=list)
    egress: bool = False
    evidence: EvidencePart | None = None
    cache: CachePart | None = None
    effects: list[EffectName] | None = None
    idempotency: IdempotencyPart | None = None
    reconcile: ReconcilePart | None = None
    reversible: bool | None = None
    compensate: CompensatePart | None = None
    holds: HoldPart | None = None
    serialize_by: list[Ident] | None = None
    sensitive: list[Ident] = Key(default_factory=list)
    timeout: Duration | None = None
    retry: Literal["never", "known_not_executed", "same_key"] = "never"


class ToolsDocument(Part):
    called: ClassVar[str] = "a tools file"
    placeholders: ClassVar[Mapping[str, Json]] = {"id": "unknown", "tools": {}}

    agentctl: Literal["tools/v1"]
    id: Id
    sources: dict[Ident, SourcePart] = Key(default_factory=dict)
    tools: dict[ToolName, ToolPart]
