"""Tools may have the names that others gave them; what a provider would refuse is mapped on the wire."""

from __future__ import annotations

import pytest

from engine.adapters.wire.names import ToolNames, wire_name
from engine.domain.errors import PolicyInvalid
from engine.policy.compiler import load_policy

TOOLS = """
agentctl: tools/v1
id: mathematics
tools:
  math.factorial: {kind: read, handler: "python:m:f", description: "n!", params: {n: {type: int}}}
  to-celsius: {kind: read, handler: "python:m:c", description: "Degrees.", params: {f: {type: int}}}
"""
POLICY = """
agentctl: policy/v1
id: mathematics
version: 1
owner: me
tool_specs: [m.tools.yaml]
principals: {roles: [user], may_start: [user]}
permissions:
  - {id: counting, effect: allow, roles: [user], tools: [math.factorial]}
  - {id: degrees, effect: allow, roles: [user], tools: [to-celsius], when: "done('math.factorial')"}
gates: {finish: []}
budgets: {turns: 5, cost_usd: "1.00", wall_time: 1h, calls: {total: 9, per_tool: {math.factorial: 2}}}
model: {primary: {id: openai/gpt-5-mini-2025-08-07}}
"""


def compiled(tools: str = TOOLS) -> object:
    return load_policy("m.policy.yaml", {"m.policy.yaml": POLICY, "m.tools.yaml": tools})


def test_dots_and_hyphens_are_part_of_tool_names_everywhere_a_policy_names_tools() -> None:
    assert sorted(compiled().tools) == ["math.factorial", "to-celsius"]  # type: ignore[attr-defined]  # a Policy


def test_the_wire_carries_another_name_that_leads_back() -> None:
    names = ToolNames(["math.factorial", "math_factorial"])
    assert wire_name("math.factorial") != "math_factorial" == wire_name("math_factorial")
    assert names.host_name(wire_name("math.factorial")) == "math.factorial"


@pytest.mark.parametrize("name", ["1st", "a b", "a/b", "ä"])
def test_other_signs_are_refused_by_name(name: str) -> None:
    with pytest.raises(PolicyInvalid):
        compiled(TOOLS.replace("to-celsius:", f'"{name}":'))
