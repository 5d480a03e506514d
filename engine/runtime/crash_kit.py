"""Owns the judgement of crash tests: where a tool's process is killed, and what its key and probe make of it.

The tool runs alone, under a policy that lets nothing but it through; everything else is the real Runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from engine.domain.canonical import digest_of
from engine.domain.errors import UsageError
from engine.domain.ids import CallId
from engine.domain.policy import Effect, Kind, Policy, Retry, Rule, ToolSpec, Unattended
from engine.domain.state import RunState

CALL: Final = CallId(1, 1)
ROLE: Final = "crash-test"


@dataclass(frozen=True, slots=True)
class Point:
    """Where the process is killed. `share`: of the tool's usual running time, after it was called."""

    name: str
    where: str
    nth: int = 1
    share: float = 0.0
    happened: bool | None = None
    """Whether the effect has happened there; None: nobody can say beforehand."""


POINTS: Final = (
    Point("the dispatch is recorded, the tool is not called", "before effect", happened=False),
    Point("the tool has just been called", "before effect", share=0.05),
    Point("the tool is half way", "before effect", share=0.5),
    Point("the tool is nearly done", "before effect", share=0.9),
    Point("the tool has answered, nothing is recorded", "after effect", happened=True),
    Point("the receipt is recorded", "after append", nth=3, happened=True),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """What one killed process left, after the Run was driven on by another."""

    point: Point
    outcome: str
    settled_by: str
    sent: int
    """Dispatches in all."""
    effects_at_kill: int | None = None
    effects: int | None = None
    """As the user's own counter says; None where there is none."""
    answered: bool = False
    """The tool was done before the kill came."""


@dataclass(frozen=True, slots=True)
class Verdict:
    trial: Trial
    fault: str = ""
    """What is wrong with the tool's declarations; empty where they hold up."""
    note: str = ""


def only(policy: Policy, tool: str) -> Policy:
    """The policy with one rule: this tool runs, unattended. Raises UsageError for what cannot be crash-tested."""
    spec = policy.tools.get(tool)
    if spec is None:
        known = ", ".join(policy.tools)
        raise UsageError(f"policy `{policy.id}` has no tool `{tool}`", remedy=f"its tools are: {known}")
    if spec.kind is Kind.READ:
        raise UsageError(f"`{tool}` is a read and has no effect", remedy="name a write or a hybrid")
    spec = replace(spec, exposed="model", compensate=None, holds=None)
    rule = Rule(
        id="crash-test", effect=Effect.ALLOW, tools=(tool,), matches=frozenset({tool}), roles=None, needs=(),
        when=None, unless=None, fresh=(), approval=None, unattended=Unattended("a crash test", 99),
        because=None, origin="policy", place=spec.place,
    )  # fmt: skip
    return replace(
        policy,
        digest=digest_of([policy.digest, "crash-test", tool]),
        tools={**policy.tools, tool: spec},
        roles=frozenset({ROLE}),
        may_start=frozenset({ROLE}),
        attrs={},
        rules=(rule,),
        rules_of={tool: (rule,)},
        hides=(),
        hides_of={},
        gates=(),
    )


def crash_at(point: Point, kill: Callable[[float], None]) -> Callable[[str], None]:
    """The driver's crash point: `kill` is told after how large a share of the tool's time the process ends."""
    seen = 0

    def hook(where: str) -> None:
        nonlocal seen
        if where != point.where:
            return
        seen += 1
        if seen == point.nth:
            kill(point.share)

    return hook


class Counts(NamedTuple):
    """Effects before a trial, when its process was dead, and after another one had driven on."""

    before: int
    at_kill: int
    after: int


def trial_of(point: Point, state: RunState, counts: Counts | None, *, answered: bool) -> Trial:
    """What is left of a trial, by its log and by the user's counter."""
    call = state.calls[CALL]
    receipt = call.receipt
    return Trial(
        point,
        receipt.outcome.value if receipt else "open",
        receipt.settled_by if receipt else "",
        call.attempts,
        None if counts is None else counts.at_kill - counts.before,
        None if counts is None else counts.after - counts.before,
        answered,
    )


def judge(spec: ToolSpec, trial: Trial) -> Verdict:
    """Whether what the Host came to believe is what happened, as far as that is known."""
    if trial.effects is not None and trial.effects > 1:
        return Verdict(trial, f"the effect happened {trial.effects} times: {_why_twice(spec)}")
    happened = _happened(trial)
    if trial.sent > 1:
        return _sent_again(spec, trial)
    if trial.outcome == "confirmed" and happened is False:
        return Verdict(trial, "it counts as confirmed, and nothing was done: `confirms` is true too early")
    if trial.outcome == "not_executed" and happened is True:
        return Verdict(trial, "it counts as not executed, and it was done: `refutes` is no proof of absence")
    if trial.outcome == "unknown":
        return Verdict(trial, note="nobody can tell: an operator must reconcile it")
    if trial.outcome == "not_executed" and happened is None:
        return Verdict(trial, note="not checked without a counter: it counts as not executed")
    return Verdict(trial)


def _happened(trial: Trial) -> bool | None:
    if trial.effects_at_kill is not None:
        return trial.effects_at_kill > 0
    return True if trial.answered else trial.point.happened


def _sent_again(spec: ToolSpec, trial: Trial) -> Verdict:
    if trial.effects is None:
        return Verdict(trial, note="sent again with the same key; not checked without a counter")
    if trial.outcome == "confirmed" and trial.effects == 0:
        return Verdict(trial, "it counts as confirmed after it was sent again, and nothing was done")
    assert spec.retry is not Retry.NEVER
    return Verdict(trial)


def _why_twice(spec: ToolSpec) -> str:
    if spec.retry is Retry.SAME_KEY:
        return "`retry: same_key` is declared, and the tool does not deduplicate by the key"
    return "the tool does it more than once by itself"
