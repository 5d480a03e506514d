"""The contract is derived: visible exactly where some arguments may still be permitted."""

from __future__ import annotations

import itertools
from datetime import timedelta

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.canonical import digest
from engine.domain.ids import CallId
from engine.domain.policy import Citations, Kind, PublishRule
from engine.domain.state import PublicationState
from engine.policy.admission import admit
from engine.policy.contract import ContractCompiler
from engine.policy.decision import Verdict, decide
from engine.policy.verdicts import Reject
from engine.policy.view import FactsView, for_call, tool_facts

from .build import (
    BOOL,
    COLLECTION,
    ID,
    INT,
    NOW,
    TEXT,
    Build,
    budgets,
    cart,
    enum,
    grant,
    param,
    propose,
    run_state,
    tool,
    turn_of,
    unattended,
)

READ = tool("read_document", params=[param("collection", COLLECTION), param("words", TEXT)], source="filings")
ORDER = tool(
    "place_order",
    Kind.WRITE,
    [
        param("cart_id", ID, "state.cart.id"),
        param("total", INT, "state.cart.total"),
        param("shipping", enum("standard", "express")),
    ],
)
MEMO = "args.collection == 'internal_memo'"


def compile_(policy, state, now=NOW):
    return ContractCompiler([policy]).compile(state, FactsView([policy], state).at(now))


def shown(contract, name):
    return next(each for each in contract.tools if each.name == name)


def test_finish_is_always_there_and_nothing_else_is_without_rules():
    contract = compile_(Build(READ).policy(budgets=budgets(questions_to_user=None)), run_state())
    assert [each.name for each in contract.tools] == ["finish"]
    assert contract.absent["read_document"] == "no rule permits it"
    assert contract.digest == digest(contract.text)


def test_a_denied_value_is_narrowed_out_and_what_the_host_binds_is_absent():
    build = Build(READ, ORDER).rule("a", "allow", "read_document").rule("o", "ask", "place_order")
    build.rule("d", "deny", "read_document", when=MEMO)
    contract = compile_(build.policy(), cart(run_state()))
    assert shown(contract, "read_document").parameters["properties"]["collection"]["enum"] == [
        "prospectus",
        "annual_report",
    ]
    assert list(shown(contract, "place_order").parameters["properties"]) == ["shipping"]


def test_a_tool_of_which_every_value_is_refused_is_not_shown():
    build = (
        Build(READ)
        .rule("a", "allow", "read_document", when=MEMO)
        .rule("d", "deny", "read_document", when=MEMO)
    )
    contract = compile_(build.policy(), run_state())
    assert contract.absent["read_document"] == "every value of `collection` is refused now"


def test_a_grant_narrows_to_its_own_parameter():
    build = Build(READ).rule(
        "g",
        "allow",
        "read_document",
        needs=("documents",),
        when="args.collection == grant.documents.collection",
    )
    policy, state = build.policy(), run_state()
    compiler, view = ContractCompiler([policy]), FactsView([policy], state)
    assert "read_document" not in compiler.compile(state, view.at(NOW)).names
    grant(state, "annual_report")
    state.epoch += 1
    contract = compiler.compile(state, view.at(NOW))
    assert shown(contract, "read_document").parameters["properties"]["collection"]["enum"] == [
        "annual_report"
    ]
    assert contract.epoch == 1


def test_narrowing_can_be_turned_off_per_tool():
    whole = tool("read_document", params=[param("collection", COLLECTION)], narrow=False)
    build = Build(whole).rule("a", "allow", "read_document").rule("d", "deny", "read_document", when=MEMO)
    contract = compile_(build.policy(), run_state())
    assert shown(contract, "read_document").parameters["properties"]["collection"]["enum"] == list(
        COLLECTION.values
    )


def test_an_unknown_deny_hides_and_an_unknown_allow_does_not_show():
    build = (
        Build(READ, tool("other"))
        .rule("a", "allow", "read_document")
        .rule("d", "deny", "read_document", when="state.cart.open")
    )
    build.rule("b", "allow", "other", when="state.cart.open")
    contract = compile_(build.policy(), run_state())
    assert "read_document" not in contract.names
    assert contract.absent["read_document"] == "deny `d` (p.policy.yaml:11)"
    assert contract.absent["other"].startswith(
        "no rule permits it: `b` (p.policy.yaml:12): when state.cart.open"
    )


