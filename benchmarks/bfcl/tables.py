"""Owns the numbers of BFCL: every schema compiled, every gold call judged, every mutant refused beside its sibling."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any

from benchmarks.agentdojo.runner import Clock
from benchmarks.bfcl.corpus import Args, Question, questions, schemas
from benchmarks.bfcl.mutants import KINDS, mutants
from benchmarks.bfcl.specs import json_schema, sent, tool_name, translated
from engine.adapters.memory_store import MemoryStore
from engine.adapters.processes import this_process
from engine.adapters.scripted_gateway import ScriptedGateway
from engine.adapters.wire.names import ToolNames, wire_name
from engine.domain.actors import Principal
from engine.domain.calls import Outcome
from engine.domain.ids import CallId
from engine.domain.policy import Policy
from engine.domain.state import CallState
from engine.policy.compiler import load_policy
from engine.ports import ModelRequest, ModelResponse, ProposedCall, ToolRequest
from engine.runtime.runtime import Parts, Runtime

USER = Principal(id="user", roles=("user",))
_POLICY = """
agentctl: policy/v1
id: bfcl
version: 1
owner: benchmark
tool_specs: [bfcl.tools.yaml]
principals: {roles: [user], may_start: [user]}
permissions:
  - {id: everything, effect: allow, roles: [user], tools: TOOLS}
gates: {finish: []}
budgets: {turns: 100, cost_usd: "1.00", wall_time: 1h, calls: {total: 1000}}
model: {primary: {id: openai/gpt-5-mini-2025-08-07}}
"""


def run() -> None:
    """The handler that the specs name; calls go to `_Everything`."""


class _Everything:
    """Executes any call by saying so."""

    async def execute(self, request: ToolRequest) -> object:
        return {"ran": request.spec.name}

    def check(self, specs: object) -> list[str]:
        del specs
        return []


@dataclass(slots=True)
class Judged:
    """What one question gave; sums of several are the same."""

    contracts: int = 0
    tools: int = 0
    gold: int = 0
    invalid: int = 0
    """Gold calls that their own schema refuses."""
    let_through: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Valid gold calls that did not run."""
    mutants: Counter[str] = field(default_factory=Counter)
    survived: list[str] = field(default_factory=list)
    """Mutants that ran, were refused without naming the field, or whose sibling did not run."""

    def add(self, other: Judged) -> None:
        self.contracts += other.contracts
        self.tools += other.tools
        self.gold += other.gold
        self.invalid += other.invalid
        self.let_through += other.let_through
        self.refused += other.refused
        self.mutants.update(other.mutants)
        self.survived += other.survived


def compiled(functions: Sequence[Any]) -> Policy:
    """A policy that permits these functions, through the whole compiler."""
    known = [translated(each) for each in functions]
    tools = {each.name: each.spec for each in known}
    spec = {"agentctl": "tools/v1", "id": "bfcl", "tools": tools}
    policy = _POLICY.replace("TOOLS", json.dumps(list(tools)))
    files = {"bfcl.policy.yaml": policy, "bfcl.tools.yaml": json.dumps(spec, ensure_ascii=False)}
    return load_policy("bfcl.policy.yaml", files)


@dataclass(slots=True)
class _Turn:
    calls: list[tuple[str, Args]]
    kind: str = ""
    field: str = ""


def judge(question: Question, *, mutated: bool = True) -> Judged:
    """One question: its functions as a contract, its gold calls in one response, each mutant beside a valid call."""
    found = Judged(contracts=1, tools=len(question.functions), gold=len(question.gold))
    known = {each["name"]: each for each in question.functions}
    policy = compiled(question.functions)
    valid = [_is_valid(known[name], args) for name, args in question.gold]
    found.invalid = valid.count(False)
    turns = _turns(question, known, valid if mutated else [])
    seen, states = asyncio.run(_played(policy, turns))
    _check_contract(seen, policy)
    for index, ok in enumerate(valid, 1):
        ran = _ran(states.get(CallId(1, index)))
        said = f"{question.id} {question.gold[index - 1]}"
        if ran and not ok:
            found.let_through.append(said)
        if ok and not ran:
            refusal = states[CallId(1, index)].refusal
            found.refused.append(f"{said}: {refusal.message if refusal else ''}")
    for number, turn in enumerate(turns[1:], 2):
        found.mutants[turn.kind] += 1
        if not _refused_well(states.get(CallId(number, 1)), turn) or not _ran(states.get(CallId(number, 2))):
            found.survived.append(f"{question.id} {turn.kind} `{turn.field}` {turn.calls[0]}")
    return found


def _is_valid(function: Any, args: Args) -> bool:
    import jsonschema_rs

    return bool(jsonschema_rs.validator_for(json_schema(function["parameters"])).is_valid(args))


