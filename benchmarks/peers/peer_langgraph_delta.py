"""Owns LangGraph with a graph of two nodes over a DeltaChannel, SqliteSaver, durability="sync"."""

from __future__ import annotations

import sqlite3
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from work import TEXT, work

WORK = work()


def append(held: list[Any], writes: list[list[Any]]) -> list[Any]:
    return [*held, *(each for write in writes for each in write)]


class State(TypedDict):
    messages: Annotated[list[Any], DeltaChannel(append, list)]


def model(state: State) -> dict[str, Any]:
    turn = 1 + sum(1 for each in state["messages"] if isinstance(each, ToolMessage))
    if not WORK.asked(turn):
        return {"messages": [AIMessage("done")]}
    call = {"name": "look_up", "args": {"number": turn}, "id": f"call_{turn}"}
    return {"messages": [AIMessage(TEXT, tool_calls=[call])]}


def tools(state: State) -> dict[str, Any]:
    call = state["messages"][-1].tool_calls[0]
    return {"messages": [ToolMessage(WORK.tool(call["args"]["number"]), tool_call_id=call["id"])]}


def onward(state: State) -> str:
    return "tools" if state["messages"][-1].tool_calls else END


graph = StateGraph(State)
graph.add_node("model", model)
graph.add_node("tools", tools)
graph.add_edge(START, "model")
graph.add_conditional_edges("model", onward, ["tools", END])
graph.add_edge("tools", "model")

WORK.opening()
compiled = graph.compile(checkpointer=SqliteSaver(sqlite3.connect(WORK.db, check_same_thread=False)))
config = {"configurable": {"thread_id": "1"}, "recursion_limit": 10 * WORK.turns + 100}
given = {"messages": [HumanMessage("count")]} if WORK.first else None
compiled.invoke(given, config, durability="sync")
WORK.done()