def test_a_deny_over_the_models_own_prose_neither_hides_nor_shows():
    build = (
        Build(READ)
        .rule("a", "allow", "read_document")
        .rule("d", "deny", "read_document", when="size(args.words) > 5")
    )
    assert "read_document" in compile_(build.policy(), run_state()).names


def test_a_hide_rule_that_cannot_be_evaluated_hides_that_one_tool():
    """pydantic/pydantic-ai#5177: a rule that returned nothing stripped every tool."""
    build = Build(READ, tool("other")).rule("a", "allow", "read_document", "other")
    build.hide("h", "read_document", when="state.cart.open")
    contract = compile_(build.policy(), run_state())
    assert contract.absent["read_document"] == "hidden by `h` (p.policy.yaml:1)"
    assert "other" in contract.names


def test_source_state_budget_and_cap_take_a_tool_away_and_say_so():
    write = tool("w", Kind.WRITE)
    build = Build(READ, tool("capped"), write).rule("a", "allow", "read_document", "capped")
    build.rule("auto", "allow", "w", unattended=unattended(1))
    policy = build.policy(budgets=budgets(calls_per_tool={"capped": 1}))
    state = run_state()
    compiler, view = ContractCompiler([policy]), FactsView([policy], state)
    assert {"read_document", "capped", "w"} <= compiler.compile(state, view.at(NOW)).names
    state.sources["filings"] = "degraded"
    state.spent.per_tool["capped"] = 1
    state.spent.unattended["auto"] = 1
    absent = compiler.compile(state, view.at(NOW)).absent
    assert absent["read_document"] == "source `filings` is degraded"
    assert absent["capped"] == "the one call of it is used"
    assert absent["w"] == "no rule permits it: `auto` (p.policy.yaml:11): max_per_run 1"


def test_a_tool_whose_bound_fact_is_not_recorded_is_not_shown():
    policy = Build(ORDER).rule("o", "ask", "place_order").policy()
    assert compile_(policy, run_state()).absent["place_order"] == (
        "`cart_id` is filled in from state.cart.id, which is not recorded"
    )


def test_a_tool_of_the_host_is_not_shown():
    policy = Build(tool("probe", exposed="host")).rule("a", "allow", "probe").policy()
    assert compile_(policy, run_state()).absent["probe"] == "only the Host calls it"


def test_unchanged_facts_give_the_same_object_and_only_changed_facts_are_looked_at():
    build = (
        Build(READ, ORDER)
        .rule("a", "allow", "read_document")
        .rule("o", "ask", "place_order", when="state.cart.total < 50")
    )
    policy, state = build.policy(), cart(run_state())
    compiler, view = ContractCompiler([policy]), FactsView([policy], state)
    first = compiler.compile(state, view.at(NOW))
    state.spent.turns += 1
    assert compiler.compile(state, view.at(NOW + timedelta(seconds=1))) is first
    cart(state, 2, total=99)
    second = compiler.compile(state, view.at(NOW))
    assert "place_order" not in second.names
    cart(state, 3, total=10)
    assert compiler.compile(state, view.at(NOW)).digest == first.digest


def test_the_clock_alone_can_change_a_contract():
    build = Build(READ).rule("a", "allow", "read_document", when="state.cart.age < duration('1m')")
    policy, state = build.policy(), cart(run_state())
    compiler, view = ContractCompiler([policy]), FactsView([policy], state)
    assert "read_document" in compiler.compile(state, view.at(NOW)).names
    assert "read_document" not in compiler.compile(state, view.at(NOW + timedelta(minutes=2))).names


def test_questions_are_offered_while_some_are_left():
    policy, state = Build(READ).policy(), run_state()
    compiler, view = ContractCompiler([policy]), FactsView([policy], state)
    assert "ask_user" in compiler.compile(state, view.at(NOW)).names
    state.spent.questions = 3
    assert compiler.compile(state, view.at(NOW)).absent["ask_user"] == "all 3 questions to the user are used"


