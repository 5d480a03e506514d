"""Owns this engine on the same work: one Run on SQLite, the policy of `benchmarks/turn_overhead.py` and one write."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from work import TEXT, work

sys.path.insert(0, str(Path(__file__).parents[2]))

from engine.adapters.function_tools import FunctionTools
from engine.adapters.processes import this_process
from engine.adapters.scripted_gateway import ScriptedGateway
from engine.adapters.sql_store import SqlStore
from engine.adapters.system_clock import SystemClock
from engine.domain.actors import Principal
from engine.domain.ids import RunId
from engine.policy.compiler import load_policy
from engine.ports import ModelRequest, ModelResponse, ProposedCall
from engine.runtime.runtime import Parts, Runtime

WORK = work()
RUN = RunId("rpeer000000000000")
FILES = {
    "p.policy.yaml": """
agentctl: policy/v1
id: peers
version: 1
owner: benchmarks
tool_specs: [t.tools.yaml]
principals: {roles: [user], may_start: [user]}
permissions:
  - {id: look, effect: allow, roles: [user], tools: [look_up]}
  - {id: act, effect: allow, roles: [user], tools: [send], unattended: {because: "a benchmark", max_per_run: 9}}
gates: {finish: []}
budgets: {turns: 1000000, cost_usd: "1.00", wall_time: 24h, calls: {total: 1000000}}
model: {primary: {id: openai/gpt-5-mini-2025-08-07}}
""",
    "t.tools.yaml": """
agentctl: tools/v1
id: peers
tools:
  look_up:
    kind: read
    handler: "python:nowhere:look_up"
    description: "Look one number up."
    params: {number: {type: int, min: 0, max: 100000000}}
  send:
    kind: write
    handler: "python:nowhere:send"
    description: "Send one number."
    params: {number: {type: int, min: 0, max: 100000000}}
    effects: [number.send]
    idempotency: {key: [call.id]}
    reconcile: {manual: "Look into the file"}
""",
}


async def handler(number: int) -> str:
    return WORK.tool(number)


def respond(request: ModelRequest) -> ModelResponse:
    """One call a turn. Each earlier turn has brought one result, whatever it says."""
    if not WORK.asked(request.turn):
        return ModelResponse("bench", calls=(ProposedCall("finish", "{}"),), finish="tool_calls")
    tool = "send" if WORK.crash else "look_up"
    call = ProposedCall(tool, f'{{"number":{request.turn}}}', f"call_{request.turn}")
    return ModelResponse("bench", TEXT, calls=(call,), finish="tool_calls")


def main() -> None:
    policy = load_policy("p.policy.yaml", FILES)
    WORK.opening()
    parts = Parts(
        SqlStore.open(WORK.db), ScriptedGateway.from_turns([respond] * (WORK.turns + 2)),
        FunctionTools({"look_up": handler, "send": handler}), SystemClock(), this_process(), "scripted/bench",
    )  # fmt: skip
    runtime = Runtime(parts, policy)
    if WORK.first:
        runtime.start("count", principal=Principal(id="b", roles=("user",)), run=RUN)
    driven = asyncio.run(runtime.drive(RUN))
    unknown = ", ".join(str(each) for each in driven.state.unknown_calls)
    WORK.done(f"{driven.state.status}" + (f": call {unknown} is unknown" if unknown else ""))
    runtime.close()


main()
