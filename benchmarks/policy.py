"""Owns the cost of the policy language: decisions, contracts and lint, beside cedarpy on an equivalent policy.

    python -m benchmarks.policy [--tools 300] [--files 1000]

Cedar gets its policies parsed once (`PolicySet`) and its entities parsed once (`Entities`); both sides must give the
same answers before anything is measured. `cedarpy` is in the extra `bench`. Times are processor time, the best of
several rounds, so that a busy machine matters less.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.domain.actors import HOST, Principal
from engine.domain.facts import Facts
from engine.domain.ids import RunId
from engine.domain.policy import Policy
from engine.domain.state import RunState, SliceState
from engine.policy import contract
from engine.policy.compiler import compile_policy, load_policy
from engine.policy.contract import ContractCompiler
from engine.policy.decision import Verdict, decide
from engine.policy.linter import lint
from engine.policy.view import FactsView, for_call, tool_facts

NOW = datetime(2026, 6, 30, 12, tzinfo=UTC)
ROOT = Path(__file__).parent.parent
FLAGS = 50

POLICY = """\
agentctl: policy/v1
id: bench
version: 1
owner: benchmarks
tool_specs: [bench.tools.yaml]
principals: {{roles: [user, auditor], may_start: [user, auditor]}}
task:
  kind: {{type: enum, values: [fix, upgrade, incident]}}
permissions:
{rules}
state:
  flags:
    fields:
{flags}
gates: {{finish: []}}
budgets: {{turns: 30, cost_usd: "1.00", wall_time: 1h, calls: {{total: 500}}}}
model: {{primary: {{id: openai/gpt-5-mini-2025-08-07}}, fallbacks: [{{id: anthropic/claude-sonnet-4-5-20250929}}]}}
tests: [bench.test.yaml]
"""
RULES = """\
  - id: may-{n}
    effect: allow
    roles: [user, auditor]
    tools: [tool_{n}]
    when: "args.amount <= {limit} && task.kind in ['fix', 'incident']"
  - id: not-{n}
    effect: deny
    tools: [tool_{n}]
    when: "state.flags.f{flag} && args.mode == 'fast'"
"""
TOOL = """\
  tool_{n}:
    kind: read
    handler: "python:nowhere:tool_{n}"
    description: "Look at thing {n} in one of three modes."
    params:
      amount: {{type: int, min: 0, max: 100000}}
      mode: {{type: enum, values: [fast, exact, dry]}}
"""
TEST = """\
agentctl: test/v1
policy: bench.policy.yaml
cases:
  - id: look
    given: {principal: {id: u, roles: [user]}, task: {kind: fix}}
    turns:
      - propose: [{call: tool_0, args: {amount: 1, mode: dry}}]
        expect: {calls: [{outcome: confirmed}]}
"""
CEDAR = """\
permit(principal in Role::"user", action == Action::"tool_{n}", resource)
when {{ context.amount <= {limit} && ["fix", "incident"].contains(context.kind) }};
permit(principal in Role::"auditor", action == Action::"tool_{n}", resource)
when {{ context.amount <= {limit} && ["fix", "incident"].contains(context.kind) }};
forbid(principal, action == Action::"tool_{n}", resource)
when {{ context.flag && context.mode == "fast" }};
"""


def _numbers(n: int) -> dict[str, int]:
    return {"n": n, "limit": 100 + n, "flag": n % FLAGS}


def texts(tools: int, name: str = "bench") -> dict[str, str]:
    """A policy with two rules for each tool, and its tools."""
    rules = "".join(RULES.format(**_numbers(n)) for n in range(tools)).rstrip()
    flags = "\n".join(f"      f{n}: {{type: bool}}" for n in range(min(FLAGS, tools)))
    specs = "".join(TOOL.format(n=n) for n in range(tools))
    found = {
        "bench.policy.yaml": POLICY.format(rules=rules, flags=flags),
        "bench.tools.yaml": f"agentctl: tools/v1\nid: bench\ntools:\n{specs}",
        "bench.test.yaml": TEST,
    }
    return {file.replace("bench", name): text.replace("bench.", f"{name}.") for file, text in found.items()}


def run_state(flagged: int | None = None) -> RunState:
    state = RunState(RunId("r"), status="proposing", policy="bench")
    state.principal = Principal(id="u", roles=("user",))
    state.task = {"kind": "fix"}
    state.state["flags"] = SliceState({f"f{n}": n == flagged for n in range(FLAGS)}, 1, NOW, HOST)
    return state


def best(
    work: Callable[[], object],
    rounds: int = 7,
    repeat: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Seconds of one `work`: the least of several rounds."""
    found = []
    for _ in range(rounds):
        started = clock()
        for _ in range(repeat):
            work()
        found.append((clock() - started) / repeat)
    return min(found)


