"""Owns the small builders that the tests of the adapters share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.domain.diagnostics import Location
from engine.domain.events import StoredResult
from engine.domain.ids import CallId, RunId
from engine.domain.messages import CallResult, Message, ToolSchema, UserInput
from engine.domain.policy import Handler, Kind, ModelUse, Param, PythonHandler, Retry, ToolSpec
from engine.ports import ModelRequest, ToolRequest

RUN = RunId("r0000000000000001")
NOW = datetime(2026, 6, 30, 12, tzinfo=UTC)
HERE = Location("x.tools.yaml", 1, 1)
STOCK = ToolSchema(
    "get_stock", "How much is there.", {"type": "object", "properties": {}, "additionalProperties": False}
)


def request(
    *messages: Message,
    model: str = "scripted/x.yaml",
    tools: Sequence[ToolSchema] = (STOCK,),
    turn: int = 1,
    attempt: int = 1,
    **use: Any,
) -> ModelRequest:
    return ModelRequest(
        run=RUN,
        turn=turn,
        attempt=attempt,
        model=ModelUse(model, **use),
        messages=messages or (UserInput("How many?"),),
        tools=tools,
        contract="d",
        results=lambda stored: stored.value,
    )


def result(
    turn: int,
    ordinal: int,
    tool: str,
    value: Any,
    *evidence: tuple[str, str, str],
    outcome: str = "confirmed",
) -> CallResult:
    return CallResult(
        CallId(turn, ordinal), tool, outcome, str(value), value=StoredResult(value=value), evidence=evidence
    )


def spec(
    name: str = "get_stock",
    handler: Handler | None = None,
    params: Mapping[str, bool] | None = None,
    timeout: float = 5.0,
) -> ToolSpec:
    """A read with text parameters; `params` says which are required."""
    from engine.domain.types import TypeName, ValueType

    text = ValueType(TypeName.TEXT)
    return ToolSpec(
        name=name,
        kind=Kind.READ,
        handler=handler or PythonHandler("stock_tools", name),
        exposed="model",
        narrow=True,
        source=None,
        description="d",
        params={
            key: Param(key, text, None, required, None, None, HERE)
            for key, required in (params or {}).items()
        },
        result={},
        labels=frozenset(),
        egress=False,
        evidence=None,
        cache=None,
        effects=(),
        idempotency=None,
        reconcile=None,
        reversible=False,
        compensate=None,
        holds=None,
        serialize_by=None,
        sensitive=frozenset(),
        timeout=timedelta(seconds=timeout),
        retry=Retry.NEVER,
        digest="d",
        place=HERE,
    )


def dispatch(of: ToolSpec, **args: Any) -> ToolRequest:
    return ToolRequest(RUN, CallId(3, 1), of, args, NOW, idempotency_key="key-1", attempt=2)
