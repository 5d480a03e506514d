"""Owns the worst-case model as a loopback OpenAI-style server: the same Runs through litellm and a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from benchmarks.agentdojo.runner import Outcome, Setting, aplay
from benchmarks.agentdojo.suites import MARKER, Pair
from benchmarks.agentdojo.worst_case import WorstCase
from engine.adapters.litellm_gateway import LitellmGateway
from engine.adapters.wire.names import wire_name
from engine.ports import ModelResponse

_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
)


def play_on_the_wire(pairs: Sequence[Pair], setting: Setting, *, attacked: bool = True) -> list[Outcome]:
    """One Run after the other; each asks the server over HTTP."""
    return asyncio.run(_play(pairs, setting, attacked))


async def _play(pairs: Sequence[Pair], setting: Setting, attacked: bool) -> list[Outcome]:
    served = _Served()
    server = await asyncio.start_server(served.answer, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    found: list[Outcome] = []
    async with server:
        for pair in pairs:

            def open_gateway(model: WorstCase) -> LitellmGateway:
                served.model = model
                return LitellmGateway(options={"api_base": f"http://{host}:{port}/v1", "api_key": "none"})

            found.append(await aplay(pair, setting, attacked=attacked, gateway=open_gateway))
    return found


class _Served:
    """Whose turn it is; the server keeps no other state."""

    def __init__(self) -> None:
        self.model: WorstCase | None = None

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of one connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            size = next(
                int(line.split(b":")[1]) for line in head.split(b"\r\n") if line[:14] == b"content-length"
            )
            asked = json.loads(await reader.readexactly(size))
            body = json.dumps(self._respond(asked)).encode()
            writer.write(_HEAD % len(body) + body)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client went away: its Run says so
        finally:
            writer.close()

    def _respond(self, asked: dict[str, object]) -> dict[str, object]:
        assert self.model is not None
        messages = asked["messages"]
        assert isinstance(messages, list)
        saw = any(each["role"] == "tool" and MARKER in str(each["content"]) for each in messages)
        return _completion(self.model.turn(saw))


def _completion(response: ModelResponse) -> dict[str, object]:
    calls = [
        {
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": wire_name(call.tool), "arguments": call.arguments},
        }
        for index, call in enumerate(response.calls)
    ]
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5-mini-2025-08-07",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": response.text or None, "tool_calls": calls},
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
    }
