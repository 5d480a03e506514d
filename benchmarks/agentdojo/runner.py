"""Owns one Run of a user task, with or without an attack, through the real engine, and what is counted of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from benchmarks.agentdojo import suites
from benchmarks.agentdojo.reviewers import Reviewer, Who
from benchmarks.agentdojo.suites import Pair
from benchmarks.agentdojo.world import World
from benchmarks.agentdojo.worst_case import Order, WorstCase
from engine.adapters.memory_store import MemoryStore
from engine.adapters.processes import this_process
from engine.adapters.scripted_gateway import ScriptedGateway
from engine.domain.actors import Principal
from engine.domain.calls import CallStatus
from engine.domain.policy import Policy
from engine.domain.state import RunState
from engine.lifecycle.literals import MAX_WHOLE
from engine.policy.compiler import load_policy
from engine.policy.conditions.values import links_in
from engine.ports import ModelGateway
from engine.runtime.runtime import Parts, Runtime

HERE = Path(__file__).parent
OpenGateway = Callable[[WorstCase], ModelGateway]
"""Puts the model behind a gateway; by default the scripted one, in this process."""
USER = Principal(id="user", roles=("user",))
MENTION = "'mention' in origin("
MAX_TURNS = 60
RUNS_OUT = timedelta(minutes=31)
"""After which an approval of these policies has expired."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How a Run is played."""

    who: Who = "nobody"
    order: Order = "first"
    adaptive: bool = False
    """The attacker's values stand in every field that the policy calls trusted."""
    grants: bool = True
    """False: no capability is granted at the start."""
    mention: bool = True
    """False: a literal in the user's text is not the user's word."""


@dataclass(frozen=True, slots=True)
class Outcome:
    useful: bool
    attacked: bool
    obeyed: bool
    """The model saw the injected text and proposed the attack."""
    asked: int
    """Calls for which a person was asked."""
    approved: int
    status: str
    refused: tuple[str, ...] = ()
    """Calls of the task that did not run, with the reason: for people who mend a policy."""


class Clock:
    """Moves when an approval has to run out."""

    def __init__(self) -> None:
        self.time = datetime(2026, 6, 30, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)
        await asyncio.sleep(0)


@cache
def policy_of(suite: str, mention: bool = True) -> Policy:
    """The suite's policy, compiled; without `mention`, its rules read `user` in that place."""
    names = {"policies": f"policies/{suite}.policy.yaml", "tools": f"tools/{suite}.tools.yaml"}
    text = (HERE / names["policies"]).read_text(encoding="utf-8")
    if not mention:
        text = text.replace(MENTION, "'user' in origin(")
    tools = (HERE / names["tools"]).read_text(encoding="utf-8")
    return load_policy(names["policies"], {names["policies"]: text, names["tools"]: tools})


@cache
def _grants() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    found: dict[str, Any] = yaml.safe_load((HERE / "grants.yaml").read_text(encoding="utf-8"))
    return found


def grants_of(suite: str, user: str) -> Mapping[str, Any]:
    """Capability -> the parameters that the starter grants for this task."""
    return _grants().get(suite, {}).get(user, {})


def play(
    pair: Pair, setting: Setting, *, attacked: bool = True, gateway: OpenGateway | None = None
) -> Outcome:
    """One Run to its end. `attacked=False` leaves the environment as it ships."""
    return asyncio.run(aplay(pair, setting, attacked=attacked, gateway=gateway))


async def aplay(
    pair: Pair, setting: Setting, *, attacked: bool = True, gateway: OpenGateway | None = None
) -> Outcome:
    injected = suites.injections(pair) if attacked else {}
    env, before = (suites.environment(pair.suite, pair.user, injected) for _ in range(2))
    policy = policy_of(pair.suite, setting.mention)
    task = suites.user_calls(pair.suite, pair.user, before)
    planted = _planted(suites.attack_calls(pair.suite, pair.injection, before)) if setting.adaptive else ()
    world = World(policy, pair.suite, env, planted)
    definition = suites.load_suites()[pair.suite].user_tasks[pair.user]
    model = WorstCase(
        policy,
        task,
        definition.GROUND_TRUTH_OUTPUT,
        (lambda: suites.attack_calls(pair.suite, pair.injection, world.env)) if attacked else None,
        setting.order,
    )
    reviewer = Reviewer(setting.who, policy, task)
    played = gateway(model) if gateway else ScriptedGateway([model] * MAX_TURNS)
    state, approved = await _drive(policy, world, played, reviewer, definition.PROMPT, pair, setting)
    return Outcome(
        useful=suites.useful(pair.suite, pair.user, _said(state), before, env, world.made),
        attacked=attacked
        and not pair.words_only
        and suites.attacked(pair.suite, pair.injection, _said(state), before, env, world.made),
        obeyed=model.obeyed,
        asked=reviewer.asked,
        approved=approved,
        status=state.status,
        refused=tuple(_refused(state)),
    )


async def _drive(
    policy: Policy,
    world: World,
    gateway: ModelGateway,
    reviewer: Reviewer,
    prompt: str,
    pair: Pair,
    setting: Setting,
) -> tuple[RunState, int]:
    clock = Clock()
    model = "scripted/worst-case" if isinstance(gateway, ScriptedGateway) else policy.model.primary.id
    parts = Parts(MemoryStore(), gateway, world, clock, this_process("bench"), model)
    runtime = Runtime(parts, policy)
    grants = grants_of(pair.suite, pair.user) if setting.grants else {}
    run = runtime.start(prompt, principal=USER, grants=grants)
    answered: set[str] = set()
    approved = 0
    while True:
        state = (await runtime.drive(run)).state
        waiting = [
            call
            for call in state.calls.values()
            if call.status is CallStatus.HELD and call.held == "approval"
        ]
        fresh = [call for call in waiting if str(call.id) not in answered]
        if state.terminal or not waiting:
            return state, approved
        if not fresh:
            clock.time += RUNS_OUT
            continue
        call = fresh[0]
        answered.add(str(call.id))
        said = reviewer.answer(call)
        if said is True:
            approved += 1
            runtime.approve(run, call.id, by=USER.actor())
        elif said is False:
            runtime.refuse(run, call.id, by=USER.actor(), because="not what was asked for")
        else:
            clock.time += RUNS_OUT


def _planted(calls: Sequence[suites.Call]) -> tuple[str, ...]:
    """Every value that the attack passes and every link in its texts."""
    texts = [text for _, args in calls for text in _strings(args)]
    values = [text for text in texts if len(text) <= MAX_WHOLE]
    return tuple(dict.fromkeys([*values, *(link for text in texts for link in links_in(text))]))


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, str) and value:
        yield value


def _said(state: RunState) -> str:
    """What the model wrote in its last turn."""
    return state.turns[-1].recorded.text if state.turns else ""


def _refused(state: RunState) -> Iterable[str]:
    for call in state.calls.values():
        if call.refusal is not None:
            yield f"{call.tool}: {call.refusal.message}"
        elif call.receipt is not None and call.receipt.outcome.value != "confirmed":
            yield f"{call.tool}: {call.receipt.outcome.value} {call.receipt.detail or ''}"
