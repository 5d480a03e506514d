"""Owns the running of test files: case by case, each on a store of its own, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.domain.diagnostics import Location
from engine.domain.errors import AgentctlError
from engine.domain.policy import Policy, Rule
from engine.policy.case_files import CaseFile
from engine.policy.documents.test import CasePart, TurnPart
from engine.ports import EventStore
from engine.runtime.scenario.checks import Failure, check
from engine.runtime.scenario.coverage import deciding_rules
from engine.runtime.scenario.play import Play


@dataclass(slots=True)
class CaseResult:
    id: str
    place: Location
    checks: int = 0
    """Expectations that were evaluated."""
    failures: list[Failure] = field(default_factory=list)
    decided: frozenset[str] = frozenset()
    """Rules that decided something."""

    @property
    def verdict(self) -> str:
        """`ok`, `FAIL`, or `EMPTY`: a case that checks nothing proves nothing."""
        if self.failures:
            return "FAIL"
        return "ok" if self.checks else "EMPTY"


@dataclass(frozen=True, slots=True)
class FileResult:
    file: str
    policy: Policy
    cases: tuple[CaseResult, ...]
    whole: bool = True
    """Every case of the file was run."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules of the policy itself; those of overlays are tested where the overlay is."""
        return tuple(rule for rule in self.policy.rules if rule.origin == "policy")

    @property
    def untested(self) -> tuple[Rule, ...]:
        """Rules that no case made decide anything (T102)."""
        decided = frozenset().union(*(case.decided for case in self.cases))
        return tuple(rule for rule in self.rules if rule.id not in decided)

    @property
    def failed(self) -> int:
        return sum(1 for case in self.cases if case.verdict != "ok")


def run_file(cases: CaseFile, new_store: Callable[[], EventStore], only: str | None = None) -> FileResult:
    """Runs the cases of a file, or the one that `only` names. `new_store` makes an empty store for each."""
    chosen = [case for case in cases.cases if only in (None, case.id)]
    results = tuple(run_case(cases.policy, case, new_store()) for case in chosen)
    return FileResult(cases.file, cases.policy, results, whole=len(chosen) == len(cases.cases))


def run_case(policy: Policy, case: CasePart, store: EventStore) -> CaseResult:
    """Plays one case through the engine, in a store that nobody else uses."""
    return asyncio.run(_case(policy, case, store))


async def _case(policy: Policy, case: CasePart, store: EventStore) -> CaseResult:
    result = CaseResult(case.id, case.place("id"))
    play = Play(policy, store)
    try:
        play.start(case.given)
    except AgentctlError as error:
        result.failures.append(Failure(case.given.here, 0, f"the Run cannot start: {error.message}"))
        return result
    for number, turn in enumerate(case.turns, start=1):
        if not await _turn(play, number, turn, result):
            break
    result.decided = deciding_rules(policy, play.run, store.events(play.run))
    return result


async def _turn(play: Play, number: int, part: TurnPart, result: CaseResult) -> bool:
    """Plays and checks one turn; False if the case cannot go on."""
    try:
        played = await play.turn(part)
    except AgentctlError as error:
        result.failures.append(Failure(part.here, number, error.message))
        return False
    if part.expect is not None:
        checks = check(part.expect, played)
        result.checks += len(checks)
        result.failures += [Failure(each.place, number, each.fault) for each in checks if each.fault]
    if played.not_asked:
        message = f"the model is not asked: {played.not_asked}"
        result.failures.append(Failure(part.key_place("propose"), number, message))
        return False
    return True
