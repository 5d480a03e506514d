"""Owns the cost of facts apart from chat: the next request, a cache hit, the origin of an argument.

    python -m benchmarks.context [--turns 10,100,1000] [--values 10000]

Each is set against what it must not cost: the request against rendering the whole history anew, the hit against
the durable call that it saves, the origin against the number of values recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from engine.adapters.function_tools import FunctionTools
from engine.adapters.processes import this_process
from engine.adapters.scripted_gateway import ScriptedGateway
from engine.adapters.sql_store import SqlStore
from engine.adapters.system_clock import SystemClock
from engine.domain.actors import Principal
from engine.domain.events import LeftOut, ModelAttemptStarted, StoredResult
from engine.domain.ids import RunId
from engine.domain.policy import Policy
from engine.domain.state import RunState
from engine.lifecycle.context import Conversation
from engine.lifecycle.fold import fold
from engine.lifecycle.provenance import NOTHING, Provenance
from engine.policy.compiler import load_policy
from engine.ports import EventStore, ModelRequest, ModelResponse, ProposedCall
from engine.runtime.outlook import estimate
from engine.runtime.runtime import Parts, Runtime

LIMIT = 16_000
"""Tokens of the policy's context."""
FILES = {
    "p.policy.yaml": f"""
agentctl: policy/v1
id: context
version: 1
owner: benchmarks
tool_specs: [t.tools.yaml]
principals: {{roles: [user], may_start: [user]}}
permissions:
  - {{id: look, effect: allow, roles: [user], tools: [look_up, remembered]}}
gates: {{finish: []}}
budgets: {{turns: 1000000, cost_usd: "1.00", wall_time: 24h, calls: {{total: 1000000}}}}
context: {{max_input_tokens: {LIMIT}, prune: [{{kind: read, after_turns: 8, keep: receipt}}]}}
model: {{primary: {{id: openai/gpt-5-mini-2025-08-07}}}}
""",
    "t.tools.yaml": """
agentctl: tools/v1
id: context
tools:
  look_up:
    kind: read
    handler: "python:nowhere:look_up"
    description: "Look one number up."
    params: {number: {type: int, min: 0, max: 100000000}}
  remembered:
    kind: read
    handler: "python:nowhere:look_up"
    description: "The same, kept for an hour."
    params: {number: {type: int, min: 0, max: 100000000}}
    cache: {ttl: 1h, key: [number], scope: run}
""",
}


async def look_up(number: int) -> dict[str, object]:
    return {"number": number, "rows": [f"row {number}-{index} of the answer" for index in range(12)]}


def run(policy: Policy, store: EventStore, tool: str, turns: int, number: Callable[[int], int]) -> RunId:
    """A Run of so many turns with one read each."""

    def propose(request: ModelRequest) -> ModelResponse:
        if request.turn > turns:
            return ModelResponse(model="m", calls=(ProposedCall("finish", "{}"),), finish="tool_calls")
        args = f'{{"number": {number(request.turn)}}}'
        return ModelResponse(
            model="m", text=f"turn {request.turn}", calls=(ProposedCall(tool, args),), finish="tool_calls"
        )

    parts = Parts(
        store=store,
        gateway=ScriptedGateway.from_turns([propose] * (turns + 1)),
        executor=FunctionTools({"look_up": look_up, "remembered": look_up}),
        clock=SystemClock(),
        owner=this_process("bench"),
        model="scripted/bench",
    )
    runtime = Runtime(parts, policy)
    started = runtime.start("go", principal=Principal(id="u", roles=("user",)))
    asyncio.run(runtime.drive(started))
    return started


def inline(stored: StoredResult) -> object:
    return stored.value


