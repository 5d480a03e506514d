"""Plays cases written in a test against a policy of the project or one of its own."""

from __future__ import annotations

from pathlib import Path

from engine.adapters.memory_store import MemoryStore
from engine.policy.case_files import read_cases
from engine.policy.compiler import load_policy
from engine.runtime.scenario.runner import CaseResult, FileResult, run_file

ROOT = Path(__file__).parent.parent.parent

TOOLS = """\
agentctl: tools/v1
id: desk
sources: {files: {title: Files}, post: {title: Post}}
tools:
  look: {kind: read, source: files, handler: "python:d:look", params: {id: {type: id}},
         result: {n: {type: int}, ok: {type: bool}, s: {type: id}, l: {type: list, of: {type: id}, max_items: 5},
                  e: {type: enum, values: [red, blue]}, t: {type: timestamp}}}
  send: {kind: write, source: post, handler: "python:d:send", params: {to: {type: id}}, effects: [post.send],
         result: {number: {type: id}}, idempotency: {key: [to]},
         reconcile: {probe: sent, args: {key: idempotency_key}, confirms: "result.found", refutes: "!result.found"}}
  file: {kind: hybrid, source: files, handler: "python:d:file", params: {id: {type: id}}, effects: [file.move],
         result: {slot: {type: id}}, idempotency: {key: [id]}, reversible: true, reconcile: {manual: look},
         compensate: {tool: unfile, args: {id: args.id}, on: [run_finished]}}
  sent:   {kind: read, source: post, exposed: host, handler: "python:d:sent",
           params: {key: {type: id}}, result: {found: {type: bool}}}
  unfile: {kind: write, source: files, exposed: host, handler: "python:d:unfile", params: {id: {type: id}},
           effects: [file.back], idempotency: {key: [id]}, reconcile: {manual: look}}
"""
POLICY = """\
agentctl: policy/v1
id: desk
version: 1
owner: me
tool_specs: [desk.tools.yaml]
principals: {roles: [clerk, lead], may_start: [clerk]}
task: {kind: {type: enum, values: [letter, parcel]}}
capabilities:
  archive: {params: {shelf: {type: enum, values: [a, b]}}, request: {roles: [clerk]},
            approve: [{when: "params.shelf == 'a'", by: host}, {by: {roles: [lead]}, timeout: 1h}],
            expires: {after: 1h}, revoke: {roles: [lead]}}
permissions:
  - {id: look, effect: allow, roles: [clerk], tools: [look]}
  - {id: send, effect: ask, roles: [clerk], tools: [send],
     approval: {by: {roles: [lead]}, not_requester: true, expires: 10m}}
  - {id: file, effect: allow, roles: [clerk], tools: [file], needs: [archive],
     unattended: {because: "it is put back", max_per_run: 5}}
  - {id: no-parcels, effect: deny, tools: [send], when: "task.kind == 'parcel'"}
gates: {finish: []}
budgets: {turns: 6, cost_usd: "1.00", wall_time: 1h, calls: {total: 20, per_tool: {send: 4, file: 5}},
          questions_to_user: 1}
model: {primary: {id: openai/gpt-5-mini-2025-08-07}}
"""
GIVEN = "{principal: {id: c1, roles: [clerk]}, task: {kind: letter}}"


class Desk:
    """A folder with one policy; `case` plays the turns of one case, written as YAML."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "desk.tools.yaml").write_text(TOOLS, encoding="utf-8")
        (folder / "desk.policy.yaml").write_text(POLICY, encoding="utf-8")
        self.file = folder / "desk.test.yaml"

    def write(self, cases: str) -> str:
        self.file.write_text(f"agentctl: test/v1\npolicy: desk.policy.yaml\n{cases}", encoding="utf-8")
        return str(self.file)

    def play(self, cases: str) -> FileResult:
        return run_file(read_cases(self.write(cases), load_policy), MemoryStore)

    def case(self, turns: str, given: str = GIVEN) -> CaseResult:
        lines = "".join(f"      {line}\n" for line in turns.strip().splitlines())
        return self.play(f"cases:\n  - id: it\n    given: {given}\n    turns:\n{lines}").cases[0]


def failures(result: CaseResult) -> list[str]:
    return [failure.message for failure in result.failures]
