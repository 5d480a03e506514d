"""Owns the malformed-wire server: a provider that answers as badly as it is told and judges every request strictly."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from engine.adapters.wire.strict import validate_anthropic, validate_openai

THINKING = {"type": "thinking", "thinking": " odd \n white space, é ", "signature": "sig=="}
ODD_ARGUMENTS = (
    "", "   ", "null", "[]", "3", '"x"', "true", "{}", "{'item':'x'}",
    '{"item":"x"} trailing', '{"item":"x"}{"item":"y"}',
    '{"item":"x"', '{"item":', "{", "}", '"{\\"item\\":\\"x\\"}"', '"\\"{\\\\\\"item\\\\\\":1}\\""', '{"item":NaN}',
    '{"item":Infinity}', '{"item":1e400}', '{"item":"x","item":"y"}', '{"item":"\\ud800"}', '{"\\ud800":1}',
    '{"item":' + "9" * 5000 + "}", '{"item":"x","count":2512292042121000001}',
    "[" * 3000, '{"a":' * 200 + "1" + "}" * 200,
    '{"item":"' + "x" * 300_000 + '"}', '{"item":"x","extra":1}', '{"item":null}', '{"item":["x"]}',
    '{"item":"x","count":"2"}',
    '{"item":"x","count":true}', '{"item":"x","count":1.5}', '{"item":"\\u0000"}', "\ufeff{}",
    '{"item":"x",}', "item=x",
)  # fmt: skip
ODD_NAMES = (
    "",
    " get_stock",
    "Get_Stock",
    "x" * 300,
    "get_stock\u2024",
    "functions.get_stock",
    "get stock",
    "finish()",
)
GOOD_NAMES = ("get_stock", "list_items", "order", "reserve")
ODD_IDS = (None, "", "same", "same", "x" * 200, "toolu_1:2/3", "ü")
FINISHES = ("stop", "tool_calls", "length", "content_filter")
STOPS = ("end_turn", "tool_use", "max_tokens", "refusal", "stop_sequence", "pause_turn")


@dataclass(frozen=True)
class Bad:
    """One answer. `cut` is where its body breaks off, in hundredths; None: it is whole."""

    kind: str
    body: bytes
    type: str = "application/json"
    status: int = 200
    cut: int | None = None


@dataclass
class Malformed:
    """Asks `answer(number, body)` for each request, and keeps what a strict provider would have refused."""

    url: str
    answer: Callable[[int, dict[str, Any]], Bad]
    faults: list[str] = field(default_factory=list)
    requests: int = 0
    kinds: list[str] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, path: str, raw: bytes) -> Bad:
        body = json.loads(raw)
        wrong = judged(path, body)
        with self.lock:
            self.requests += 1
            self.last = body
            self.faults += [f"request {self.requests} after {self.kinds[-1:]}: {fault}" for fault in wrong]
            bad = self.answer(self.requests, body)
            self.kinds.append(bad.kind)
        return bad


def judged(path: str, body: dict[str, Any]) -> list[str]:
    """What a strict provider refuses of a request, by the wire that its path names."""
    if path.endswith("/messages"):
        return validate_anthropic(body.get("system", []), body["messages"])
    return validate_openai(body["messages"])


@contextmanager
def malformed(answer: Callable[[int, dict[str, Any]], Bad]) -> Iterator[Malformed]:
    """A running server, on both wires."""
    state = Malformed("", answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            _send(self, state.take(self.path, raw))

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _send(handler: BaseHTTPRequestHandler, bad: Bad) -> None:
    handler.send_response(bad.status)
    handler.send_header("content-type", bad.type)
    handler.send_header("content-length", str(len(bad.body)))
    handler.end_headers()
    sent = bad.body if bad.cut is None else bad.body[: len(bad.body) * bad.cut // 100]
    try:
        handler.wfile.write(sent)
        handler.wfile.flush()
    except OSError:
        handler.close_connection = True
    handler.close_connection = handler.close_connection or bad.cut is not None


# --- what is said ------------------------------------------------------------------------------------------


@dataclass
class Said:
    """A response in no provider's form. `calls` are `(name, raw arguments, id)`."""

    text: str | None = None
    calls: Sequence[tuple[str | None, str | None, str | None]] = ()
    finish: str | None = "tool_calls"
    thinking: bool = False
    refusal: str | None = None
    melt: bool = False
    """Every streamed call has index 0."""
    usage: bool = True


def openai(said: Said, streamed: bool, kind: str = "", cut: int | None = None) -> Bad:
    body = _openai_stream(said) if streamed else _openai_whole(said)
    return Bad(kind, body, "text/event-stream" if streamed else "application/json", cut=cut)


def anthropic(said: Said, streamed: bool, kind: str = "", cut: int | None = None) -> Bad:
    body = _anthropic_stream(said) if streamed else _anthropic_whole(said)
    return Bad(kind, body, "text/event-stream" if streamed else "application/json", cut=cut)


_USAGE = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}


def _openai_whole(said: Said) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": said.text}
    if said.calls:
        message["tool_calls"] = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": raw}}
            for name, raw, id_ in said.calls
        ]
    if said.refusal is not None:
        message["refusal"] = said.refusal
    if said.thinking:
        message["reasoning_content"] = THINKING["thinking"]
    whole: dict[str, Any] = {
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o-2024-08-06",
        "choices": [{"index": 0, "message": message, "finish_reason": said.finish}],
    }  # fmt: skip
    if said.usage:
        whole["usage"] = _USAGE
    return _bytes(whole)


