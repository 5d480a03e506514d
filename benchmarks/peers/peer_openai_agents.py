"""Owns the OpenAI Agents SDK: Runner.run with a SQLiteSession on a file, tracing off."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    Runner,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from work import TEXT, work

WORK = work()
set_tracing_disabled(True)


def said(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=[content]
    )


class Fake(Model):
    """Proposes one call a turn."""

    async def get_response(self, **given: Any) -> ModelResponse:
        items = [] if isinstance(given["input"], str) else given["input"]
        turn = 1 + sum(1 for each in items if each.get("type") == "function_call_output")
        output: list[Any] = [said("done")]
        if WORK.asked(turn):
            arguments = json.dumps({"number": turn})
            call = ResponseFunctionToolCall(
                type="function_call", call_id=f"call_{turn}", name="look_up", arguments=arguments
            )
            output = [said(TEXT), call]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("nobody streams here")


@function_tool
def look_up(number: int) -> str:
    """Look one number up."""
    return WORK.tool(number)


async def main() -> None:
    agent = Agent(name="peer", model=Fake(), tools=[look_up])
    WORK.opening()
    session = SQLiteSession("1", WORK.db)
    given = "count" if WORK.first else "go on"
    await Runner.run(agent, given, session=session, max_turns=WORK.turns + 10)
    WORK.done()


asyncio.run(main())
