"""Owns how the cost of one event grows with the length of its Run: a person's word, an unsettled effect, an undoing.

    python -m benchmarks.long_runs [--events 100,1000,5000]

Each figure is the median of what is asked for over the same Run, as a multiple of that of the shortest Run: 1.0 does
not grow. In memory and in one process, so that nothing but the engine's own work is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import time
from collections.abc import Callable, Sequence

from engine.adapters.function_tools import FunctionTools
from engine.adapters.memory_store import MemoryStore
from engine.adapters.processes import this_process
from engine.adapters.scripted_gateway import ScriptedGateway
from engine.adapters.system_clock import SystemClock
from engine.domain.actors import Principal
from engine.domain.events import Event
from engine.domain.ids import RunId
from engine.policy.compiler import load_policy
from engine.ports import ModelRequest, ModelResponse, ProposedCall
from engine.runtime.runtime import Parts, Runtime

FILES = {
    "p.policy.yaml": """
agentctl: policy/v1
id: long
version: 1
owner: benchmarks
tool_specs: [t.tools.yaml]
principals: {roles: [user], may_start: [user]}
permissions:
  - {id: look, effect: allow, roles: [user], tools: [look_up]}
  - id: change
    effect: allow
    roles: [user]
    tools: [note, book, charge]
    unattended: {because: "a benchmark", max_per_run: 1000000}
gates: {finish: []}
budgets: {turns: 1000000, cost_usd: "1.00", wall_time: 24h, calls: {total: 1000000}, no_progress_turns: 1000000}
model: {primary: {id: openai/gpt-5-mini-2025-08-07}}
""",
    "t.tools.yaml": """
agentctl: tools/v1
id: long
tools:
  look_up:
    kind: read
    handler: "python:nowhere:look_up"
    description: "Look one number up."
    params: {number: {type: int, min: 0, max: 100000000}}
  note:
    kind: write
    handler: "python:nowhere:note"
    description: "Note one number."
    params: {number: {type: int, min: 0, max: 100000000}}
    effects: [note.add]
    idempotency: {key: [call.id]}
    reconcile: {manual: "Read the notes"}
  charge:
    kind: write
    handler: "python:nowhere:charge"
    description: "Charge one number."
    params: {number: {type: int, min: 0, max: 100000000}}
    effects: [card.charge]
    idempotency: {key: [call.id]}
    reconcile: {probe: find, args: {key: idempotency_key}, confirms: "result.found"}
  book:
    kind: write
    handler: "python:nowhere:book"
    description: "Book one number."
    params: {number: {type: int, min: 0, max: 100000000}}
    reversible: true
    effects: [room.book]
    idempotency: {key: [call.id]}
    reconcile: {manual: "Read the books"}
    compensate: {tool: unbook, args: {number: args.number}, on: [run_cancelled]}
  find:
    kind: read
    exposed: host
    handler: "python:nowhere:find"
    params: {key: {type: id}}
    result: {found: {type: bool}}
  unbook:
    kind: write
    exposed: host
    handler: "python:nowhere:unbook"
    params: {number: {type: int, min: 0, max: 100000000}}
    effects: [room.free]
    idempotency: {key: [number]}
    reconcile: {manual: "Read the books"}
""",
}
POLICY = load_policy("p.policy.yaml", FILES)
USER = Principal(id="b", roles=("user",))
AGAIN = 30
"""How often what is measured is done at the end of each Run."""


async def fine(**_: object) -> dict[str, object]:
    return {}


async def absent(**_: object) -> dict[str, object]:
    return {"found": False}


async def lost(**_: object) -> dict[str, object]:
    raise ConnectionError("the answer was lost")


HANDLERS: dict[str, Callable[..., object]] = {
    "look_up": fine, "note": fine, "book": fine, "unbook": fine, "charge": lost, "find": absent,
}  # fmt: skip


class Played:
    """A Run in which the model calls one tool a turn, with what happens while it is asked."""

    def __init__(self, tools: Sequence[str], heard: Callable[[int], None] = lambda _: None) -> None:
        self.marks: list[float] = []
        """When each turn was asked for."""
        self.undone: list[float] = []

        def respond(request: ModelRequest) -> ModelResponse:
            self.marks.append(time.perf_counter())
            heard(request.turn)
            at = request.turn - 1
            if at >= len(tools):
                self.runtime.cancel(self.run, by=USER.actor())
                return ModelResponse("bench", "that was all")
            call = ProposedCall(tools[at], f'{{"number":{request.turn}}}', f"call_{request.turn}")
            return ModelResponse("bench", "", calls=(call,), finish="tool_calls")

        gateway = ScriptedGateway.from_turns([respond] * (len(tools) + 2))
        parts = Parts(
            MemoryStore(), gateway, FunctionTools(HANDLERS), SystemClock(), this_process(), "scripted/b"
        )
        self.runtime = Runtime(parts, POLICY)
        self.run: RunId = self.runtime.start("go on", principal=USER)

    def play(self) -> None:
        gc.collect()
        gc.disable()
        asyncio.run(self.runtime.drive(self.run, observers=[self._saw]))
        gc.enable()

    def _saw(self, event: Event, _state: object) -> None:
        if event.kind == "ExecutionStarted" and event.body.host is not None:  # type: ignore[attr-defined]
            self.undone.append(time.perf_counter())


def word(events: int) -> float:
    """Seconds of a turn in which a person says something, less what the person's own process does."""
    spent = {}

    def heard(turn: int) -> None:
        if turn > turns and turn % 2:
            began = time.perf_counter()
            played.runtime.reply(played.run, "also this", by=USER.actor())
            spent[turn] = time.perf_counter() - began

    turns = events // 4
    played = Played(["look_up"] * (turns + 2 * AGAIN), heard)
    played.play()
    taken = [after - before for before, after in zip(played.marks, played.marks[1:], strict=False)]
    return median([taken[turn - 1] - less for turn, less in spent.items() if turn <= len(taken)])


def unsettled(events: int) -> float:
    """Seconds of a turn with a write, after as many effects that nobody has settled."""
    played = Played(["charge"] * (events // 8) + ["note"] * AGAIN)
    played.play()
    taken = [after - before for before, after in zip(played.marks, played.marks[1:], strict=False)]
    return median(taken[-AGAIN:])


def undoing(events: int) -> float:
    """Seconds of one undoing, after as many writes that nothing undoes."""
    played = Played(["book"] * AGAIN + ["note"] * (events // 4))
    played.play()
    taken = [after - before for before, after in zip(played.undone, played.undone[1:], strict=False)]
    assert len(taken) == AGAIN - 1
    return median(taken)


ROWS: dict[str, Callable[[int], float]] = {
    "a person's word while the model is asked": word,
    "a turn after effects that nobody settled": unsettled,
    "one undoing after writes that nothing undoes": undoing,
}


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", default="100,1000,5000")
    logging.getLogger("agentctl.tools").setLevel(logging.CRITICAL)  # lost answers are what is measured
    lengths = [int(each) for each in parser.parse_args().events.split(",")]
    print(f"| events before it | {' | '.join(f'{each:,}' for each in lengths)} | µs at the first |")
    print(f"|---|{'---:|' * (len(lengths) + 1)}")
    for name, measure in ROWS.items():
        taken = [measure(each) for each in lengths]
        ratios = " | ".join(f"{each / taken[0]:.1f}" for each in taken)
        print(f"| {name} | {ratios} | {taken[0] * 1e6:,.0f} |")


if __name__ == "__main__":
    main()
