"""Owns the projection of neutral messages to OpenAI chat form, the form that litellm takes for every provider.

Where a HostBlock goes: on the OpenAI wire it is a `system` message where it stands; everywhere else it joins the
one system part at the head (for Anthropic as a block of its own after the instructions, so that the instructions
stay a cache prefix). It is always labelled `[host]` and never sent in the user's name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from engine.adapters.wire.ids import wire_id
from engine.adapters.wire.names import wire_name
from engine.adapters.wire.parts import parts_for
from engine.adapters.wire.profile import Profile
from engine.domain.messages import (
    UNPARSED,
    AssistantTurn,
    CallResult,
    HostBlock,
    Instructions,
    Message,
    ToolSchema,
    UserInput,
)

Wire = dict[str, Any]
CACHE: Wire = {"type": "ephemeral"}
NOTHING_BEFORE = "[host]\nNo input of the user is shown here.\n[/host]"
NOTHING_AFTER = "[host]\nYour last response held no call; the user has said nothing since.\n[/host]"


def to_openai(messages: Sequence[Message], model: str, profile: Profile) -> list[Wire]:
    """The `messages` parameter for one request to `model` (a litellm id). Neutral messages are not changed."""
    head: list[str] = []
    host: list[str] = []
    rest: list[Wire] = []
    for message in messages:
        match message:
            case Instructions(text):
                head.append(text)
            case HostBlock(text) if profile.host_blocks == "head":
                host.append(_labelled(text))
            case HostBlock(text):
                rest.append({"role": "system", "content": _labelled(text)})
            case UserInput(text):
                rest.extend([{"role": "user", "content": text}] if text.strip() else [])
            case AssistantTurn():
                rest.extend(_assistant(message, model, profile))
            case CallResult():
                rest.append(_result(message, profile))
    if profile.closed_edges:
        rest = _close_edges(rest)
    if profile.cache_marks and rest:
        rest[-1]["cache_control"] = CACHE
    return _system(head, host, profile) + rest


def openai_tools(tools: Sequence[ToolSchema], profile: Profile) -> list[Wire]:
    """The `tools` parameter, in the order of the contract."""
    sent: list[Wire] = [
        {
            "type": "function",
            "function": {
                "name": wire_name(tool.name),
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools
    ]
    if profile.cache_marks and sent:
        sent[-1]["cache_control"] = CACHE
    return sent


def _labelled(text: str) -> str:
    """What the block quotes (a tool's message, an argument, a summary) cannot end it or begin another one."""
    quoted = text.replace("[host]", "(host)").replace("[/host]", "(/host)")
    return f"[host]\n{quoted}\n[/host]"


def _system(head: list[str], host: list[str], profile: Profile) -> list[Wire]:
    said = [text for text in head if text.strip()]
    if not said and not host:
        return []
    if not profile.cache_marks:
        return [{"role": "system", "content": "\n\n".join([*said, *host])}]
    blocks: list[Wire] = [{"type": "text", "text": text} for text in [*said, *host]]
    if said:
        blocks[len(said) - 1]["cache_control"] = CACHE
    return [{"role": "system", "content": blocks}]


def _assistant(turn: AssistantTurn, model: str, profile: Profile) -> list[Wire]:
    said: Wire = {"role": "assistant"}
    if turn.text.strip():
        said["content"] = turn.text
    if turn.calls:
        said["tool_calls"] = [
            {
                "id": wire_id(call.id, profile.ids),
                "type": "function",
                "function": {
                    "name": wire_name(call.tool),
                    "arguments": json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":")),
                },
            }
            for call in turn.calls
        ]
    if len(said) == 1:
        return []
    if not _altered(turn):
        parts_for(turn.parts, model).attach(said)
    return [said]


def _altered(turn: AssistantTurn) -> bool:
    """The Host shows something else than the model wrote: signed parts beside it would be refused."""
    return any(UNPARSED in call.arguments for call in turn.calls)


def _result(result: CallResult, profile: Profile) -> Wire:
    text = result.text if result.text.strip() else "(no text)"
    said = result.outcome in text  # litellm drops `is_error`, so the text has to say it
    shown = f"[error: {result.outcome}] {text}" if result.is_error and not said else text
    return {"role": "tool", "tool_call_id": wire_id(result.id, profile.ids), "content": shown}


def _close_edges(rest: list[Wire]) -> list[Wire]:
    """Some wires know no other voice at the edges than `user`; the label says that it is not the user's."""
    if not rest or rest[0]["role"] != "user":
        rest.insert(0, {"role": "user", "content": NOTHING_BEFORE})
    if rest[-1]["role"] == "assistant":
        rest.append({"role": "user", "content": NOTHING_AFTER})
    return rest
