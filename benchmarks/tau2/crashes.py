"""Owns the walk over crash points: every task killed at every one of them, resumed, and its end compared with gold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from benchmarks.tau2.play import Crash, Play, gold_of
from benchmarks.tau2.replays import suite_end
from benchmarks.tau2.world import World, environment, same, tasks, writes
from engine.domain.calls import Outcome
from engine.domain.events import ReceiptRecorded
from engine.domain.policy import Kind
from engine.runtime.audit import verify
from tau2.data_model.message import ToolCall
from tau2.data_model.tasks import Task
from tau2.environment.environment import Environment


class CrashAt:
    """Raises Crash at the n-th point; `points` says which were passed."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.points: list[str] = []

    def __call__(self, where: str) -> None:
        self.points.append(where)
        if len(self.points) == self.n:
            raise Crash(where)


@dataclass
class Blind:
    """What engines without our receipts would have ended with, at the same crash points around effects."""

    points: int = 0
    twice: int = 0
    """Wrong ends of an engine that sends again whatever has no receipt (at least once)."""
    never: int = 0
    """Wrong ends of an engine that skips whatever was started (at most once)."""


@dataclass
class Walk:
    domain: str
    tasks: int = 0
    points: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    matched: int = 0
    duplicates: int = 0
    """Points after which the world has an effect more often than gold has it."""
    losses: int = 0
    """Points after which the world lacks an effect of gold though the Run says it is complete."""
    lies: int = 0
    """Writes whose receipt says something else than the world."""
    parked: int = 0
    """Writes whose outcome was recorded as unknown."""
    by_probe: int = 0
    by_operator: int = 0
    again: int = 0
    """Writes that were proposed again because the first was known not to have been executed."""
    blind: Blind = field(default_factory=Blind)
    faults: list[str] = field(default_factory=list)

    def row(self) -> str:
        return (
            f"| {self.domain} | {self.tasks} | {self.points:,} | {self.matched:,} | {self.duplicates} | {self.losses} "
            f"| {self.lies} | {self.parked} | {self.by_probe} | {self.by_operator} | {self.again} "
            f"| {_share(self.blind.twice, self.blind.points)} | {_share(self.blind.never, self.blind.points)} |"
        )


HEAD = (
    "| domain | tasks | crash points | end as gold | duplicates | losses | receipts that say otherwise "
    "| parked as unknown | settled by the probe | by the operator | proposed again "
    "| blind at-least-once ends wrong | blind at-most-once ends wrong |\n|---|" + "---:|" * 12
)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.0%})" if whole else "-"


def walk(domain: str, only: int | None = None, every: int = 1) -> Walk:
    """Kills each task (or the first `only`) at each `every`-th point of its calm course."""
    found = Walk(domain)
    for task in tasks(domain)[:only]:
        found.tasks += 1
        gold = suite_end(domain, task)
        calm = CrashAt(0)
        reference = _played(found, task, calm, gold, None)
        for n in range(1, len(calm.points) + 1, every):
            found.points += 1
            found.kinds[calm.points[n - 1]] += 1
            _played(found, task, CrashAt(n), gold, reference)
        _blind(found.blind, domain, task, gold)
    return found


def _played(
    found: Walk, task: Task, point: CrashAt, gold: Environment, reference: Counter[str] | None
) -> Counter[str]:
    """Plays one task with one crash; without a reference, the calm course. Returns what the world's ledger holds."""
    world = World.of(found.domain, task)
    play = Play(found.domain, gold_of(task), world.call, lambda key: key in world.keys)
    play.start()
    state = play.to_the_end(point)
    ledger = Counter(world.ledger)
    if reference is None:
        return ledger
    where = f"{found.domain} {task.id} at point {point.n} ({point.points[point.n - 1]})"
    judge(found, play, world, where)
    if same(world.made, gold) and state.status == "completed":
        found.matched += 1
    else:
        found.faults.append(f"{where}: ends {state.status}, another database")
    if ledger - reference:
        found.duplicates += 1
        found.faults.append(f"{where}: more effects: {ledger - reference}")
    if reference - ledger:
        found.losses += 1
        found.faults.append(f"{where}: fewer effects: {reference - ledger}")
    return ledger


def judge(found: Walk, play: Play, world: World, where: str) -> None:
    """Holds each write's receipt against the world; counts what was unknown for a while and who settled it."""
    state = play.runtime().state(play.run)
    for call in state.calls.values():
        if call.kind is Kind.READ or call.kind is None or call.receipt is None or not call.attempts:
            continue
        happened = (call.idempotency_key or "") in world.keys
        if happened != (call.receipt.outcome is Outcome.CONFIRMED):
            found.lies += 1
            found.faults.append(
                f"{where}: {call.id} {call.tool} is {call.receipt.outcome}, happened: {happened}"
            )
        found.by_probe += call.receipt.settled_by == "probe"
        found.by_operator += call.receipt.settled_by == "operator"
        found.again += call.receipt.outcome is Outcome.NOT_EXECUTED
    receipts = [e.body for e in play.runtime().events(play.run) if isinstance(e.body, ReceiptRecorded)]
    found.parked += sum(1 for each in receipts if each.outcome is Outcome.UNKNOWN)
    if not verify(play.store, play.run).holds:
        found.faults.append(f"{where}: the hash chain is broken")


def _blind(found: Blind, domain: str, task: Task, gold: Environment) -> None:
    """Two crash points a write: just after the effect, where sending again doubles it, and just before, where
    skipping loses it."""
    actions = (task.evaluation_criteria.actions if task.evaluation_criteria else None) or []
    for index, action in enumerate(actions):
        if not writes(environment(domain, task), action.name):
            continue
        found.points += 1
        for times in (2, 0):
            made = environment(domain, task)
            for other, each in enumerate(actions):
                for _ in range(times if other == index else 1):
                    made.get_response(
                        ToolCall(id="x", name=each.name, arguments=each.arguments, requestor=each.requestor)
                    )
            wrong = not same(made, gold)
            found.twice += wrong and times == 2
            found.never += wrong and times == 0
