"""Gates are predicates over counted facts."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from decimal import Decimal

import pytest

from engine.domain.calls import CallStatus, Outcome
from engine.domain.events import Reservation
from engine.domain.ids import CallId
from engine.domain.policy import Kind, ModelUse
from engine.domain.state import CallState, PublicationState, Spent
from engine.policy import budgets as b
from engine.policy.gates import GateFacts, finish_gates, only_unknown_effects, refusal_of
from engine.policy.view import FactsView

from .build import NOW, Build, budgets, evidence, run_state, tool


def failed(policy, state, call=None, policies=None):
    policies = policies or [policy]
    results = finish_gates(policies, state, FactsView(policies, state).at(NOW), call)
    return {result.title: result.objects for result in results if not result.passed}


def add(state, call, status, **more):
    state.calls[call] = CallState(call, "w", Kind.WRITE, status, None, 1, **more)
    state.open_calls[call] = None
    return state


def published(state, *handles):
    state.publications["note"] = PublicationState("note", CallId(1, 1), {}, {}, handles, NOW, "d")
    return state


def test_what_gates_receive_has_no_text():
    assert not [each.name for each in fields(GateFacts) if each.type == "str"]
    names = {each.name for each in fields(GateFacts)}
    assert not names & {"text", "inputs", "turns", "messages"}


def test_finish_before_its_siblings_names_the_open_calls():
    """pydantic/pydantic-ai#4296: output tools ran before other tools of the same response."""
    state = add(add(run_state(), CallId(1, 1), CallStatus.PROPOSED), CallId(1, 2), CallStatus.PROPOSED)
    assert failed(Build().policy(), state, CallId(1, 1)) == {"no_unsettled_calls": ("1.2",)}


def test_a_pending_approval_and_an_unknown_effect_are_gates_of_their_own():
    state = add(run_state(), CallId(1, 1), CallStatus.HELD, held="approval")
    assert failed(Build().policy(), state) == {"no_pending_approvals": ("1.1",), "run_may_end": ("1.1",)}
    state = add(run_state(), CallId(1, 1), CallStatus.SETTLED)
    state.open_calls.clear()
    state.unknown_calls[CallId(1, 1)] = None
    assert failed(Build().policy(), state) == {"no_unknown_effects": ("1.1",)}
    facts = FactsView([Build().policy()], state).at(NOW)
    assert only_unknown_effects(finish_gates([Build().policy()], state, facts))


def test_an_unknown_outcome_of_a_read_holds_nothing_up():
    state = run_state()
    state.calls[CallId(1, 1)] = CallState(CallId(1, 1), "r", Kind.READ, CallStatus.SETTLED, None, 1)
    state.unknown_calls[CallId(1, 1)] = None
    assert failed(Build().policy(), state) == {}


@pytest.mark.parametrize("reason", [{"cancel_requested": ""}, {"draining": True}])
def test_a_run_that_was_told_to_stop_may_not_complete(reason):
    assert "run_may_end" in failed(Build().policy(), run_state(**reason))


def test_an_output_must_be_committed_and_its_citations_eligible():
    policy = (
        Build().output("note").gate("output_committed", "note").gate("citations_eligible", "note").policy()
    )
    state = run_state()
    assert failed(policy, state) == {"output_committed note": ("note",), "citations_eligible note": ("note",)}
    evidence(state, "E1", "document", "d1", NOW - timedelta(hours=26))
    published(state, "E1")
    results = finish_gates([policy], state, FactsView([policy], state).at(NOW))
    assert refusal_of(results) == "citations_eligible note: E1 is 26h old, 24h allowed"
    evidence(state, "E2", "document", "d1")
    state.evidence["E1"].superseded = "read again as call 3.1"
    assert failed(policy, state) == {}


def test_evidence_of_a_source_that_is_not_usable_is_out_of_scope():
    policy = Build().output("note").gate("citations_eligible", "note").policy()
    state = published(evidence(run_state(), "E1", "document", "d1", source="filings"), "E1")
    state.sources["filings"] = "unauthorized"
    assert failed(policy, state) == {"citations_eligible note": ("E1",)}


def test_holds_closed_names_the_open_hold():
    policy = Build().gate("holds_closed", "inventory.reserve").policy()
    state = add(run_state(), CallId(1, 1), CallStatus.SETTLED, effects=("inventory.reserve",))
    state.open_calls.clear()
    state.open_holds[CallId(1, 1)] = None
    assert failed(policy, state) == {"holds_closed inventory.reserve": ("1.1",)}


def test_a_condition_gate_that_is_not_known_does_not_pass():
    made = Build().output("note").gate("when", "calls.failed == 0").gate("when", "state.cart.open")
    state = run_state()
    assert list(failed(made.policy(), state)) == ["when state.cart.open"]
    state.outcomes[Outcome.FAILED.value] = 1
    assert len(failed(made.policy(), state)) == 2


def test_a_restricting_version_adds_its_gates():
    own, newer = Build().policy(), Build().output("note").gate("output_committed", "note").policy(version=2)
    assert list(failed(own, run_state(), policies=[own, newer])) == ["output_committed note"]


# --- budgets -------------------------------------------------------------------------------------------------


def test_the_smaller_budget_holds():
    one = Build().policy(budgets=budgets(turns=5, calls_per_tool={"a": 3}))
    two = Build().policy(budgets=budgets(turns=9, calls_per_tool={"a": 1, "b": 2}, tokens_input=10))
    found = b.of([one, two])
    assert (found.turns, found.calls_per_tool, found.tokens_input) == (5, {"a": 1, "b": 2}, 10)


@pytest.mark.parametrize(
    ("spent", "name"),
    [
        (Spent(turns=20), "turns"),
        (Spent(calls=40), "calls.total"),
        (Spent(cost_usd=Decimal(1)), "cost_usd"),
        (Spent(wall_seconds=600), "wall_time"),
        (Spent(invalid_in_a_row=4), "invalid_calls_in_a_row"),
        (Spent(idle_turns=2), "no_progress_turns"),
    ],
)
def test_the_budget_that_is_used_up_is_named(spent, name):
    found = b.exhausted(budgets(invalid_calls_in_a_row=4, no_progress_turns=2), spent)
    assert found.name == name


def test_an_attempt_reserves_what_it_may_cost_and_an_unpriced_model_is_refused():
    limits, use = budgets(tokens_output=3000), ModelUse("m", max_output_tokens=4096)
    assert b.reserve(limits, Spent(), use, 100, Decimal("0.02")) == Reservation(
        input_tokens=100, output_tokens=3000, cost_usd=Decimal("0.02")
    )
    assert b.reserve(limits, Spent(), use, 100, None).name == "cost_usd"
    assert isinstance(b.reserve(limits, Spent(), use, 100, None, free=True), Reservation)
    assert b.reserve(limits, Spent(cost_usd=Decimal("0.99")), use, 100, Decimal("0.02")).name == "cost_usd"
    assert b.reserve(limits, Spent(output_tokens=3000), use, 100, Decimal(0)).name == "tokens.output"


def test_unknown_cost_is_not_zero_cost():
    state = run_state()
    state.spent.cost_unknown = True
    facts = FactsView([Build(tool("t")).policy()], state).at(NOW)[0]
    assert "cost_minor" not in facts.run
    assert "cost_usd" not in facts.run["budget_left"]
