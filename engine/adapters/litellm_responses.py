"""Owns the reading of what litellm returns, whole or in chunks, into one closed response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from engine.adapters.wire.names import ToolNames
from engine.adapters.wire.parts import opaque
from engine.domain.canonical import clean_text
from engine.domain.events import Usage
from engine.ports import AttemptFailed, ModelResponse, ProposedCall

Finish = Literal["stop", "tool_calls", "length", "filter", "refusal"]
_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "filter",
    "refusal": "refusal",
}
_PROVIDER_RAN = (
    "server_tool_calls", "web_search_results", "web_search_calls", "tool_results", "code_interpreter_results"
)  # fmt: skip
"""Fields in which litellm reports tools that the provider ran by itself."""
_MAX_TOKENS = 10**12
"""A count above it is nonsense; it still exceeds every budget."""
_MISSHAPEN = (AttributeError, TypeError, LookupError, ValueError, ArithmeticError)
"""What reading raises where a provider put something else than litellm's types promise."""


@dataclass
class CollectedCall:
    name: str = ""
    arguments: str = ""
    id: str | None = None
    fields: object = None


@dataclass
class Collected:
    """A response as far as it has come."""

    text: str = ""
    calls: list[CollectedCall] = field(default_factory=list)
    thinking: list[object] = field(default_factory=list)
    reasoning: str = ""
    refusal: bool = False
    finish: str | None = None
    model: str | None = None
    request_id: str | None = None
    usage: Usage | None = None
    """None: the provider gave none."""
    raw_usage: object = None
    ran_itself: bool = False


@contextmanager
def reading() -> Iterator[None]:
    """A response that cannot be read is a failed attempt that may be tried again, not a fault of ours."""
    try:
        yield
    except AttemptFailed:
        raise
    except _MISSHAPEN as error:
        message = f"the response is not of the shape that it should have: {type(error).__name__}"
        raise AttemptFailed("invalid_response", message) from error


def whole_message(answer: Any) -> Collected:
    """Reads a response that came in one piece. Raises AttemptFailed for one without a message."""
    if not answer.choices:
        raise AttemptFailed("invalid_response", "the response holds no choice")
    choice = answer.choices[0]
    message = choice.message
    got = Collected(text=message.content or "", finish=choice.finish_reason, model=_text(answer.model))
    for call in getattr(message, "tool_calls", None) or ():
        function = call.function
        fields = getattr(call, "provider_specific_fields", None)
        got.calls.append(
            CollectedCall(_text(function.name), function.arguments or "", _text(call.id) or None, fields)
        )
    got.thinking = list(getattr(message, "thinking_blocks", None) or ())
    got.reasoning = getattr(message, "reasoning_content", None) or ""
    _note_message(got, message)
    _note_usage(got, getattr(answer, "usage", None))
    got.request_id = _request_id(answer)
    return got


async def collect(chunks: AsyncIterator[Any], on_text: Callable[[str], None]) -> Collected:
    """Reads a stream to its end. Raises AttemptFailed where it ends before it is closed."""
    got = Collected()
    assembly = _Assembly(got)
    async for chunk in chunks:
        got.model = _text(getattr(chunk, "model", None)) or got.model
        _note_usage(got, getattr(chunk, "usage", None))
        for choice in list(chunk.choices or ())[:1]:
            assembly.add(choice.delta, on_text)
            got.finish = choice.finish_reason or got.finish
    got.request_id = _request_id(chunks)
    if got.usage is not None and not _usage_was_sent(chunks):
        got.usage = got.usage.model_copy(update={"estimated": True})
    silent = not (got.text or got.calls or got.thinking or got.reasoning or got.usage)
    if got.finish is None or silent:
        raise AttemptFailed("cut", "the stream ended before the response was closed", usage=got.usage)
    return got


def closed_response(
    got: Collected, asked: str, names: ToolNames, usage: Usage, cost: Decimal | None
) -> ModelResponse:
    """The neutral form. Raises AttemptFailed for an unknown finish and for tools that the provider ran itself."""
    if got.ran_itself:
        raise AttemptFailed(
            "invalid_response",
            "the response holds the result of a tool that the provider ran itself, which the Host could not record",
            remedy="use a model without hosted tools; web search and code belong in a tool spec of your own",
            usage=usage,
            cost_usd=cost,
        )
    text, altered = clean_text(got.text)
    parts = opaque(asked, got.thinking, got.reasoning, (call.fields for call in got.calls))
    return ModelResponse(
        model=got.model or asked,
        text=text,
        parts=() if altered else parts,
        calls=tuple(ProposedCall(names.host_name(call.name), call.arguments, call.id) for call in got.calls),
        finish=_finish(got, usage, cost),
        usage=usage,
        cost_usd=cost,
        request_id=got.request_id,
    )


