"""Owns DBOS alone: one workflow whose model and tool calls are steps, on its SQLite system database."""

from __future__ import annotations

from typing import Any

from dbos import DBOS, SetWorkflowID
from work import TEXT, work

WORK = work()


@DBOS.step()
def model(turn: int) -> dict[str, Any]:
    return {"text": TEXT, "call": turn} if WORK.asked(turn) else {"text": "done", "call": None}


@DBOS.step()
def look_up(number: int) -> str:
    return WORK.tool(number)


@DBOS.workflow()
def loop() -> int:
    messages: list[Any] = ["count"]
    turn = 1
    while True:
        response = model(turn)
        messages.append(response)
        if response["call"] is None:
            return len(messages)
        messages.append(look_up(response["call"]))
        turn += 1


WORK.opening()
DBOS(config={"name": "peer", "system_database_url": f"sqlite:///{WORK.db}", "run_admin_server": False})
DBOS.launch()
if WORK.first:
    with SetWorkflowID("1"):
        loop()
else:
    DBOS.retrieve_workflow("1").get_result()
WORK.done()
DBOS.destroy()