def _children() -> float:
    """Processor time of the commands that were run."""
    return sum(os.times()[2:4])


def shown(seconds: float) -> str:
    return f"{seconds * 1e6:10.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:10.2f} ms"


def line(what: str, seconds: float, aim: str = "") -> None:
    print(f"  {what:<58}{shown(seconds)}{f'   aim {aim}' if aim else ''}")


# --- decisions -------------------------------------------------------------------------------------------


def calls(policy: Policy, facts: Facts) -> list[tuple[str, Facts]]:
    """One call of every tool, every third of them not permitted."""
    found = []
    for n, spec in enumerate(policy.tools.values()):
        args = {"amount": 100_000 if n % 3 == 0 else 7, "mode": ("fast", "exact", "dry")[n % 3]}
        found.append((spec.name, for_call(facts, tool_facts(spec), args)))
    return found


def cedar_requests(asked: list[tuple[str, Facts]]) -> list[dict[str, Any]]:
    return [
        {
            "principal": 'User::"u"',
            "action": f'Action::"{tool}"',
            "resource": 'Thing::"t"',
            "context": {
                **facts.args,
                "kind": facts.task["kind"],
                "flag": facts.state["flags"][f"f{n % FLAGS}"],
            },
        }
        for n, (tool, facts) in enumerate(asked)
    ]


def decisions(policy: Policy, tools: int) -> None:
    import cedarpy

    asked = calls(policy, FactsView([policy], run_state(flagged=3)).at(NOW)[0])
    rules = "".join(CEDAR.format(**_numbers(n)) for n in range(tools))
    policies = cedarpy.PolicySet.from_str(rules)
    user = {"uid": {"type": "User", "id": "u"}, "attrs": {}, "parents": [{"type": "Role", "id": "user"}]}
    entities = cedarpy.Entities.from_json_str(
        '[{"uid": {"type": "User", "id": "u"}, "attrs": {}, "parents": [{"type": "Role", "id": "user"}]}]'
    )
    requests = cedar_requests(asked)
    ours = [decide(policy, tool, facts).verdict is Verdict.ALLOW for tool, facts in asked]
    theirs = [cedarpy.is_authorized(request, policies, entities).allowed for request in requests]
    assert ours == theirs, "the two policies do not say the same"
    assert len(set(ours)) == 2
    print(f"one decision ({len(asked)} different calls, {sum(ours)} permitted)")
    line("agentctl", best(lambda: [decide(policy, *each) for each in asked]) / tools, "10 µs")
    line(
        "cedarpy, policies and entities parsed once",
        best(lambda: [cedarpy.is_authorized(each, policies, entities) for each in requests]) / tools,
    )
    line(
        "cedarpy, all calls in one batch",
        best(lambda: cedarpy.is_authorized_batch(requests, policies, entities)) / tools,
    )
    line(
        "cedarpy, policies as text",
        best(lambda: cedarpy.is_authorized(requests[0], rules, [user]), rounds=3),
    )
    print(f"who may call what now ({tools} tools)")
    line("agentctl: contract with narrowed values, another Run", _another_run(policy), "5 ms")
    line(
        "cedarpy: one batch, no narrowing",
        best(lambda: cedarpy.is_authorized_batch(requests, policies, entities)),
    )


