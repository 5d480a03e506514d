"""One proposal: fence, offered, arguments, binding, decision, budgets, references."""

from __future__ import annotations

import json

import pytest

from engine.domain.ids import CallId
from engine.domain.policy import Fresh, Idempotency, Kind
from engine.policy.admission import admit, readmit
from engine.policy.binding import call_digest, idempotency_key
from engine.policy.capabilities import capability_decision
from engine.policy.contract import ContractCompiler
from engine.policy.freshness import stale
from engine.policy.verdicts import Builtin, Fence, Hold, Reject, Run
from engine.policy.view import FactsView

from .build import (
    COLLECTION,
    ID,
    INT,
    NOW,
    TEXT,
    Build,
    approval,
    budgets,
    cart,
    evidence,
    grant,
    param,
    propose,
    ref,
    run_state,
    tool,
    turn_of,
    unattended,
)

READ = tool(
    "read_document",
    params=[param("document", ref("document"), required=False), param("words", TEXT, required=False)],
)
MEMO = tool("read_memo", params=[param("collection", COLLECTION)])
ORDER = tool(
    "place_order",
    Kind.WRITE,
    [
        param("cart_id", ID, "state.cart.id"),
        param("total", INT, "state.cart.total"),
        param("note", TEXT, required=False),
    ],
    idempotency=Idempotency(("cart_id", "state.cart.version"), None, None),
)


def build():
    made = (
        Build(READ, MEMO, ORDER)
        .rule("a", "allow", "read_document", "read_memo")
        .rule("o", "ask", "place_order")
    )
    return made.rule("d", "deny", "read_memo", when="args.collection == 'internal_memo'", because="desk only")


def judge(policy, state, *proposals, at=1, policies=None, **more):
    policies = policies or [policy]
    facts = FactsView(policies, state).at(NOW)
    contract = ContractCompiler(policies).compile(state, facts)
    if state.turn is None:
        turn_of(state, *proposals)
    return admit(
        policies, state, contract.names, state.turn.epoch, CallId(1, at), proposals[at - 1], facts, **more
    )


@pytest.mark.parametrize(
    "name",
    [
        "does_not_exist",
        "",
        "Read_document",
        " read_document",
        "x" * 300,
        "read․document",
        "hidden",
        "__class__",
    ],
)
def test_every_name_that_is_not_offered_gets_the_same_answer(name):
    """pydantic/pydantic-ai#6472, deepset-ai/haystack#11754, openai/openai-agents-python#2646."""
    made = build()
    made.tools["hidden"] = tool("hidden", Kind.WRITE)
    found = judge(made.policy(), cart(run_state()), propose(name, "not json"))
    assert isinstance(found, Reject)
    assert found.refusal.code == "not_offered"
    assert found.refusal.message.endswith(
        "is not in the contract of this turn; its tools are: ask_user, finish, place_order, read_document, read_memo"
    )
    assert len(found.refusal.message) < 240


def test_a_proposal_of_an_older_epoch_is_fenced_whatever_it_is():
    """gptme/gptme#3656: a call used what an earlier call of the same response switched on."""
    state = run_state()
    turn_of(state, propose("read_document"))
    state.epoch, state.moved_by = 1, "granted documents"
    assert judge(build().policy(), state, propose("read_document")) == Fence("granted documents")


@pytest.mark.parametrize("finish", ["length", "filter", "refusal"])
def test_a_response_cut_by_its_length_runs_reads_only(finish):
    """ahwurm/localharness#77, Yeachan-Heo/gajae-code#1025."""
    state = cart(run_state())
    proposals = (propose("read_document"), propose("place_order", ordinal=2), propose("finish", ordinal=3))
    assert isinstance(judge(build().policy(), state, *proposals, at=1, finish=finish), Run)
    for at in (2, 3):
        assert judge(build().policy(), state, *proposals, at=at, finish=finish).refusal.code == "truncated"


def test_one_invalid_call_concerns_itself_alone():
    state = run_state()
    proposals = (propose("read_document", "{"), propose("read_document", "{}", 2))
    assert judge(build().policy(), state, *proposals, at=1).refusal.code == "invalid_arguments"
    assert isinstance(judge(build().policy(), state, *proposals, at=2), Run)


