"""Owns the offline check that compiled tools[] and projected histories are what Anthropic's own types accept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from engine.adapters.wire.anthropic import anthropic_tools, to_anthropic
from engine.adapters.wire.profile import profile_of
from engine.adapters.wire.projection import to_openai
from engine.domain.messages import Message, ToolSchema


def check_tools(tools: Sequence[ToolSchema]) -> list[str]:
    """What the vendor's `ToolParam` and `InputSchemaTyped` do not accept of a contract, one line each. Loads
    `anthropic`."""
    native = anthropic_tools(tools)
    schemas = [tool["input_schema"] for tool in native]
    return _all_faults("tools", native) + _all_faults("input_schemas", schemas)


def check_history(messages: Sequence[Message], model: str = "anthropic/any") -> list[str]:
    """What the vendor's `TextBlockParam` and `MessageParam` do not accept of a history as it would be sent."""
    native = to_anthropic(to_openai(messages, model, profile_of(model)))
    return _all_faults("system", native.system) + _all_faults("messages", native.messages)


@cache
def _adapter(what: str) -> TypeAdapter[Any]:
    from anthropic.types import MessageParam, TextBlockParam, ToolParam
    from anthropic.types.tool_param import InputSchemaTyped

    entry: Any = {
        "tools": ToolParam,
        "input_schemas": InputSchemaTyped,
        "system": TextBlockParam,
        "messages": MessageParam,
    }[what]
    return TypeAdapter(entry)


def _all_faults(what: str, values: Sequence[object]) -> list[str]:
    adapter = _adapter(what)
    return [
        fault for place, value in enumerate(values) for fault in _faults(f"{what}[{place}]", adapter, value)
    ]


def _faults(where: str, adapter: TypeAdapter[Any], value: object) -> list[str]:
    try:
        _read_through(adapter.validate_python(value))
    except ValidationError as error:
        return [f"{where}{_path(fault['loc'])}: {fault['msg']}" for fault in error.errors(include_url=False)]
    return []


def _read_through(value: object) -> None:
    """The vendor declares content as Iterable, which pydantic checks only while it is read."""
    if isinstance(value, Mapping):
        for item in value.values():
            _read_through(item)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for item in value:
            _read_through(item)


def _path(loc: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
