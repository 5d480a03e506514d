"""Owns the cost of the model port: per request against bare HTTP, and how many Runs one process carries.

    python -m benchmarks.model_port [--requests 200] [--runs 1,10,100,1000] [--seconds 0.3]

Requests go to a loopback server in a process of its own, which answers at once. A Run is three ModelTurns (a read, a
read, the finish) on SQLite with a model that answers after `--seconds`. The limit that is printed is the smaller of
two: the latency (Runs / seconds) and one core (1 / CPU seconds of a turn, measured in the same run). `waited` is the
part of the time in which the event loop was ready and other programs had the cores (Linux tells); `own share` leaves
it out: on a machine that does nothing else the two shares are equal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import httpx

from engine.adapters.function_tools import FunctionTools
from engine.adapters.litellm_gateway import LitellmGateway
from engine.adapters.litellm_library import load_litellm
from engine.adapters.processes import this_process
from engine.adapters.scripted_gateway import ScriptedGateway
from engine.adapters.sql_store import SqlStore
from engine.adapters.system_clock import SystemClock
from engine.domain.actors import Principal
from engine.domain.ids import RunId
from engine.domain.messages import Instructions, ToolSchema, UserInput
from engine.domain.policy import ModelUse, Policy
from engine.policy.compiler import load_policy
from engine.ports import ModelRequest, ModelResponse, ProposedCall
from engine.runtime.driver import Driven
from engine.runtime.runtime import Parts, Runtime

LOOK = ProposedCall("look_up", '{"number":1}', "a")
FINISH = ProposedCall("finish", "{}", "b")
TURNS = 3
BODY = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-2024-08-06",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17},
    }
).encode()
TOOL = ToolSchema(
    "look_up", "Look one number up.", {"type": "object", "properties": {}, "additionalProperties": False}
)
FILES = {
    "p.policy.yaml": """
agentctl: policy/v1
id: port
version: 1
owner: benchmarks
tool_specs: [t.tools.yaml]
principals: {roles: [user], may_start: [user]}
permissions:
  - {id: look, effect: allow, roles: [user], tools: [look_up]}
gates: {finish: []}
budgets: {turns: 100, cost_usd: "1.00", wall_time: 24h, calls: {total: 100}}
model: {primary: {id: openai/gpt-4o-2024-08-06}}
""",
    "t.tools.yaml": """
agentctl: tools/v1
id: port
tools:
  look_up:
    kind: read
    handler: "python:nowhere:look_up"
    description: "Look one number up."
    params: {number: {type: int, min: 0, max: 100}}
""",
}


async def _serve(port: int) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(BODY)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked = await reader.readuntil(b"\r\n\r\n")
                size = next(
                    int(line.split(b":")[1])
                    for line in asked.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                )
                await reader.readexactly(size)
                writer.write(head + BODY)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    await server.serve_forever()


def _server(port: int) -> None:
    asyncio.run(_serve(port))


def request(turn: int = 1) -> ModelRequest:
    asked = (Instructions("You look things up."), UserInput("Look up one."))
    return ModelRequest(
        RunId("r"), turn, 1, ModelUse("openai/gpt-4o"), asked, (TOOL,), "d", lambda stored: stored.value
    )


async def timed(count: int, once: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Median milliseconds of one call, and CPU milliseconds of one, after a warm-up."""
    for _ in range(10):
        await once()
    times: list[float] = []
    cpu = time.process_time()
    for _ in range(count):
        began = time.perf_counter()
        await once()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000, (time.process_time() - cpu) / count * 1000


async def ports(count: int, url: str) -> list[tuple[str, float, float]]:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Look up one."}]}
    found: list[tuple[str, float, float]] = []
    async with httpx.AsyncClient() as client:

        async def bare() -> object:
            return (await client.post(url + "/v1/chat/completions", json=body)).json()

        found.append(("bare httpx", *await timed(count, bare)))
    gateway = LitellmGateway(options={"api_base": url + "/v1", "api_key": "sk-loopback"})
    found.append(("through litellm", *await timed(count, lambda: gateway.propose(request()))))
    scripted = ScriptedGateway.from_turns([{"calls": [{"tool": "look_up"}]}])
    found.append(("scripted", *await timed(count, lambda: scripted.propose(request()))))
    return found


