"""Owns LangGraph's documented agent: `create_agent`, SqliteSaver, durability="sync"."""

from __future__ import annotations

import sqlite3
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from work import TEXT, work

WORK = work()


class Fake(BaseChatModel):
    """Proposes one call a turn."""

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, _tools: Any, **_: Any) -> Fake:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        turn = 1 + sum(1 for each in messages if isinstance(each, ToolMessage))
        if not WORK.asked(turn):
            return ChatResult(generations=[ChatGeneration(message=AIMessage("done"))])
        call = {"name": "look_up", "args": {"number": turn}, "id": f"call_{turn}"}
        return ChatResult(generations=[ChatGeneration(message=AIMessage(TEXT, tool_calls=[call]))])


@tool
def look_up(number: int) -> str:
    """Look one number up."""
    return WORK.tool(number)


WORK.opening()
saver = SqliteSaver(sqlite3.connect(WORK.db, check_same_thread=False))
agent = create_agent(Fake(), [look_up], checkpointer=saver)
config = {"configurable": {"thread_id": "1"}, "recursion_limit": 10 * WORK.turns + 100}
given = {"messages": [("user", "count")]} if WORK.first else None
agent.invoke(given, config, durability="sync")
WORK.done()