def test_the_capability_enum_lists_what_this_principal_may_request_now():
    build = Build(READ)
    build.capabilities["ops"] = {}
    build.capability(
        "documents", ("params.collection != 'internal_memo'", "host"), request="task.depth == 'full'"
    )
    build.capability("ops", ("", "host"), request_roles=frozenset({"manager"}))
    contract = compile_(build.policy(), run_state())
    properties = shown(contract, "request_capability").parameters["properties"]
    assert properties["capability"]["enum"] == ["documents"]
    assert list(properties) == ["capability", "collection", "reason"]
    brief = compile_(build.policy(), run_state(task={"depth": "brief", "flag": False}))
    assert "request_capability" not in brief.names


def test_a_published_output_and_one_that_may_not_be_published_are_not_offered():
    build = (
        Build(READ).output("note").output("memo", publish=PublishRule(frozenset({"manager"}), None, None, ()))
    )
    policy, state = build.policy(), run_state()
    compiler, view = ContractCompiler([policy]), FactsView([policy], state)
    contract = compiler.compile(state, view.at(NOW))
    assert "publish_note" in contract.names
    assert contract.absent["publish_memo"] == "no rule permits it"
    assert shown(contract, "publish_note").parameters["required"] == []
    state.publications["note"] = PublicationState("note", CallId(1, 1), {}, {}, (), NOW, "d")
    assert compiler.compile(state, view.at(NOW)).absent["publish_note"] == "it is published"


def test_schemas_of_the_engine_ask_the_model_for_no_state_of_the_run():
    build = Build(READ).output("note", citations=Citations(frozenset({"document"}), 1, None, None))
    build.capability("documents", ("", "host"))
    contract = compile_(build.policy(), run_state())
    asked = {name for each in contract.tools for name in each.parameters["properties"]} - {
        "collection",
        "words",
    }
    words = ("state", "gap", "permission", "progress", "complet", "status", "done", "approv")
    assert not [name for name in asked if any(word in name for word in words)]


def test_a_restricting_version_narrows_too():
    own = Build(READ).rule("a", "allow", "read_document").policy()
    newer = (
        Build(READ)
        .rule("a", "allow", "read_document")
        .rule("d", "deny", "read_document", when=MEMO)
        .policy(version=2)
    )
    state = run_state()
    contract = ContractCompiler([own, newer]).compile(state, FactsView([own, newer], state).at(NOW))
    assert (
        "internal_memo" not in shown(contract, "read_document").parameters["properties"]["collection"]["enum"]
    )


# --- properties ----------------------------------------------------------------------------------------------

TWO = tool(
    "two",
    params=[param("c", enum("x", "y", "z")), param("d", enum("p", "q"), required=False), param("b", BOOL)],
)
PARTS = [
    "args.c == 'x'",
    "args.c != 'y'",
    "args.d == 'p'",
    "has(args.d) && args.d == 'q'",
    "args.b",
    "!args.b",
    "args.c == 'x' && args.b",
    "args.c == 'z' || !has(args.d)",
    "task.flag",
    "state.cart.open",
]


