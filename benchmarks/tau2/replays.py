"""Owns the gold replays: each task's gold actions through the engine, its end compared with the suite's own."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from benchmarks.tau2.play import Play, gold_of
from benchmarks.tau2.world import World, environment, tasks
from engine.runtime.audit import verify
from tau2.data_model.message import ToolCall
from tau2.data_model.tasks import Task
from tau2.environment.environment import Environment


@dataclass
class Replays:
    domain: str
    tasks: int = 0
    actions: int = 0
    matched: int = 0
    """Database hashes equal, for both databases where there are two."""
    assertions: int = 0
    held: int = 0
    """Assertions that are true, of those that are true after the suite's own gold replay."""
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def row(self) -> str:
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        return (
            f"| {self.domain} | {self.tasks} | {self.actions} | {outcomes} | {self.matched} of {self.tasks} "
            f"| {self.held} of {self.assertions} | {self.seconds * 1000 / max(1, self.actions):.1f} |"
        )


HEAD = (
    "| domain | tasks | gold actions | outcomes in our log | database hash as the suite's | assertions "
    "| ms an action, tool included |\n|---|---:|---:|---|---:|---:|---:|"
)


def suite_end(domain: str, task: Task) -> Environment:
    """Where the suite's own replay of the gold actions ends, without the engine."""
    made = environment(domain, task)
    for action in (task.evaluation_criteria.actions if task.evaluation_criteria else None) or []:
        made.get_response(
            ToolCall(id="x", name=action.name, arguments=action.arguments, requestor=action.requestor)
        )
    return made


def hashes(made: Environment) -> tuple[str | None, str | None]:
    return made.get_db_hash(), made.get_user_db_hash()


def held(task: Task, made: Environment) -> list[bool]:
    """Each environment assertion of the task; asking changes nothing that a hash sees."""
    wanted = (task.evaluation_criteria.env_assertions if task.evaluation_criteria else None) or []
    return [made.run_env_assertion(each, raise_assertion_error=False) for each in wanted]


def replay(domain: str, full: bool = False, only: int | None = None) -> Replays:
    """Plays every task (or the first `only`) once, calmly."""
    found = Replays(domain)
    for task in tasks(domain, full)[:only]:
        _one(found, task)
    return found


def _one(found: Replays, task: Task) -> None:
    world = World.of(found.domain, task)
    gold = gold_of(task)
    play = Play(found.domain, gold, world.call, lambda key: key in world.keys)
    began = time.perf_counter()
    play.start()
    state = play.to_the_end()
    found.seconds += time.perf_counter() - began
    found.tasks += 1
    found.actions += len(gold)
    found.outcomes.update(
        call.receipt.outcome.value if call.receipt else call.status.value
        for call in state.calls.values()
        if call.tool != "finish"
    )
    reference = suite_end(found.domain, task)
    if hashes(world.made) == hashes(reference) and state.status == "completed":
        found.matched += 1
    else:
        found.faults.append(f"{found.domain} {task.id}: {state.status}, another database")
    if not verify(play.store, play.run).holds:
        found.faults.append(f"{found.domain} {task.id}: the hash chain is broken")
    _assertions(found, task, world.made, reference)


def _assertions(found: Replays, task: Task, ours: Environment, reference: Environment) -> None:
    for mine, theirs in zip(held(task, ours), held(task, reference), strict=True):
        found.assertions += 1
        found.held += mine
        if mine != theirs:
            found.faults.append(
                f"{found.domain} {task.id}: an assertion is {mine}, the suite's own is {theirs}"
            )
