"""Owns the native Anthropic form of a projected history, as litellm makes it: for counting and for checks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from engine.adapters.wire.names import wire_name
from engine.adapters.wire.projection import Wire
from engine.domain.messages import ToolSchema


class AnthropicHistory(NamedTuple):
    system: list[Wire]
    messages: list[Wire]


def to_anthropic(messages: Sequence[Wire]) -> AnthropicHistory:
    """Translates the chat form that `to_openai` made: system parts apart, results as `tool_result` blocks,
    neighbours of one role joined."""
    system: list[Wire] = []
    joined: list[Wire] = []
    for message in messages:
        if message["role"] == "system":
            system.extend(_text_blocks(message["content"]))
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        if not joined or joined[-1]["role"] != role:
            joined.append({"role": role, "content": []})
        joined[-1]["content"].extend(_blocks(message))
    return AnthropicHistory(system, joined)


def anthropic_tools(tools: Sequence[ToolSchema]) -> list[Wire]:
    return [
        {"name": wire_name(tool.name), "description": tool.description, "input_schema": tool.parameters}
        for tool in tools
    ]


def _blocks(message: Wire) -> list[Wire]:
    if message["role"] == "assistant":
        return _assistant_blocks(message)
    if message["role"] == "tool":
        block: Wire = {
            "type": "tool_result",
            "tool_use_id": message["tool_call_id"],
            "content": message["content"],
        }
    else:
        block = {"type": "text", "text": message["content"]}
    if "cache_control" in message:
        block["cache_control"] = message["cache_control"]
    return [block]


def _assistant_blocks(message: Wire) -> list[Wire]:
    blocks: list[Wire] = list(message.get("thinking_blocks", ()))
    blocks.extend(_text_blocks(message.get("content")))
    for call in message.get("tool_calls", ()):
        function = call["function"]
        blocks.append(
            {
                "type": "tool_use",
                "id": call["id"],
                "name": function["name"],
                "input": json.loads(function["arguments"]),
            }
        )
    return blocks


def _text_blocks(content: Any) -> list[Wire]:
    if isinstance(content, list):
        return list(content)
    return [{"type": "text", "text": content}] if content else []
