"""`agentctl explain`: the page of a rule, by code or name; the list."""

from __future__ import annotations

import json

from engine.policy.pages import page
from tests.cli.conftest import Ask
from tests.render_rules import all_rules


def test_a_rule_is_explained_by_its_code_or_its_name(agentctl: Ask) -> None:
    by_code, by_name = agentctl("explain", "S301"), agentctl("explain", "prose-is-opaque")
    assert by_code.code == 0
    assert by_code.out == by_name.out
    assert by_code.out.startswith("# S301 prose-is-opaque\n")
    assert agentctl("explain", "s301").out == by_code.out


def test_every_rule_can_be_explained(agentctl: Ask) -> None:
    listed = agentctl("explain").out.splitlines()
    assert [line.split()[:2] for line in listed] == [[rule.id, rule.name] for rule in all_rules()]
    assert all(page(rule) for rule in all_rules())


def test_an_unknown_rule_is_a_usage_error_that_names_a_near_one(agentctl: Ask) -> None:
    said = agentctl("explain", "prose-is-opak")
    assert said.code == 2
    assert "prose-is-opaque" in said.err


def test_json_has_both_examples_and_the_four_questions(agentctl: Ask) -> None:
    told = json.loads(agentctl("explain", "W207", "--json").out)
    assert told["schema"] == "agentctl.rule/v1"
    assert told["suppressible"] is False
    assert set(told["questions"]) == {"input", "effect", "paraphrase", "repair"}
    assert told["bad"] != told["good"]
    assert len(json.loads(agentctl("explain", "--json").out)["rules"]) == len(all_rules())