class Simulated:
    """A model that answers after `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def propose(
        self,
        request: ModelRequest,
        on_text: Callable[[str], None] | None = None,  # noqa: ARG002 - the port's signature
    ) -> ModelResponse:
        await asyncio.sleep(self._seconds)
        calls = (FINISH,) if request.turn == TURNS else (LOOK,)
        return ModelResponse("m", "x" * 200, calls=calls, finish="tool_calls", cost_usd=Decimal(0))

    def price(self, model: ModelUse, input_tokens: int, output_tokens: int) -> Decimal:  # noqa: ARG002 - as above
        return Decimal(0)


async def look_up(number: int) -> dict[str, int]:
    return {"number": number}


class Carried(NamedTuple):
    rate: float
    """Turns per second."""
    cpu: float
    """Seconds of a turn, all threads."""
    waited: float
    """Share of the time in which the event loop had no core; 0 where the system does not tell."""
    memory: float
    """Megabytes of a Run."""


async def carried(policy: Policy, folder: Path, runs: int, seconds: float) -> Carried:
    store = SqlStore.open(str(folder / f"{runs}.db"))
    parts = Parts(
        store,
        Simulated(seconds),
        FunctionTools({"look_up": look_up}),
        SystemClock(),
        this_process(),
        "gateway/x",
    )
    runtime = Runtime(parts, policy)
    begun = [runtime.start("count", principal=Principal(id="b", roles=("user",))) for _ in range(runs)]
    before = _memory()
    cpu, began, waited = time.process_time(), time.perf_counter(), _waited()
    ended = await runtime.drive_all(begun)
    took, spent = time.perf_counter() - began, time.process_time() - cpu
    assert all(isinstance(one, Driven) and one.state.status == "completed" for one in ended.values())
    waited = (_waited() - waited) / took
    store.close()
    turns = TURNS * runs
    return Carried(turns / took, spent / turns, waited, (_memory() - before) / runs)


def _waited() -> float:
    """Seconds in which this thread was ready and had no core, so far."""
    told = Path("/proc/thread-self/schedstat")
    return int(told.read_text().split()[1]) / 1e9 if told.exists() else 0.0


def _memory() -> float:
    """Megabytes at the most, so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compiled(folder: Path) -> Policy:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return load_policy(str(folder / "p.policy.yaml"))


def report_ports(count: int) -> None:
    port = 20_000 + os.getpid() % 20_000
    server = multiprocessing.Process(target=_server, args=(port,), daemon=True)
    server.start()
    time.sleep(0.5)
    before = _memory()
    load_litellm()
    loaded = _memory() - before
    try:
        found = asyncio.run(ports(count, f"http://127.0.0.1:{port}"))
    finally:
        server.terminate()
    floor = found[0][1]
    print("| port | median ms a request | CPU ms | times bare HTTP |\n|---|---:|---:|---:|")
    for name, wall, cpu in found:
        print(f"| {name} | {wall:.2f} | {cpu:.2f} | {wall / floor:.2f} |")
    print(f"\nlitellm adds {loaded:.0f} MB to the process\n")


def report_runs(counts: list[int], seconds: float) -> None:
    print(
        "| Runs | turns a second | limit | which | share | waited | own share | CPU ms a turn | MB a Run | "
        f" (model: {seconds:g} s)"
    )
    print("|---:|---:|---:|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        policy = compiled(Path(folder))
        for runs in counts:
            found = asyncio.run(carried(policy, Path(folder), runs, seconds))
            latency, core = runs / seconds, 1 / found.cpu
            limit, which = min((latency, "latency"), (core, "one core"))
            print(
                f"| {runs:,} | {found.rate:,.0f} | {limit:,.0f} | {which} | {found.rate / limit:.0%} "
                f"| {found.waited:.0%} | {found.rate / (1 - found.waited) / limit:.0%} "
                f"| {found.cpu * 1000:.2f} | {found.memory:.2f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--runs", default="1,10,100,1000")
    parser.add_argument("--seconds", type=float, default=0.3)
    given = parser.parse_args()
    report_runs([int(each) for each in given.runs.split(",")], given.seconds)
    print()
    report_ports(given.requests)


if __name__ == "__main__":
    main()
