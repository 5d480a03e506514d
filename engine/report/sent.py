"""Owns how the request of one turn is shown: every part with its tokens, then what was left out and why."""

from __future__ import annotations

from collections.abc import Sequence

from engine.domain.canonical import Json, JsonObject
from engine.domain.diagnostics import many
from engine.domain.messages import AssistantTurn, CallResult, HostBlock, Instructions, Message, UserInput
from engine.report.words import PLAIN, Style, safe
from engine.runtime.sent import Sent


def sent_lines(sent: Sent, style: Style = PLAIN) -> list[str]:
    start = sent.start
    head = f"turn {start.turn}, attempt {start.attempt}: {start.model}, contract {start.contract[:12]}"
    lines = [style.strong(head)]
    for message, tokens in zip(sent.messages, sent.tokens, strict=True):
        lines += ["", style.strong(f"-- {_title(message)} (~{tokens:,} tokens)"), *_body(message)]
    lines += ["", f"{many(len(sent.messages), 'part')}, about {sum(sent.tokens):,} tokens, tools[] apart"]
    if sent.omissions:
        lines += ["", style.strong("Left out")]
        lines += [f"  {each.what}: {each.why} (~{each.tokens:,} tokens saved)" for each in sent.omissions]
    return lines


def sent_json(sent: Sent, wire: Sequence[JsonObject]) -> JsonObject:
    """`wire` is the same as it goes to the provider."""
    return {
        "schema": "agentctl.context/v1",
        "run": str(sent.attempt.run),
        "turn": sent.start.turn,
        "attempt": sent.start.attempt,
        "model": sent.start.model,
        "contract": sent.start.contract,
        "seq": sent.attempt.seq,
        "parts": [
            {"part": _title(message), "tokens": tokens, "text": "\n".join(_body(message, raw=True))}
            for message, tokens in zip(sent.messages, sent.tokens, strict=True)
        ],
        "tokens": sum(sent.tokens),
        "left_out": [{"part": each.what, "why": each.why, "tokens": each.tokens} for each in sent.omissions],
        "messages": list[Json](wire),
    }


def _title(message: Message) -> str:
    match message:
        case Instructions():
            return "instructions"
        case UserInput():
            return "user input"
        case HostBlock():
            return "the Host"
        case AssistantTurn(turn=turn):
            return f"the model, turn {turn}"
        case CallResult(id=call, tool=tool):
            return f"result of {call} {tool}"


def _body(message: Message, *, raw: bool = False) -> list[str]:
    lines = [message.text] if message.text else []
    if isinstance(message, AssistantTurn):
        lines += [f"call {call.id} {call.tool} {_json(call.arguments)}" for call in message.calls]
        lines += [f"({many(len(message.parts), 'opaque part')} of {message.model})"] if message.parts else []
    return lines if raw else [safe(line) for line in lines]


def _json(value: Json) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