def test_a_narrowed_out_value_is_rejected_by_the_decision_with_its_reason():
    found = judge(build().policy(), run_state(), propose("read_memo", '{"collection": "internal_memo"}'))
    assert found.refusal.code == "denied"
    assert found.refusal.rule == "d"
    assert found.refusal.message == "decided by deny `d` (p.policy.yaml:12): desk only"
    assert found.args == {"collection": "internal_memo"}


def test_a_write_that_people_must_approve_is_held_with_all_that_they_need_to_see():
    found = judge(build().policy(), cart(run_state()), propose("place_order", '{"note": "hi"}'))
    assert isinstance(found, Hold)
    assert found.args == {"cart_id": "c1", "total": 10, "note": "hi"}
    assert [need.rule for need in found.requirements] == ["o"]
    assert [(each["name"], each["origin"]) for each in found.shown["arguments"]] == [
        ("cart_id", ["bound"]),
        ("total", ["bound"]),
        ("note", []),
    ]
    assert (
        found.digest
        != judge(build().policy(), cart(run_state()), propose("place_order", '{"note": "ho"}')).digest
    )


def test_references_are_checked_after_permission():
    state = run_state()
    found = judge(build().policy(), state, propose("read_document", '{"document": "d9"}'))
    assert found.refusal.code == "reference"
    evidence(state, "E1", "document", "d9")
    assert isinstance(judge(build().policy(), state, propose("read_document", '{"document": "d9"}')), Run)


def test_an_unattended_write_names_rule_policy_and_owner():
    made = Build(ORDER).rule("auto", "allow", "place_order", unattended=unattended(1))
    found = judge(made.policy(), cart(run_state()), propose("place_order"))
    assert found.approved_by == "rule auto of policy policy-digest, owner team"


def test_a_call_uses_up_the_grant_under_which_it_is_permitted():
    made = Build(MEMO).rule(
        "g", "allow", "read_memo", needs=("documents",), when="args.collection == grant.documents.collection"
    )
    state = grant(grant(run_state(), "prospectus", "g1"), "annual_report", "g2")
    assert judge(made.policy(), state, propose("read_memo", '{"collection": "annual_report"}')).grants == (
        "g2",
    )


def test_budgets_within_one_response():
    policy = build().policy(budgets=budgets(calls_total=2, calls_per_tool={"read_memo": 1}))
    state = run_state()
    proposals = tuple(propose("read_memo", '{"collection": "prospectus"}', n) for n in (1, 2, 3))
    facts = FactsView([policy], state).at(NOW)
    names = ContractCompiler([policy]).compile(state, facts).names
    turn_of(state, *proposals)
    say = [admit([policy], state, names, 0, CallId(1, n), proposals[n - 1], facts) for n in (1, 2, 3)]
    assert isinstance(say[1], Run)
    assert "calls.total" in say[2].refusal.message
    state.spent.per_tool["read_memo"] = 1
    again = admit([policy], state, names, 0, CallId(1, 2), proposals[1], facts)
    assert "calls.per_tool" in again.refusal.message


def test_a_budget_of_one_call_is_said_as_one():
    policy = build().policy(budgets=budgets(calls_total=1))
    state = run_state()
    proposals = tuple(propose("read_memo", '{"collection": "prospectus"}', n) for n in (1, 2))
    facts = FactsView([policy], state).at(NOW)
    names = ContractCompiler([policy]).compile(state, facts).names
    turn_of(state, *proposals)
    second = admit([policy], state, names, 0, CallId(1, 2), proposals[1], facts)
    assert "the one call of the Run is used" in second.refusal.message


def test_a_bound_fact_that_is_gone_or_of_another_type_rejects():
    policy, state = build().policy(), cart(run_state())
    facts = FactsView([policy], state)
    names = ContractCompiler([policy]).compile(state, facts.at(NOW)).names
    turn_of(state, propose("place_order"))
    cart(state, 2, total="ten")
    found = admit([policy], state, names, 0, CallId(1, 1), propose("place_order"), facts.at(NOW))
    assert found.refusal.code == "unbound"
    state.state.clear()
    assert (
        admit([policy], state, names, 0, CallId(1, 1), propose("place_order"), facts.at(NOW)).refusal.code
        == "unbound"
    )


