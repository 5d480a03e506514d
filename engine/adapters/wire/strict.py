"""Owns the strict provider: what the strictest API accepts as a history, as data about what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_PLAIN_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}\Z")
_NINE = re.compile(r"[a-zA-Z0-9]{9}\Z")


def validate_openai(messages: Sequence[Mapping[str, Any]], *, nine_ids: bool = False) -> list[str]:
    """Faults of an OpenAI chat history, one line each; empty when a strict provider takes it.

    `nine_ids` asks for Mistral's ids: exactly nine alphanumerics.
    """
    faults: list[str] = []
    seen: set[str] = set()
    waiting: list[str] = []
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        role = message.get("role")
        if role == "tool":
            faults += _answered(where, message, waiting)
            continue
        if waiting:
            faults.append(f"{where}: no result for {waiting} right after the calls")
            waiting = []
        if role == "assistant":
            waiting = [str(call.get("id")) for call in message.get("tool_calls") or ()]
            faults += _assistant(where, message) + _ids(
                where, waiting, seen, _NINE if nine_ids else _PLAIN_ID
            )
        elif role not in ("system", "user"):
            faults.append(f"{where}: role `{role}`")
        elif not _says_something(message.get("content")):
            faults.append(f"{where}: empty content")
    if waiting:
        faults.append(f"end: no result for {waiting}")
    return faults + _encodable(messages)


def validate_anthropic(
    system: Sequence[Mapping[str, Any]] | str, messages: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Faults of an Anthropic history, one line each; empty when a strict provider takes it."""
    parts = [{"text": system}] if isinstance(system, str) else system
    faults = [f"system[{place}]: empty" for place, block in enumerate(parts) if not _says_something([block])]
    if not messages or messages[0].get("role") != "user":
        faults.append("messages[0]: not the user")
    if messages and messages[-1].get("role") != "user":
        faults.append("end: the last message is not the user's side")
    seen: set[str] = set()
    waiting: list[str] = []
    for place, message in enumerate(messages):
        where = f"messages[{place}]"
        if place and message.get("role") == messages[place - 1].get("role"):
            faults.append(f"{where}: the role twice in a row")
        blocks = message.get("content") or []
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        faults += _block_faults(where, message.get("role"), blocks)
        faults += _results_first(where, blocks, waiting)
        waiting = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
        faults += _ids(where, waiting, seen, _PLAIN_ID)
    if waiting:
        faults.append(f"end: no result for {waiting}")
    return faults + _encodable([system, messages])


def _answered(where: str, message: Mapping[str, Any], waiting: list[str]) -> list[str]:
    faults = [] if _says_something(message.get("content")) else [f"{where}: empty result"]
    answered = message.get("tool_call_id")
    if answered in waiting:
        waiting.remove(answered)
        return faults
    return [*faults, f"{where}: a result for `{answered}`, which no open call has"]


def _assistant(where: str, message: Mapping[str, Any]) -> list[str]:
    calls = message.get("tool_calls") or ()
    faults = [fault for call in calls for fault in _call(where, call)]
    content = message.get("content")
    if not calls and not _says_something(content):
        faults.append(f"{where}: an assistant message without content")
    if content is not None and not _says_something(content):
        faults.append(f"{where}: empty content")
    return faults


def _call(where: str, call: Mapping[str, Any]) -> list[str]:
    function = call.get("function") or {}
    faults = [] if call.get("type") == "function" else [f"{where}: a call that is no function"]
    if not _NAME.match(str(function.get("name"))):
        faults.append(f"{where}: the name `{function.get('name')}`")
    try:
        arguments = json.loads(function.get("arguments") or "")
    except ValueError:
        return [*faults, f"{where}: arguments that are not JSON"]
    return faults if isinstance(arguments, dict) else [*faults, f"{where}: arguments that are no object"]


def _ids(where: str, ids: Iterable[str], seen: set[str], legal: re.Pattern[str]) -> list[str]:
    faults = []
    for one in ids:
        if one in seen:
            faults.append(f"{where}: the id `{one}` twice")
        if not legal.match(one):
            faults.append(f"{where}: the id `{one}` is not legal")
        seen.add(one)
    return faults


_BLOCKS = {
    "user": {"text", "tool_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
}


def _block_faults(where: str, role: object, blocks: Sequence[Mapping[str, Any]]) -> list[str]:
    faults = [] if blocks else [f"{where}: no content"]
    for block in blocks:
        kind = block.get("type")
        if kind not in _BLOCKS.get(str(role), ()):
            faults.append(f"{where}: a `{kind}` block of the role `{role}`")
        elif kind == "text" and not _says_something([block]):
            faults.append(f"{where}: an empty text block")
        elif kind == "tool_result" and not _says_something(block.get("content")):
            faults.append(f"{where}: an empty result")
        elif kind == "tool_use" and not (
            isinstance(block.get("input"), dict) and _NAME.match(str(block.get("name")))
        ):
            faults.append(f"{where}: a call with an illegal name or input")
    if blocks and blocks[-1].get("type") in ("thinking", "redacted_thinking"):
        faults.append(f"{where}: ends with thinking")
    return faults


def _results_first(where: str, blocks: Sequence[Mapping[str, Any]], waiting: list[str]) -> list[str]:
    """Each open call has exactly one result, and the results come before any text."""
    answered = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
    faults = []
    if sorted(map(str, answered)) != sorted(waiting):
        faults.append(f"{where}: results for {answered}, calls {waiting}")
    if any(block.get("type") != "tool_result" for block in blocks[: len(answered)]):
        faults.append(f"{where}: text before a result")
    return faults


def _says_something(content: Any) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    if isinstance(content, list):
        return bool(content) and all(str(block.get("text") or "").strip() for block in content)
    return False


def _encodable(value: Any) -> list[str]:
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, TypeError) as error:
        return [f"not JSON in UTF-8: {type(error).__name__}"]
    return []
