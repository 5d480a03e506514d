"""Owns how a tool as written becomes a ToolSpec."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from engine.domain.canonical import NotJson, digest_of
from engine.domain.policy import (
    CacheSpec,
    Compensate,
    EvidenceSpec,
    Figure,
    Handler,
    Hold,
    Idempotency,
    Kind,
    McpHandler,
    Param,
    PythonHandler,
    Reconcile,
    Retry,
    ToolSpec,
)
from engine.policy.documents.tools import CachePart, EvidencePart, IdempotencyPart, ReconcilePart, ToolPart
from engine.policy.documents.types import ParamPart, arg_class, field_type, value_type
from engine.policy.model import Model
from engine.policy.nodes import data

DEFAULT_TIMEOUT: Final = timedelta(seconds=60)


def tool_spec(model: Model, name: str, part: ToolPart) -> ToolSpec:
    compensate, holds = part.compensate, part.holds
    return ToolSpec(
        name=name,
        kind=Kind(part.kind),
        handler=_handler(part),
        exposed=part.exposed,
        narrow=part.narrow,
        source=part.source,
        description=part.description or "",
        params={key: _param(key, param) for key, param in part.params.items()},
        result={key: field_type(field) for key, field in (part.result or {}).items()},
        labels=frozenset(part.labels),
        egress=part.egress,
        evidence=_evidence(part.evidence) if part.evidence else None,
        cache=_cache(part.cache) if part.cache and part.kind == "read" else None,
        effects=tuple(part.effects or ()),
        idempotency=_idempotency(part.idempotency) if part.idempotency else None,
        reconcile=_reconcile(model, part.reconcile) if part.reconcile else None,
        reversible=bool(part.reversible),
        compensate=Compensate(compensate.tool, dict(compensate.args), frozenset(compensate.on))
        if compensate
        else None,
        holds=Hold(holds.ttl, holds.consumed_by) if holds else None,
        serialize_by=None if part.serialize_by is None else tuple(part.serialize_by),
        sensitive=frozenset(part.sensitive),
        timeout=part.timeout or DEFAULT_TIMEOUT,
        retry=Retry(part.retry),
        digest=_digest(part),
        place=part.here,
    )


def _digest(part: ToolPart) -> str:
    try:
        return digest_of(data(part.node))
    except NotJson:
        return ""


def _handler(part: ToolPart) -> Handler:
    if isinstance(part.handler, str):
        _, module, function = part.handler.split(":")
        return PythonHandler(module, function)
    return McpHandler(part.handler.mcp, part.handler.tool, part.handler.schema_sha256)


def _param(name: str, part: ParamPart) -> Param:
    type_ = value_type(part)
    return Param(name, type_, part.bind, part.required, arg_class(part, type_), part.description, part.here)


def _evidence(part: EvidencePart) -> EvidenceSpec:
    figures = tuple(
        Figure(name, figure.type, figure.at, figure.key, figure.currency)
        for name, figure in part.figures.items()
    )
    return EvidenceSpec(part.kind, part.id, part.as_of, part.spans, figures)


def _cache(part: CachePart) -> CacheSpec:
    invalidated = None if part.invalidated_by is None else tuple(part.invalidated_by)
    return CacheSpec(part.ttl, tuple(part.key), part.scope, invalidated)


def _idempotency(part: IdempotencyPart) -> Idempotency:
    return Idempotency(tuple(part.key), part.send_as, part.window)


def _reconcile(model: Model, part: ReconcilePart) -> Reconcile:
    return Reconcile(
        part.probe,
        dict(part.args),
        model.condition(part, "confirms"),
        model.condition(part, "refutes"),
        part.manual,
    )
