"""Owns a policy over files and commands, and how the field tests ask about it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from engine.domain.calls import Refusal
from engine.domain.facts import Facts
from engine.domain.policy import Policy
from engine.policy.arguments import read_arguments
from engine.policy.compiler import load_policy
from engine.policy.decision import Decision, decide
from engine.policy.files import MemoryFiles
from engine.policy.linter import lint
from engine.policy.view import for_call, tool_facts

POLICY = """\
agentctl: policy/v1
id: files
version: 1
owner: me
tool_specs: [files.tools.yaml]
principals: {roles: [dev], may_start: [dev]}
permissions:
  - {id: read, effect: allow, roles: [dev], tools: [read_file]}
  - id: run
    effect: ask
    roles: [dev]
    tools: [run_command]
    when: "size(args.argv) == 2 && args.argv[0] == 'git' && args.argv[1] == 'status'"
    approval: {by: {roles: [dev], same_principal: true}, expires: 10m}
  - {id: no-secrets, effect: deny, tools: [read_file], when: "under(args.path, '.env') || under(args.path, 'app/.env')"}
gates: {finish: []}
budgets: {turns: 20, cost_usd: "0.50", wall_time: 10m, calls: {total: 40, per_tool: {run_command: 3}}}
model: {primary: {id: openai/gpt-5-mini-2025-08-07}, fallbacks: [{id: openai/gpt-5-2025-08-07}]}
tests: [files.test.yaml]
"""
TOOLS = """\
agentctl: tools/v1
id: files
tools:
  read_file:
    kind: read
    handler: "python:files.tools:read_file"
    description: "Read a file."
    params: {path: {type: path}}
  run_command:
    kind: write
    handler: "python:files.tools:run_command"
    description: "Run one program with arguments. No shell."
    params: {argv: {type: argv, max_items: 8}}
    effects: [host.exec]
    idempotency: {key: [call.id]}
    reconcile: {manual: "Look at the audit log"}
"""
TEST = """\
agentctl: test/v1
policy: files.policy.yaml
cases:
  - id: read
    given: {principal: {id: d1, roles: [dev]}}
    turns:
      - propose: [{call: read_file, args: {path: README.md}}]
        expect: {calls: [{outcome: confirmed}]}
"""


def files(*edits: tuple[str, str]) -> dict[str, str]:
    """The three files, with each edit made at the one place where its first text stands."""
    found = {"files.policy.yaml": POLICY, "files.tools.yaml": TOOLS, "files.test.yaml": TEST}
    for old, new in edits:
        (name,) = [name for name, text in found.items() for _ in range(text.count(old))]
        found[name] = found[name].replace(old, new)
    return found


def policy(*edits: tuple[str, str]) -> Policy:
    return load_policy("files.policy.yaml", files(*edits))


def codes(*edits: tuple[str, str]) -> set[str]:
    """The codes that lint raises."""
    found = lint(["files.policy.yaml"], files=MemoryFiles(files(*edits))).diagnostics
    assert all(each.help for each in found)
    return {each.code for each in found}


def decided(by: Policy, tool: str, args: Mapping[str, object]) -> Decision | Refusal:
    """What becomes of a call with these arguments: refused as malformed, or decided."""
    spec = by.tools[tool]
    read = read_arguments(json.dumps(args), spec)
    if isinstance(read, Refusal):
        return read
    facts = Facts(principal={"id": "d1", "roles": ["dev"]}, run={"read_untrusted": False, "labels": []})
    return decide(by, tool, for_call(facts, tool_facts(spec), read.values))
