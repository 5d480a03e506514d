"""The nine calls that "Agentic Workflows Are Not Conversations" names exist, each of the kind that it gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.adapters.function_tools import FunctionTools
from engine.domain.policy import Policy
from engine.policy.compiler import compile_policy

ROOT = Path(__file__).resolve().parents[2]
KINDS = {
    "search_products": "read",
    "get_cart": "read",
    "fetch_user_profile": "read",
    "send_email": "write",
    "place_order": "write",
    "delete_file": "write",
    "reserve_inventory": "hybrid",
    "create_draft": "hybrid",
    "log_event": "hybrid",
}
POLICY = f"""
agentctl: policy/v1
id: nine-calls
version: 1
owner: tests
tool_specs: [{", ".join(str(ROOT / "tool_specs" / f"{name}.tools.yaml") for name in ("retail", "files", "essay"))}]
principals: {{roles: [shopper], may_start: [shopper]}}
permissions:
  - {{id: look, effect: allow, roles: [shopper], tools: [search_products, fetch_user_profile, list_files]}}
state:
  cart:
    owner: app
    refresh: get_cart
    fields:
      id:          {{type: id}}
      version:     {{type: int}}
      total_minor: {{type: int}}
      currency:    {{type: enum, values: [EUR, USD]}}
      items:
        type: list
        max_items: 50
        of: {{type: record, fields: {{sku: {{type: id}}, quantity: {{type: int}}, unit_minor: {{type: int}}}}}}
    max_age: 5m
  profile:
    owner: app
    refresh: get_profile
    fields: {{email: {{type: email}}, address_id: {{type: id}}}}
    max_age: 1h
gates: {{finish: []}}
budgets: {{turns: 5, cost_usd: "0.10", wall_time: 5m, calls: {{total: 10}}}}
model: {{primary: {{id: openai/gpt-5-mini-2025-08-07}}}}
"""


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    file = tmp_path_factory.mktemp("nine") / "nine-calls.policy.yaml"
    file.write_text(POLICY)
    compiled = compile_policy(str(file))
    assert compiled.policy is not None, compiled.diagnostics
    return compiled.policy


@pytest.mark.parametrize(("tool", "kind"), KINDS.items())
def test_call_of_the_essay_is_a_tool_of_its_kind(policy: Policy, tool: str, kind: str) -> None:
    assert policy.tools[tool].kind == kind


def test_what_changes_the_world_names_its_effects_and_how_it_is_undone(policy: Policy) -> None:
    assert all(policy.tools[tool].effects for tool, kind in KINDS.items() if kind != "read")
    assert policy.tools["create_draft"].reversible
    assert policy.tools["create_draft"].compensate is not None
    assert not policy.tools["log_event"].reversible
    assert policy.tools["reserve_inventory"].holds is not None


def test_each_has_a_real_function_behind_it(policy: Policy) -> None:
    assert FunctionTools({}, [ROOT / "examples"]).check(list(policy.tools.values())) == []