def best(work: Callable[[], object], times: int = 5) -> float:
    """Microseconds of the fastest of some tries."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found) * 1e6


def next_request(
    policy: Policy, state: RunState, left_out: Mapping[int, LeftOut], turn: int
) -> tuple[float, float, int]:
    """(microseconds for what is new, for the whole anew, tokens) of the request after `turn`."""
    turns = state.turns
    state.turns, state.left_out = turns[: turn - 1], left_out[turn]
    conversation = Conversation(policy, state, inline, estimate)  # type: ignore[arg-type]  # results are inline
    conversation.fit(state, LIMIT)
    state.turns = turns[:turn]
    began = time.perf_counter()
    conversation.fit(state, LIMIT)
    new = (time.perf_counter() - began) * 1e6

    def anew() -> None:
        whole = Conversation(policy, state, inline, estimate)  # type: ignore[arg-type]  # as above
        whole.fit(state, LIMIT)

    anew_cost = best(anew, 3)
    state.turns = turns
    return new, anew_cost, conversation.tokens


def requests(policy: Policy, turns: Sequence[int], folder: Path) -> list[str]:
    store = SqlStore.open(str(folder / "requests.db"))
    made = run(policy, store, "look_up", max(turns), lambda turn: turn)
    log = list(store.events(made))
    store.close()
    state = fold(made, log)
    left_out = {
        each.body.turn: each.body.left_out for each in log if isinstance(each.body, ModelAttemptStarted)
    }
    rows = ["| turn | next request (µs) | the same anew (µs) | ratio | tokens |", "|---|---|---|---|---|"]
    for turn in turns:
        tries = [next_request(policy, state, left_out, turn) for _ in range(5)]
        new, anew, tokens = min(tries)
        rows.append(
            f"| {turn:,} | {new:,.0f} | {anew:,.0f} | 1 : {anew / new:,.0f} | {tokens:,} of {LIMIT:,} |"
        )
    return rows


def hits(policy: Policy, folder: Path, turns: int = 200) -> list[str]:
    """A durable turn whose read is a hit, against one whose read is made; the tool itself takes no time."""
    cost = {}
    for name, number in (("read", lambda turn: turn), ("hit", lambda _: 1)):
        store = SqlStore.open(str(folder / f"{name}.db"))
        began = time.perf_counter()
        run(policy, store, "remembered", turns, number)  # type: ignore[arg-type]  # lambdas of int
        cost[name] = (time.perf_counter() - began) / turns * 1e6
        store.close()
    return [
        "| one durable turn | µs | ratio |",
        "|---|---|---|",
        f"| with a read that is made | {cost['read']:,.0f} | 1 |",
        f"| with a hit | {cost['hit']:,.0f} | {cost['hit'] / cost['read']:.2f} |",
    ]


def origins(policy: Policy, state: RunState, values: Sequence[int]) -> list[str]:
    rows = ["| recorded values | origin of one argument (µs) | of one with spaces (µs) |", "|---|---|---|"]
    for count in values:
        provenance = Provenance(policy, state, inline)  # type: ignore[arg-type]  # results are inline
        for index in range(count):
            provenance._add(f"value-{index}", ("trusted",), f"result[{index}]")
            if not index % 10:
                provenance._text(f"a text of row {index} in words", ("trusted",), f"result[{index}]", NOTHING)
        plain = best(lambda p=provenance: [p.places(f"value-{n}") for n in range(100)]) / 100  # type: ignore[misc]
        spaced = best(lambda p=provenance: [p.places("of row 777 in") for _ in range(10)]) / 10  # type: ignore[misc]
        rows.append(f"| {count:,} | {plain:,.1f} | {spaced:,.0f} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", default="10,100,1000")
    parser.add_argument("--values", default="100,1000,10000")
    given = parser.parse_args()
    policy = load_policy("p.policy.yaml", FILES)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("\n".join(requests(policy, [int(each) for each in given.turns.split(",")], folder)), end="\n\n")
        print("\n".join(hits(policy, folder)), end="\n\n")
        store = SqlStore.open(str(folder / "one.db"))
        made = run(policy, store, "look_up", 1, lambda turn: turn)
        state = fold(made, store.events(made))
        store.close()
        print("\n".join(origins(policy, state, [int(each) for each in given.values.split(",")])))


if __name__ == "__main__":
    main()
