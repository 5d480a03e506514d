"""Owns the cost of one durable turn: a model response with one read, against raw sqlite3 doing the same bytes.

    python -m benchmarks.turn_overhead [--turns 10,100,1000,10000]

Floor: sqlite3 from the standard library, WAL and synchronous=FULL, the same payload bytes in two commits a turn,
in the same process and the same folder. Both are measured in alternating slices, because the cost of a flush to
disk moves while one watches it.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path

from engine.adapters.function_tools import FunctionTools
from engine.adapters.processes import this_process
from engine.adapters.scripted_gateway import ScriptedGateway
from engine.adapters.sql_store import SqlStore
from engine.adapters.system_clock import SystemClock
from engine.domain.actors import Principal
from engine.domain.events import Event
from engine.domain.policy import Policy
from engine.policy.compiler import load_policy
from engine.ports import ModelRequest, ModelResponse, ProposedCall
from engine.runtime.runtime import Parts, Runtime

FILES = {
    "p.policy.yaml": """
agentctl: policy/v1
id: overhead
version: 1
owner: benchmarks
tool_specs: [t.tools.yaml]
principals: {roles: [user], may_start: [user]}
permissions:
  - {id: look, effect: allow, roles: [user], tools: [look_up]}
gates: {finish: []}
budgets: {turns: 1000000, cost_usd: "1.00", wall_time: 24h, calls: {total: 1000000}}
model: {primary: {id: openai/gpt-5-mini-2025-08-07}}
""",
    "t.tools.yaml": """
agentctl: tools/v1
id: overhead
tools:
  look_up:
    kind: read
    handler: "python:nowhere:look_up"
    description: "Look one number up."
    params: {number: {type: int, min: 0, max: 100000000}}
""",
}
TEXT = "x" * 200


async def look_up(number: int) -> dict[str, int]:
    return {"number": number, "square": number * number}


def model(turns: int) -> ScriptedGateway:
    """`turns` responses with one call each, then the finish."""

    def respond(request: ModelRequest) -> ModelResponse:
        if request.turn > turns:
            return ModelResponse("bench", calls=(ProposedCall("finish", "{}"),), finish="tool_calls")
        call = ProposedCall("look_up", f'{{"number":{request.turn}}}', f"call_{request.turn}")
        return ModelResponse("bench", TEXT, calls=(call,), finish="tool_calls")

    return ScriptedGateway.from_turns([respond] * (turns + 1))


class Marks:
    """Wall time and log bytes at the end of each turn."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.commits: dict[int, list[tuple[str, int]]] = {}

    def __call__(self, event: Event, _state: object) -> None:
        if event.kind == "ModelTurnRecorded":
            self.times.append(time.perf_counter())


def ours(policy: Policy, folder: Path, turns: int) -> tuple[list[float], int]:
    """Seconds of each turn, and bytes of the database per turn."""
    file = folder / f"ours-{turns}.db"
    store = SqlStore.open(str(file))
    parts = Parts(
        store,
        model(turns),
        FunctionTools({"look_up": look_up}),
        SystemClock(),
        this_process(),
        "scripted/bench",
    )
    runtime = Runtime(parts, policy)
    run = runtime.start("count", principal=Principal(id="b", roles=("user",)))
    marks = Marks()
    driven = asyncio.run(runtime.drive(run, observers=[marks]))
    assert driven.state.status == "completed", driven.state.ending
    store.close()
    size = sum(each.stat().st_size for each in folder.glob(f"ours-{turns}.db*"))
    times = [after - before for before, after in zip(marks.times, marks.times[1:], strict=False)]
    return times, size // turns


def payloads(policy: Policy, turns: int = 20) -> list[list[int]]:
    """The bytes of each commit of one turn, read off a Run."""
    from engine.adapters.memory_store import MemoryStore

    store = MemoryStore()
    parts = Parts(
        store,
        model(turns),
        FunctionTools({"look_up": look_up}),
        SystemClock(),
        this_process(),
        "scripted/bench",
    )
    runtime = Runtime(parts, policy)
    run = runtime.start("count", principal=Principal(id="b", roles=("user",)))
    asyncio.run(runtime.drive(run))
    events = list(store.events(run))
    turn = [event for event in events if event.body.__class__.__name__ == "ModelTurnRecorded"][10]
    around = [event for event in events if turn.seq <= event.seq < turn.seq + 4]
    sizes = [len(event.payload) + 330 for event in around]
    return [sizes[:2], sizes[2:4]]


def floor(folder: Path, commits: list[list[int]], turns: int) -> float:
    """Median seconds of a turn with raw sqlite3."""
    file = folder / "floor.db"
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("pragma journal_mode=wal")
    connection.execute("pragma synchronous=full")
    connection.execute(
        "create table if not exists e (run text, seq integer, payload text, primary key (run, seq))"
    )
    start = connection.execute("select coalesce(max(seq), 0) from e").fetchone()[0]
    texts = [["y" * size for size in sizes] for sizes in commits]
    taken = []
    seq = start
    for _ in range(turns):
        began = time.perf_counter()
        for sizes in texts:
            connection.execute("begin immediate")
            for text in sizes:
                seq += 1
                connection.execute("insert into e values ('r', ?, ?)", (seq, text))
            connection.execute("commit")
        taken.append(time.perf_counter() - began)
    connection.close()
    return median(taken)


def median(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", default="10,100,1000,10000")
    lengths = [int(each) for each in parser.parse_args().turns.split(",")]
    policy = load_policy("p.policy.yaml", FILES)
    commits = payloads(policy)
    print(f"one turn is {sum(map(len, commits))} events, {sum(map(sum, commits))} bytes in 2 commits\n")
    print(
        "| turns | ours, median µs a turn | last 10 % | floor µs | times the floor | database bytes a turn |"
    )
    print("|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for turns in lengths:
            low = floor(folder, commits, 300)
            times, size = ours(policy, folder, turns)
            high = floor(folder, commits, 300)
            base = (low + high) / 2
            tail = median(times[-max(1, len(times) // 10) :])
            print(
                f"| {turns:,} | {median(times) * 1e6:,.0f} | {tail * 1e6:,.0f} | {base * 1e6:,.0f} "
                f"| {median(times) / base:.1f} | {size:,} |"
            )


if __name__ == "__main__":
    main()