def test_a_held_call_is_decided_again_under_the_facts_of_then():
    made = Build(ORDER).rule("o", "ask", "place_order").rule("d", "deny", "place_order", when="task.flag")
    policy, state = made.policy(), cart(run_state())
    held = judge(policy, state, propose("place_order"))
    cart(state, 2, total=99)
    again = readmit([policy], state, ORDER, CallId(1, 1), held.args, FactsView([policy], state).at(NOW))
    assert isinstance(again, Hold)
    assert again.digest == held.digest
    state.task["flag"] = True
    stopped = readmit([policy], state, ORDER, CallId(1, 1), held.args, FactsView([policy], state).at(NOW))
    assert stopped.refusal.rule == "d"


def test_fresh_says_what_changed():
    rule = Build(ORDER).rule("o", "ask", "place_order", fresh=(Fresh("cart", True, None),)).rules[0]
    state = cart(run_state(), 1)
    assert stale([rule], state, {"cart": 1}, NOW) is None
    cart(state, 2, version=4)
    state.state["cart"].printed[1] = 3
    assert stale([rule], state, {"cart": 1}, NOW).message == "state cart changed (3 -> 4)"
    assert stale([rule], state, {}, NOW).slice == "cart"


def test_the_digest_fits_tool_spec_arguments_principal_and_policy():
    who = run_state().principal
    digests = {
        call_digest("t", "s", {"a": 1}, who, "p"),
        call_digest("u", "s", {"a": 1}, who, "p"),
        call_digest("t", "x", {"a": 1}, who, "p"),
        call_digest("t", "s", {"a": 2}, who, "p"),
        call_digest("t", "s", {"a": 1}, None, "p"),
        call_digest("t", "s", {"a": 1}, who, "q"),
    }
    assert len(digests) == 6


def test_an_idempotency_key_is_made_of_host_facts_and_typed_arguments():
    policy, state = build().policy(), cart(run_state())
    facts = FactsView([policy], state).at(NOW)[0]
    args = {"cart_id": "c1", "total": 1, "note": "a"}
    key = idempotency_key(ORDER, state.run, CallId(1, 1), args, facts)
    assert key == idempotency_key(ORDER, state.run, CallId(2, 1), {**args, "note": "b"}, facts)
    assert key != idempotency_key(ORDER, state.run, CallId(1, 1), {**args, "cart_id": "c2"}, facts)
    cart(state, 2, version=4)
    assert key != idempotency_key(ORDER, state.run, CallId(1, 1), args, FactsView([policy], state).at(NOW)[0])


def test_a_capability_goes_to_the_first_branch_that_is_true_and_else_is_denied():
    made = Build(MEMO).capability(
        "documents",
        ("params.collection == 'prospectus'", "host"),
        ("params.collection == 'internal_memo'", approval("manager")),
    )
    policy, state = made.policy(), run_state()
    facts = FactsView([policy], state).at(NOW)

    def ask(collection):
        return capability_decision([policy], "documents", {"collection": collection}, facts)

    assert ask("prospectus").granted
    assert [need.approval.roles for need in ask("internal_memo").needs] == [frozenset({"manager"})]
    assert ask("annual_report").refusal.code == "no_branch"
    assert not capability_decision([policy], "documents", {}, facts).granted


def test_a_request_fixes_every_parameter_of_the_capability_and_no_other():
    made = Build(MEMO).capability("documents", ("", "host"))
    for args, wrong in (
        ({}, "collection"),
        ({"collection": "x"}, "collection"),
        ({"collection": "prospectus", "z": 1}, "z"),
    ):
        found = judge(
            made.policy(),
            run_state(),
            propose("request_capability", json.dumps({"capability": "documents", **args})),
        )
        assert found.refusal.field == wrong
    raw = '{"capability": "documents", "collection": "prospectus"}'
    assert isinstance(judge(made.policy(), run_state(), propose("request_capability", raw)), Builtin)


@pytest.mark.parametrize("raw", ["", "null", "{}"])
def test_finish_takes_nothing(raw):
    assert isinstance(judge(build().policy(), run_state(), propose("finish", raw)), Builtin)


def test_finish_with_arguments_is_refused():
    assert judge(build().policy(), run_state(), propose("finish", '{"done": true}')).refusal.field == "done"