def _turns(question: Question, known: dict[str, Any], valid: list[bool]) -> list[_Turn]:
    turns = [_Turn([(tool_name(name), sent(known[name], args)) for name, args in question.gold])]
    for (name, args), ok in zip(question.gold, valid, strict=False):  # none where no mutants are wanted
        if not ok:
            continue
        good, params = sent(known[name], args), translated(known[name]).spec["params"]
        for kind, at, bad in mutants(known[name], good, params):
            turns.append(_Turn([(tool_name(name), bad), (tool_name(name), good)], kind, at))
    return turns


async def _played(
    policy: Policy, turns: Sequence[_Turn]
) -> tuple[list[ModelRequest], dict[CallId, CallState]]:
    seen: list[ModelRequest] = []

    def play(turn: _Turn) -> Any:
        def respond(request: ModelRequest) -> ModelResponse:
            if not seen:
                seen.append(request)
            return _response(turn.calls)

        return respond

    scripted = ScriptedGateway.from_turns([*map(play, turns), _response([("finish", {})])])
    parts = Parts(MemoryStore(), scripted, _Everything(), Clock(), this_process("bench"), "scripted/bfcl")
    runtime = Runtime(parts, policy)
    driven = await runtime.drive(runtime.start("please", principal=USER))
    return seen, dict(driven.state.calls)


def _response(calls: Sequence[tuple[str, Args]]) -> ModelResponse:
    proposed = tuple(ProposedCall(name, json.dumps(args, ensure_ascii=False)) for name, args in calls)
    finish: Any = "tool_calls" if proposed else "stop"
    return ModelResponse(model="scripted", calls=proposed, finish=finish, cost_usd=Decimal(0))


def _check_contract(seen: Sequence[ModelRequest], policy: Policy) -> None:
    """Every tool is offered, under a name of its own that every provider takes, and that leads back."""
    offered = {tool.name for request in seen for tool in request.tools}
    absent = set(policy.tools) - offered
    names = ToolNames(offered)
    astray = [name for name in offered if names.host_name(wire_name(name)) != name]
    if absent or astray:
        raise AssertionError(f"not offered: {sorted(absent)}, no way back: {sorted(astray)}")


def _ran(call: CallState | None) -> bool:
    return call is not None and call.receipt is not None and call.receipt.outcome is Outcome.CONFIRMED


def _refused_well(call: CallState | None, turn: _Turn) -> bool:
    """Rejected for its arguments, and the message and the field name what is wrong."""
    if call is None or call.refusal is None or call.refusal.code != "invalid_arguments":
        return False
    return call.refusal.field == turn.field and turn.field in call.refusal.message


def judged(processes: int = 1) -> str:
    """The whole of it as Markdown."""
    total, other = Judged(), Judged()
    again = [each for each in questions(filled=True) if each.gold]
    with ProcessPoolExecutor(max(processes, 1)) as pool:
        for each in pool.map(judge, questions(), chunksize=50):
            total.add(each)
        for each in pool.map(partial(judge, mutated=False), again, chunksize=50):
            other.add(each)
    unsaid: Counter[str] = Counter()
    alone = 0
    for function in schemas():
        unsaid.update(translated(function).unsaid)
        alone += bool(compiled([function]).tools)
    names = {function["name"] for function in schemas()}
    mapped = {name for name in names if wire_name(name) != name}
    back = ToolNames(names)
    astray = [name for name in names if back.host_name(wire_name(name)) != name]
    lines = [
        "| what | number |",
        "|---|---|",
        f"| distinct schemas, each compiled by itself | {alone} of {len(schemas())} |",
        f"| contracts of whole questions, with tools | {total.contracts}, {total.tools} |",
        f"| tool names; mapped on the wire; that do not lead back | {len(names)}; {len(mapped)}; {len(astray)} |",
        f"| gold calls; invalid by their own schema | {total.gold}; {total.invalid} |",
        f"| invalid gold calls that ran | {len(total.let_through)} |",
        f"| valid gold calls that were refused | {len(total.refused)} |",
        f"| the same with every optional argument filled in; invalid | {other.gold}; {other.invalid} |",
        f"| of these, invalid ones that ran; valid ones refused | {len(other.let_through)}; {len(other.refused)} |",
        *(f"| mutants: {kind} | {total.mutants[kind]} |" for kind in KINDS),
        f"| mutants not refused with an attributable error, or whose sibling did not run | {len(total.survived)} |",
    ]
    lines += ["", "What the language says otherwise, by schemas:", ""]
    lines += [f"- {said}: {count}" for said, count in unsaid.most_common()]
    worst = [*total.let_through, *other.let_through, *total.refused, *other.refused, *total.survived][:20]
    return "\n".join(
        [*lines, *(["", "Not as they should be:", ""] if worst else []), *(f"- {each}" for each in worst)]
    )
