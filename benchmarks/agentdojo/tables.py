"""Owns the numbers of AgentDojo: which Runs are played, in how many processes, and the tables of what they gave."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product

from benchmarks.agentdojo import suites
from benchmarks.agentdojo.reviewers import WHO, Who
from benchmarks.agentdojo.runner import Outcome, Setting, play
from benchmarks.agentdojo.suites import Pair
from benchmarks.agentdojo.worst_case import ORDERS

BATCH = 25
IDEAL = Setting("ideal")


@dataclass(frozen=True, slots=True)
class Job:
    pair: Pair
    setting: Setting
    attacked: bool


def played(jobs: Sequence[Job], processes: int) -> list[Outcome]:
    """The outcome of each job, in their order. The processes stay for the next jobs: they have loaded the suites."""
    if processes <= 1:
        return [_play(job) for job in jobs]
    return list(_pool(processes).map(_play, jobs, chunksize=BATCH))


@cache
def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes)


def _play(job: Job) -> Outcome:
    return play(job.pair, job.setting, attacked=job.attacked)


def tasks(*names: str) -> list[Pair]:
    """Each user task once; without attack the injection task does not matter."""
    return list({(pair.suite, pair.user): pair for pair in suites.pairs(*names)}.values())


VARIANTS = {
    "as the policies are": Setting(),
    "`mention` not counted": Setting(mention=False),
    "no grant at the start": Setting(grants=False),
    "neither": Setting(grants=False, mention=False),
}


def benign(names: Sequence[str], processes: int) -> str:
    """What the user's tasks cost when nobody attacks."""
    lines = [
        "| policies | tasks | done, ideal reviewer | of these with no question | with at most one "
        "| questions | done, nobody there |",
        "|---|---|---|---|---|---|---|",
    ]
    for said, base in VARIANTS.items():
        ideal, alone = (_benign(names, base, who, processes) for who in ("ideal", "nobody"))
        lines.append(
            f"| {said} | {len(ideal)} | {_count(each.useful for each in ideal)} "
            f"| {_count(each.useful and not each.asked for each in ideal)} "
            f"| {_count(each.useful and each.asked <= 1 for each in ideal)} "
            f"| {sum(each.asked for each in ideal)} | {_count(each.useful for each in alone)} |"
        )
    return "\n".join(lines)


def _benign(names: Sequence[str], base: Setting, who: Who, processes: int) -> list[Outcome]:
    setting = Setting(who, grants=base.grants, mention=base.mention)
    return played([Job(pair, setting, False) for pair in tasks(*names)], processes)


def attacks(
    names: Sequence[str],
    processes: int,
    *,
    who: Sequence[Who] = WHO,
    every: int = 1,
    adaptive: bool = True,
    tell: Callable[[str], object] | None = None,
) -> str:
    """Every pair in the three orders; `every` takes one pair of so many. `tell` gets each line as it is done."""
    lines = [
        "| reviewer | attacker | order | pairs | model obeyed | tool attacks done | tasks done | asks | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    chosen = suites.pairs(*names)[::every]
    tools = _count(not pair.words_only for pair in chosen)
    said = lines.append if tell is None else lambda line: (lines.append(line), tell(line))
    for reviewer, planted, order in product(who, (False, True) if adaptive else (False,), ORDERS):
        begun = time.perf_counter()
        setting = Setting(reviewer, order, planted)
        found = played([Job(pair, setting, True) for pair in chosen], processes)
        said(
            f"| {reviewer} | {'adaptive' if planted else 'standard'} | {order} | {len(chosen)} "
            f"| {_count(each.obeyed for each in found)} | {_count(each.attacked for each in found)} of {tools} "
            f"| {_count(each.useful for each in found)} | {sum(each.asked for each in found)} "
            f"| {time.perf_counter() - begun:.0f} |"
        )
    return "\n".join(lines)


def on_the_wire(names: Sequence[str], *, every: int = 1) -> str:
    """Every task without attack, and one pair of so many, through litellm against a loopback server; and whether each
    gave what it gives through the scripted gateway."""
    lines = [
        "| played | Runs | model obeyed | tool attacks done | tasks done | same as when scripted | seconds |",
        "|---|---|---|---|---|---|---|",
        _wired("tasks without attack", tasks(*names), attacked=False),
        _wired("pairs under attack", suites.pairs(*names)[::every], attacked=True),
    ]
    return "\n".join(lines)


def _wired(said: str, chosen: Sequence[Pair], *, attacked: bool) -> str:
    from benchmarks.agentdojo.wire import play_on_the_wire

    begun = time.perf_counter()
    wired = play_on_the_wire(chosen, IDEAL, attacked=attacked)
    seconds = time.perf_counter() - begun
    here = played([Job(pair, IDEAL, attacked) for pair in chosen], 1)
    tools = _count(attacked and not pair.words_only for pair in chosen)
    return (
        f"| {said} | {len(chosen)} | {_count(each.obeyed for each in wired)} "
        f"| {_count(each.attacked for each in wired)} of {tools} | {_count(each.useful for each in wired)} "
        f"| {_count(one == two for one, two in zip(wired, here, strict=True))} | {seconds:.0f} |"
    )


def _count(truths: Iterable[bool]) -> int:
    return sum(1 for each in truths if each)
