"""Owns Pydantic AI with DBOS: an agent with DBOSDurability in a workflow, its tool a DBOS step."""

from __future__ import annotations

import asyncio
from typing import Any

from dbos import DBOS, SetWorkflowID
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits
from work import TEXT, work

WORK = work()


async def respond(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    turn = 1 + sum(isinstance(part, ToolReturnPart) for message in messages for part in message.parts)
    if not WORK.asked(turn):
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(parts=[TextPart(TEXT), ToolCallPart("look_up", {"number": turn}, f"call_{turn}")])


agent = Agent(FunctionModel(respond), name="peer", capabilities=[DBOSDurability()])


@agent.tool_plain
@DBOS.step()
async def look_up(number: int) -> str:
    """Look one number up."""
    return WORK.tool(number)


@DBOS.workflow()
async def loop() -> Any:
    result = await agent.run("count", usage_limits=UsageLimits(request_limit=None))
    return str(result.output)


async def main() -> None:
    WORK.opening()
    DBOS(config={"name": "peer", "system_database_url": f"sqlite:///{WORK.db}", "run_admin_server": False})
    DBOS.launch()
    if WORK.first:
        with SetWorkflowID("1"):
            await loop()
    else:
        handle = await DBOS.retrieve_workflow_async("1")
        await handle.get_result()
    WORK.done()
    DBOS.destroy()


asyncio.run(main())
