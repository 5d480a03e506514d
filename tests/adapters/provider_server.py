"""Owns a loopback HTTP server that answers as a model provider would on a bad day, byte for byte as told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    body: str | bytes
    status: int = 200
    type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """Promise more bytes than are sent, then close the connection."""
    delay: float = 0.0


@dataclass
class Provider:
    """Plays `answers` in order, the last one for ever, and keeps every request."""

    url: str
    answers: list[Answer]
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    closing: threading.Event = field(default_factory=threading.Event)

    def take(self, path: str, body: bytes) -> Answer:
        with self.lock:
            self.paths.append(path)
            self.requests.append(json.loads(body or b"{}"))
            return self.answers[min(len(self.requests), len(self.answers)) - 1]


@contextmanager
def provider(*answers: Answer) -> Iterator[Provider]:
    """A running provider; its `url` is what `api_base` should be."""
    state = Provider("", list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            _send(self, state, state.take(self.path, body))

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
        state.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _send(handler: BaseHTTPRequestHandler, state: Provider, answer: Answer) -> None:
    state.closing.wait(answer.delay)
    body = answer.body if isinstance(answer.body, bytes) else answer.body.encode("utf-8", "surrogatepass")
    handler.send_response(answer.status)
    handler.send_header("content-type", answer.type)
    handler.send_header("content-length", str(len(body) + (100 if answer.cut else 0)))
    handler.send_header("connection", "close")
    for name, value in answer.headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    try:
        handler.wfile.write(body)
    except OSError:
        state.closing.is_set()
    handler.close_connection = True


# --- OpenAI chat completions ------------------------------------------------------------------------------

USAGE = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}


def call(arguments: str | None, name: str = "get_stock", call_id: str | None = "a") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(
    *calls: dict[str, Any],
    text: str | None = None,
    finish: str | None = "tool_calls",
    usage: dict[str, Any] | None = USAGE,
    model: str = "gpt-4o-2024-08-06",
    **message: Any,
) -> Answer:
    said: dict[str, Any] = {"role": "assistant", "content": text, **message}
    if calls:
        said["tool_calls"] = list(calls)
    choice = {"index": 0, "message": said, "finish_reason": finish}
    whole: dict[str, Any] = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]
    }  # fmt: skip
    if usage is not None:
        whole["usage"] = usage
    return Answer(json.dumps(whole), headers={"x-request-id": "req-7"})


def chunk(
    delta: dict[str, Any], finish: str | None = None, model: str = "gpt-4o-2024-08-06"
) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": model,
        "choices": [choice],
    }


def call_delta(
    index: int, arguments: str | None = None, name: str | None = None, call_id: str | None = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    entry: dict[str, Any] = {"index": index, "function": function}
    if call_id is not None:
        entry |= {"id": call_id, "type": "function"}
    return {"tool_calls": [entry]}


def stream(*chunks: dict[str, Any], done: bool = True, cut: bool = False, usage: bool = True) -> Answer:
    events = list(chunks)
    if usage and done:
        events.append({**chunk({}), "choices": [], "usage": USAGE})
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return Answer(text + ("data: [DONE]\n\n" if done else ""), type="text/event-stream", cut=cut)