def _openai_stream(said: Said) -> bytes:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if said.thinking:
        deltas.append({"reasoning_content": THINKING["thinking"]})
    deltas += [{"content": piece} for piece in _pieces(said.text or "")]
    for index, (name, raw, id_) in enumerate(said.calls):
        at = 0 if said.melt else index
        head: dict[str, Any] = {"index": at, "type": "function", "function": {"name": name, "arguments": ""}}
        if id_ is not None:
            head["id"] = id_
        deltas.append({"tool_calls": [head]})
        for piece in _pieces(raw or ""):
            more: dict[str, Any] = {"index": at, "function": {"arguments": piece}}
            if said.melt and id_ is not None:
                more["id"] = id_
            deltas.append({"tool_calls": [more]})
    if said.refusal is not None:
        deltas.append({"refusal": said.refusal})
    events = [_chunk(delta, None) for delta in deltas] + [_chunk({}, said.finish)]
    if said.usage:
        events.append({**_chunk({}, None), "choices": [], "usage": _USAGE})
    return b"".join(b"data: " + _bytes(event) + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def _chunk(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-2024-08-06",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }  # fmt: skip


_STOP = {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


def _anthropic_blocks(said: Said) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [dict(THINKING)] if said.thinking else []
    if said.text:
        blocks.append({"type": "text", "text": said.text})
    for name, raw, id_ in said.calls:
        blocks.append({"type": "tool_use", "id": id_, "name": name, "raw": raw or ""})
    return blocks


def _anthropic_whole(said: Said) -> bytes:
    blocks = _anthropic_blocks(said)
    for block in blocks:
        if "raw" in block:
            block["input"] = _loosely(block.pop("raw"))
    return _bytes(_anthropic_message(blocks, said.finish and _STOP.get(said.finish, said.finish)))


def _anthropic_message(blocks: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
        "content": blocks, "stop_reason": stop, "stop_sequence": None,
        "usage": {"input_tokens": 12, "output_tokens": 5},
    }  # fmt: skip


def _anthropic_stream(said: Said) -> bytes:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**_anthropic_message([], None), "content": []}}
    ]
    for index, block in enumerate(_anthropic_blocks(said)):
        events += _block(0 if said.melt else index, block)
    if said.finish is not None:
        stop = _STOP.get(said.finish, said.finish)
        delta = {"stop_reason": stop, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}})
    events.append({"type": "message_stop"})
    return b"".join(
        b"event: " + event["type"].encode() + b"\ndata: " + _bytes(event) + b"\n\n" for event in events
    )


def _block(index: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        start = {"type": "text", "text": ""}
        deltas: list[dict[str, Any]] = [
            {"type": "text_delta", "text": piece} for piece in _pieces(block["text"])
        ]
    elif block["type"] == "thinking":
        start = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        start = {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(block["raw"])]
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _pieces(text: str) -> list[str]:
    """In three pieces where it is long enough, so that a piece ends inside of it."""
    third = max(1, len(text) // 3)
    return [piece for piece in (text[:third], text[third : 2 * third], text[2 * third :]) if piece]


def _loosely(raw: str) -> Any:
    """What a provider that sends parsed input would make of it."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw


def _bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode()


# --- at random ----------------------------------------------------------------------------------------------


def at_random(draw: random.Random, wire: str, streamed: bool) -> Bad:
    """One malformed answer (or one that only looks it), and the name of what is wrong with it."""
    made = openai if wire == "openai" else anthropic
    if draw.random() < 0.12:
        return _no_answer(draw)
    said, kind = _said_at_random(draw, wire)
    cut = draw.randrange(100) if draw.random() < 0.2 else None
    return made(said, streamed, f"{kind}{'' if cut is None else ' cut'}", cut)


def _said_at_random(draw: random.Random, wire: str) -> tuple[Said, str]:
    calls = [_call_at_random(draw) for _ in range(draw.choice((0, 1, 1, 2, 3, 4)))]
    finish = draw.choice((*FINISHES, *(STOPS if wire == "anthropic" else ()), None, "something_new"))
    if draw.random() < 0.6:
        finish = "tool_calls" if calls else "stop"
    said = Said(
        text=draw.choice((None, "", " \n", "I look.", "ein Ünfug \ud83d\ude00", "x" * 5000)),
        calls=calls,
        finish=finish,
        thinking=draw.random() < 0.3,
        refusal="no" if draw.random() < 0.05 else None,
        melt=draw.random() < 0.15,
        usage=draw.random() < 0.8,
    )
    return said, f"{len(calls)} calls, finish {finish}"


def _call_at_random(draw: random.Random) -> tuple[str | None, str | None, str | None]:
    name = draw.choice(GOOD_NAMES) if draw.random() < 0.8 else draw.choice((*ODD_NAMES, None))
    fitting = ('{"item":"apples"}', '{"item":"apples","count":2}', "{}")
    raw = draw.choice(fitting) if draw.random() < 0.3 else draw.choice((*ODD_ARGUMENTS, None))
    given = draw.choice(ODD_IDS) if draw.random() < 0.4 else f"call_{draw.randrange(10**9)}"
    return name, raw, given


def _no_answer(draw: random.Random) -> Bad:
    body = draw.choice(
        (b"", b"null", b"[]", b"{}", b"<html>busy</html>", b'{"choices":[]}', b"\xff\xfe", b"data: {}\n\n")
    )
    kind = draw.choice(("application/json", "text/event-stream", "text/html"))
    return Bad(f"no answer {body!r}", body, kind, draw.choice((200, 200, 200, 500, 503, 429)))