# --- contracts -------------------------------------------------------------------------------------------


def _another_run(policy: Policy) -> float:
    state = run_state()
    facts = FactsView([policy], state).at(NOW)
    return best(lambda: ContractCompiler([policy]).compile(state, facts))


def _cold(policy: Policy) -> float:
    state = run_state()
    facts = FactsView([policy], state).at(NOW)

    def first() -> None:
        contract._PLANS.clear()
        ContractCompiler([policy]).compile(state, facts)

    return best(first, rounds=3)


def _after(policy: Policy, change: Callable[[RunState, int], None]) -> tuple[float, float]:
    """Seconds of a contract after a change, and of the facts that it reads."""
    state = run_state()
    view, compiler = FactsView([policy], state), ContractCompiler([policy])
    compiler.compile(state, view.at(NOW))
    compiled, read = [], []
    for n in range(200):
        change(state, n)
        started = time.process_time()
        facts = view.at(NOW)
        between = time.process_time()
        compiler.compile(state, facts)
        read.append(between - started)
        compiled.append(time.process_time() - between)
    return sorted(compiled)[len(compiled) // 2], sorted(read)[len(read) // 2]


def _toggle(state: RunState, n: int) -> None:
    held = state.state["flags"]
    value = {**held.value, "f7": n % 2 == 0}
    state.state["flags"] = SliceState(value, held.version + 1, NOW, HOST)


def contracts(policy: Policy, tools: int) -> None:
    print(f"the contract of a turn ({tools} tools, {len(policy.rules)} rules)")
    line("first one under a policy", _cold(policy))
    line("first one of another Run", _another_run(policy), "5 ms")
    touched = sum("f7 " in rule.when.text for rule in policy.rules if rule.when is not None)
    compiled, read = _after(policy, _toggle)
    line(f"after one changed fact, which {touched} tools read", compiled, "100 µs")
    line("  the facts themselves", read)
    line("after nothing changed", _after(policy, lambda _state, _n: None)[0])


# --- lint ------------------------------------------------------------------------------------------------


def linting(files: dict[str, str], tools: int, count: int) -> None:
    print("lint")
    line(
        f"compile {tools} tools and {2 * tools} rules",
        best(lambda: load_policy("bench.policy.yaml", files), 2),
    )
    with tempfile.TemporaryDirectory() as folder:
        whole, many, twenty = Path(folder, "whole"), Path(folder, "many"), Path(folder, "twenty")
        _write(whole, files)
        line("the same policy, every rule of the linter", best(lambda: _lint(whole), 2))
        for n in range(count):
            _write(many / str(n), texts(2, f"p{n}"))
        line(f"{count} policy files of 2 tools, each with tools and test", best(lambda: _lint(many), 1))
        _write(twenty, texts(55))
        size = (twenty / "bench.policy.yaml").stat().st_size
        command = [
            sys.executable,
            "-c",
            "from cli import main; main()",
            "lint",
            str(twenty / "bench.policy.yaml"),
        ]
        seconds = best(
            lambda: subprocess.run(command, cwd=ROOT, check=True, capture_output=True),
            5,
            1,
            _children,
        )
        line(f"a policy of {size / 1000:.0f} KB from the shell", seconds, "0.3 s")


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _lint(folder: Path) -> None:
    found = lint([folder]).diagnostics
    assert not found, found[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=300)
    parser.add_argument("--files", type=int, default=1000)
    given = parser.parse_args()
    files = texts(given.tools)
    policy = compile_policy("bench.policy.yaml", files).policy
    assert policy is not None
    decisions(policy, given.tools)
    contracts(policy, given.tools)
    linting(files, given.tools, given.files)


if __name__ == "__main__":
    main()