class _Assembly:
    """Puts streamed deltas together. Calls are told apart by index *and* id: some servers give every call index 0."""

    def __init__(self, got: Collected) -> None:
        self._got = got
        self._by_id: dict[tuple[int, str], CollectedCall] = {}
        self._newest: dict[int, CollectedCall] = {}
        """Index -> the call that pieces without an id belong to."""

    def add(self, delta: Any, on_text: Callable[[str], None]) -> None:
        got = self._got
        text = getattr(delta, "content", None)
        if text:
            got.text += text
            on_text(clean_text(text)[0])
        for entry in getattr(delta, "tool_calls", None) or ():
            self._call(entry)
        for block in getattr(delta, "thinking_blocks", None) or ():
            _add_thinking(got.thinking, block)
        got.reasoning += getattr(delta, "reasoning_content", None) or ""
        _note_message(got, delta)

    def _call(self, entry: Any) -> None:
        call = self._target(entry)
        function = entry.function
        call.id = call.id or _text(entry.id) or None
        if function is not None:
            call.name = call.name or _text(function.name)
            call.arguments += function.arguments or ""
        call.fields = getattr(entry, "provider_specific_fields", None) or call.fields

    def _target(self, entry: Any) -> CollectedCall:
        index = entry.index if isinstance(entry.index, int) else 0
        call = self._by_id.get((index, entry.id)) if entry.id else self._newest.get(index)
        if call is None:
            call = CollectedCall()
            self._got.calls.append(call)
        self._newest[index] = call
        if entry.id:
            self._by_id[index, entry.id] = call
        return call


def _add_thinking(blocks: list[object], block: Any) -> None:
    """A thinking block comes in pieces: text after text, then the signature that closes it.

    litellm adds an `index` to each piece that the provider's block does not have; it must not go back.
    """
    if not isinstance(block, dict):
        return
    piece = {key: value for key, value in block.items() if key != "index"}
    last = blocks[-1] if blocks else None
    if not _continues(last, piece):
        blocks.append(piece)
        return
    assert isinstance(last, dict)
    last["thinking"] = (last.get("thinking") or "") + (piece.get("thinking") or "")
    if piece.get("signature"):
        last["signature"] = piece["signature"]


def _continues(last: object, piece: Mapping[str, object]) -> bool:
    if not isinstance(last, dict) or last.get("signature"):
        return False
    return last.get("type") == piece.get("type") == "thinking"


def _note_message(got: Collected, message: Any) -> None:
    fields = getattr(message, "provider_specific_fields", None) or {}
    refused = getattr(message, "refusal", None) or fields.get("stop_reason") == "refusal"
    got.refusal = got.refusal or bool(refused)
    ran = any(fields.get(name) for name in _PROVIDER_RAN) or bool(getattr(message, "annotations", None))
    calls = getattr(message, "tool_calls", None) or ()
    ran = ran or any(str(call.id or "").startswith("srvtoolu_") for call in calls)
    got.ran_itself = got.ran_itself or ran


def _note_usage(got: Collected, usage: Any) -> None:
    """A count below zero is no count: it would give tokens and money back."""
    if usage is None or not (usage.prompt_tokens or usage.completion_tokens):
        return
    if min(usage.prompt_tokens or 0, usage.completion_tokens or 0) < 0:
        return
    asked = getattr(usage, "prompt_tokens_details", None)
    said = getattr(usage, "completion_tokens_details", None)
    got.raw_usage = usage
    got.usage = Usage(
        input_tokens=_count(usage.prompt_tokens),
        output_tokens=_count(usage.completion_tokens),
        cached_tokens=min(_count(getattr(asked, "cached_tokens", None)), _count(usage.prompt_tokens)),
        reasoning_tokens=_count(getattr(said, "reasoning_tokens", None)),
    )
    hosted = getattr(usage, "server_tool_use", None)
    if hosted is not None:
        counts = hosted if isinstance(hosted, Mapping) else vars(hosted)
        got.ran_itself = got.ran_itself or any(isinstance(n, int) and n > 0 for n in counts.values())


def _count(tokens: int | None) -> int:
    """Tokens as the provider counts them."""
    return max(0, min(tokens or 0, _MAX_TOKENS))


def _text(value: object) -> str:
    """Names and ids are data, whatever their type: some servers number their calls."""
    if value is None:
        return ""
    return clean_text(value if isinstance(value, str) else str(value))[0]


def _usage_was_sent(chunks: Any) -> bool:
    """litellm counts by itself where a stream brings no usage; the chunks it received tell which it was."""
    received = getattr(chunks, "chunks", None)
    if received is None:
        return False
    return any(getattr(chunk, "usage", None) is not None for chunk in received)


def _request_id(answer: Any) -> str | None:
    hidden = getattr(answer, "_hidden_params", None) or {}
    headers = hidden.get("additional_headers") or {}
    for name in ("request-id", "x-request-id", "llm_provider-request-id", "llm_provider-x-request-id"):
        if headers.get(name):
            return str(headers[name])
    return _text(getattr(answer, "id", None)) or None


def _finish(got: Collected, usage: Usage, cost: Decimal | None) -> Finish:
    if got.refusal:
        return "refusal"
    finish = _FINISH.get(got.finish or "")
    if finish is None:
        message = f"the response ended with the unknown reason `{str(got.finish)[:40]}`"
        raise AttemptFailed("invalid_response", message, usage=usage, cost_usd=cost)
    if finish in ("stop", "tool_calls"):
        return "tool_calls" if got.calls else "stop"
    return finish