@settings(max_examples=120, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["allow", "ask", "deny", "require"]),
            st.sampled_from(["", *PARTS]),
            st.sampled_from(["", *PARTS]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_narrowing_is_exact_where_conditions_read_only_finite_arguments(rules, with_cart):
    build = Build(TWO)
    for index, (effect, when, unless) in enumerate(rules):
        build.rule(f"r{index}", effect, "two", when=when, unless=unless)
    policy = build.policy()
    state = cart(run_state()) if with_cart else run_state()
    contract = compile_(policy, state)
    facts = FactsView([policy], state).at(NOW)[0]
    permitted = [
        (c, d, b)
        for c, d, b in itertools.product(("x", "y", "z"), ("p", "q", None), (True, False))
        if decide(
            policy,
            "two",
            for_call(facts, tool_facts(TWO), {"c": c, "b": b} if d is None else {"c": c, "d": d, "b": b}),
        ).verdict
        is not Verdict.DENY
    ]
    if "two" not in contract.names:
        unknown_hides = not with_cart and any("cart" in when + unless for _, when, unless in rules)
        assert not permitted or unknown_hides
        return
    properties = shown(contract, "two").parameters["properties"]
    assert set(properties["c"]["enum"]) == {c for c, _, _ in permitted}
    assert set(properties.get("d", {"enum": []})["enum"]) == {d for _, d, _ in permitted if d}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["allow", "ask", "deny"]), st.sampled_from(["", *PARTS])), max_size=4),
    st.sampled_from(["x", "y", "z"]),
    st.booleans(),
)
def test_what_is_not_shown_is_rejected_and_what_runs_was_shown(rules, c, b):
    """HexamindOrganisation/hexgate#122: the preview and the run disagreed."""
    build = Build(TWO)
    for index, (effect, when) in enumerate(rules):
        build.rule(f"r{index}", effect, "two", when=when)
    policy, state = build.policy(), run_state()
    facts = FactsView([policy], state).at(NOW)
    contract = ContractCompiler([policy]).compile(state, facts)
    proposal = propose("two", f'{{"c": "{c}", "b": {str(b).lower()}}}')
    turn_of(state, proposal)
    found = admit([policy], state, contract.names, state.epoch, CallId(1, 1), proposal, facts)
    if "two" not in contract.names:
        assert isinstance(found, Reject)
        assert found.refusal.code == "not_offered"
    elif not isinstance(found, Reject):
        assert c in shown(contract, "two").parameters["properties"]["c"]["enum"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_an_incremental_contract_is_that_of_a_fresh_compiler(data):
    build = Build(READ, ORDER, TWO)
    for index in range(data.draw(st.integers(1, 5))):
        build.rule(
            f"r{index}",
            data.draw(st.sampled_from(["allow", "ask", "deny"])),
            data.draw(st.sampled_from(["read_document", "two", "place_order"])),
            when=data.draw(
                st.sampled_from(
                    [
                        "",
                        "state.cart.open",
                        "task.flag",
                        "count('place_order') > 0",
                        "run.read_untrusted",
                        "run.turn > 1",
                    ]
                )
            ),
        )
    policy, state = build.policy(budgets=budgets(calls_per_tool={"two": 2})), cart(run_state())
    compiler, view = ContractCompiler([policy]), FactsView([policy], state)
    for step in range(6):
        change = data.draw(st.sampled_from(["cart", "untrusted", "turn", "source", "calls", "grant"]))
        if change == "cart":
            cart(state, step + 2, open=data.draw(st.booleans()))
        elif change == "untrusted":
            state.read_untrusted = True
        elif change == "turn":
            state.spent.turns += 1
        elif change == "source":
            state.sources["filings"] = data.draw(st.sampled_from(["available", "degraded"]))
        elif change == "calls":
            state.spent.per_tool["two"] = state.spent.per_tool.get("two", 0) + 1
        else:
            grant(state, "prospectus", f"g{step}")
        facts = view.at(NOW)
        assert compiler.compile(state, facts) == ContractCompiler([policy]).compile(state, facts)


def test_the_schema_a_model_is_given_is_valid_json_schema():
    build = (
        Build(READ, ORDER, TWO)
        .rule("a", "allow", "read_document", "two")
        .rule("o", "ask", "place_order")
        .output("note")
    )
    for each in compile_(build.policy(), cart(run_state())).tools:
        assert jsonschema_rs.meta.is_valid(each.parameters)
        assert each.parameters["additionalProperties"] is False


def test_a_rule_over_the_fields_of_an_output_is_decided_when_they_are_known():
    build = Build(READ).output("note")
    shape = tool("publish_note", Kind.WRITE, [param("body", TEXT)])
    build.tools["publish_note"] = shape
    build.rule("long", "deny", "publish_note", when="size(args.body) > 5")
    del build.tools["publish_note"]
    policy, state = build.policy(), run_state()
    facts = FactsView([policy], state).at(NOW)
    names = ContractCompiler([policy]).compile(state, facts).names
    assert "publish_note" in names
    for body, refused in (("short", False), ("too long", True)):
        proposal = propose("publish_note", f'{{"body": "{body}"}}')
        found = admit([policy], state, names, 0, CallId(1, 1), proposal, facts)
        assert isinstance(found, Reject) is refused
