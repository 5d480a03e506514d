"""Decisions: four effects, three values, order never matters."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.conditions import Condition, Constant, Span
from engine.domain.facts import PENDING, UNKNOWN, Facts, Truth
from engine.domain.policy import Effect, Kind, Rule
from engine.policy.decision import Verdict, decide, decide_restricted, not_applied
from engine.policy.view import FactsView, for_call, tool_facts

from .build import (
    BOOL,
    COLLECTION,
    NOW,
    TEXT,
    Build,
    approval,
    cart,
    grant,
    param,
    run_state,
    tool,
    unattended,
)

READ = tool("read_document", params=[param("collection", COLLECTION), param("words", TEXT, required=False)])
WRITE = tool("place_order", Kind.WRITE)


def seen(policy, name, state, **args):
    facts = FactsView([policy], state).at(NOW)[0]
    return for_call(facts, tool_facts(policy.tools[name]), args)


def verdict(build, name="read_document", state=None, **args):
    policy = build.policy()
    return decide(policy, name, seen(policy, name, state or run_state(), **args))


def test_nothing_is_permitted_without_a_rule():
    found = verdict(Build(READ), collection="prospectus")
    assert found.verdict is Verdict.DENY
    assert found.reason == "no rule permits it"


def test_a_require_alone_permits_nothing():
    assert verdict(Build(READ).rule("people", "require", "read_document")).verdict is Verdict.DENY


def test_an_overlay_cannot_permit_even_if_it_says_so():
    build = Build(READ).rule("a", "allow", "read_document", origin="overlay org")
    assert verdict(build).verdict is Verdict.DENY


def test_deny_wins_and_is_named_with_its_place():
    build = Build(READ).rule("a", "allow", "read_document").rule("d", "deny", "read_document")
    found = verdict(build, collection="prospectus")
    assert found.verdict is Verdict.DENY
    assert found.reason == "decided by deny `d` (p.policy.yaml:11)"


def test_unless_is_the_exception_of_a_deny():
    build = Build(READ).rule("a", "allow", "read_document")
    build.rule(
        "d",
        "deny",
        "read_document",
        when="args.collection == 'internal_memo'",
        unless="principal.desk == 'funds'",
    )
    assert verdict(build, collection="internal_memo").verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    ("effect", "expected"),
    [("deny", Verdict.DENY), ("require", Verdict.HUMAN), ("ask", Verdict.HUMAN), ("allow", Verdict.ALLOW)],
)
def test_unknown_restricts_and_never_permits(effect, expected):
    build = Build(READ).rule("base", "allow", "read_document")
    build.rule("x", effect, "read_document", when="state.cart.open")
    found = verdict(build, collection="prospectus")
    assert found.verdict is expected
    assert "x" not in {rule.id for rule in found.permits}


def test_every_matched_ask_and_require_is_a_requirement_of_its_own():
    build = Build(WRITE).rule("one", "ask", "place_order", approval=approval("analyst"))
    build.rule("two", "ask", "place_order").rule("three", "require", "place_order")
    found = verdict(build, "place_order")
    assert found.verdict is Verdict.HUMAN
    assert [need.rule for need in found.needs] == ["one", "two", "three"]


def test_an_ask_without_approval_is_no_way_in():
    build = Build(WRITE).rule("a", "allow", "place_order").rule("q", "require", "place_order", approval=None)
    assert verdict(build, "place_order").verdict is Verdict.DENY


def test_needs_wants_an_active_grant_and_one_of_several_grants_is_enough():
    build = Build(READ).rule(
        "g",
        "allow",
        "read_document",
        needs=("documents",),
        when="args.collection == grant.documents.collection",
    )
    state = run_state()
    assert verdict(build, state=state, collection="prospectus").verdict is Verdict.DENY
    grant(grant(state, "annual_report", "g1"), "prospectus", "g2")
    found = verdict(build, state=state, collection="prospectus")
    assert found.verdict is Verdict.ALLOW
    assert found.grants == (("documents", 1),)
    assert verdict(build, state=state, collection="internal_memo").verdict is Verdict.DENY


def test_a_grant_never_widens_a_deny():
    build = Build(READ).rule("a", "allow", "read_document")
    build.rule("d", "deny", "read_document", unless="grant.documents.collection == 'prospectus'")
    state = grant(grant(run_state(), "prospectus", "g1"), "annual_report", "g2")
    assert verdict(build, state=state, collection="prospectus").verdict is Verdict.DENY


@pytest.mark.parametrize("left", [{"expires_at": NOW}, {"calls_left": 0}])
def test_a_grant_that_lapsed_permits_nothing_before_its_expiry_is_recorded(left):
    build = Build(READ).rule("g", "allow", "read_document", needs=("documents",))
    assert verdict(build, state=grant(run_state(), "prospectus", **left)).verdict is Verdict.DENY


def test_beyond_its_cap_an_unattended_rule_permits_nothing():
    build = Build(WRITE).rule("auto", "allow", "place_order", unattended=unattended(2))
    state = run_state()
    assert verdict(build, "place_order", state).unattended.id == "auto"
    state.spent.unattended["auto"] = 2
    found = verdict(build, "place_order", state)
    assert found.verdict is Verdict.DENY
    policy = build.policy()
    assert not_applied(policy, "place_order", seen(policy, "place_order", state))[0].clause == "max_per_run 2"


def test_a_condition_that_raises_counts_as_unknown_and_alerts_an_operator():
    def broken(_: Facts) -> Truth:
        raise RuntimeError("boom")

    constant = Constant(True, BOOL, Span(0, 1))
    condition = Condition("x", constant, frozenset(), frozenset(), frozenset(), broken)
    build = Build(READ).rule("a", "allow", "read_document").rule("d", "deny", "read_document")
    build.rules[1] = replace(build.rules[1], when=condition)
    found = verdict(build)
    assert found.verdict is Verdict.DENY
    assert found.alerts == ("the condition `x` failed: RuntimeError",)


@pytest.mark.parametrize("answer", ["alow", {"allow": "yes"}, [], None, 1])
def test_an_answer_that_is_no_truth_value_permits_nothing(answer):
    """vercel/ai#19978: an unrecognised decision was taken as no opinion, and the tool ran."""
    constant = Constant(True, BOOL, Span(0, 1))
    condition = Condition("x", constant, frozenset(), frozenset(), frozenset(), lambda _: answer)
    build = Build(READ).rule("a", "allow", "read_document")
    build.rules[0] = replace(build.rules[0], when=condition)
    found = verdict(build)
    assert found.verdict is Verdict.DENY
    assert found.alerts


def test_the_newer_version_restricts_and_never_widens():
    own = Build(READ, WRITE).rule("a", "allow", "read_document").rule("w", "ask", "place_order").policy()
    newer = Build(READ, WRITE).rule("a", "allow", "place_order").policy(version=2)
    state = run_state()
    views = FactsView([own, newer], state).at(NOW)

    def both(name):
        facts = [for_call(each, tool_facts(own.tools[name]), {}) for each in views]
        return decide_restricted([own, newer], name, facts)

    assert both("read_document").verdict is Verdict.DENY
    assert both("read_document").reason == "no rule permits it, in version 2"
    assert both("place_order").verdict is Verdict.HUMAN


def test_approvals_of_both_versions_add_up():
    own = Build(WRITE).rule("w", "ask", "place_order", approval=approval("analyst")).policy()
    newer = Build(WRITE).rule("w", "ask", "place_order", approval=approval("manager")).policy(version=2)
    facts = [for_call(each, tool_facts(WRITE), {}) for each in FactsView([own, newer], run_state()).at(NOW)]
    needs = decide_restricted([own, newer], "place_order", facts).needs
    assert [need.rule for need in needs] == ["w", "w (version 2)"]


def test_all_orders_of_the_rules_decide_alike():
    """apache/casbin#740, anomalyco/opencode#7041, MoonshotAI/kimi-code#1901: three engines, three winners."""
    build = Build(READ).rule("a", "allow", "read_document").rule("b", "ask", "read_document")
    build.rule("c", "require", "read_document", when="task.depth == 'full'")
    build.rule("d", "deny", "read_document", when="args.collection == 'internal_memo'")
    build.rule("e", "allow", "read_document", when="args.collection != 'prospectus'")
    build.rule("f", "deny", "read_document", when="principal.desk == 'wealth'")
    for collection in COLLECTION.values:
        answers = set()
        for order in itertools.permutations(build.rules):
            policy = replace(build.policy(), rules_of={"read_document": order})
            found = decide(
                policy, "read_document", seen(policy, "read_document", run_state(), collection=collection)
            )
            answers.add((found.verdict, frozenset(rule.id for rule in found.rules)))
        assert len(answers) == 1


# --- properties ----------------------------------------------------------------------------------------------

CONDITIONS = [
    "args.collection == 'internal_memo'",
    "args.collection != 'prospectus'",
    "state.cart.open",
    "state.cart.total > limits.cap",
    "principal.desk == 'funds'",
    "task.flag",
    "done('place_order')",
    "run.read_untrusted",
    "!has(args.words)",
    "state.cart.open && args.collection == 'prospectus'",
    "state.cart.total == 10 || task.flag",
]


@st.composite
def rule_sets(draw: st.DrawFn, effects: tuple[str, ...] = ("allow", "ask", "require", "deny")) -> Build:
    build = Build(READ, WRITE)
    for index in range(draw(st.integers(1, 5))):
        build.rule(
            f"r{index}",
            draw(st.sampled_from(effects)),
            "read_document",
            when=draw(st.sampled_from(["", *CONDITIONS])),
            unless=draw(st.sampled_from(["", *CONDITIONS])),
        )
    return build


RANK = {Verdict.ALLOW: 0, Verdict.HUMAN: 1, Verdict.DENY: 2}


@settings(max_examples=100, deadline=None)
@given(rule_sets(), st.sampled_from(COLLECTION.values), st.booleans(), st.randoms())
def test_order_never_matters(build, collection, flag, random):
    policy, state = build.policy(), cart(run_state(task={"depth": "full", "flag": flag}))
    facts = seen(policy, "read_document", state, collection=collection)
    shuffled = list(build.rules)
    random.shuffle(shuffled)
    one, two = (
        decide(policy, "read_document", facts),
        decide(replace(policy, rules_of={"read_document": tuple(shuffled)}), "read_document", facts),
    )
    assert one.verdict is two.verdict
    assert {rule.id for rule in one.rules} == {rule.id for rule in two.rules}
    assert {need.rule for need in one.needs} == {need.rule for need in two.needs}


@settings(max_examples=150, deadline=None)
@given(
    rule_sets(),
    st.sampled_from(COLLECTION.values),
    st.sampled_from(["open", "total", "desk", "flag", "cart"]),
)
def test_a_fact_made_unknown_never_turns_a_refusal_into_a_permit(build, collection, lost):
    policy = build.policy()
    state = cart(run_state())
    before = decide(policy, "read_document", seen(policy, "read_document", state, collection=collection))
    if lost == "cart":
        state.state.clear()
    elif lost in ("open", "total"):
        del state.state["cart"].value[lost]
    elif lost == "flag":
        del state.task["flag"]
    else:
        state.principal = state.principal.model_copy(update={"attrs": {}})
    after = decide(policy, "read_document", seen(policy, "read_document", state, collection=collection))
    if before.verdict is Verdict.DENY:
        assert after.verdict is Verdict.DENY


@settings(max_examples=100, deadline=None)
@given(rule_sets(), rule_sets(effects=("require", "deny")), st.sampled_from(COLLECTION.values))
def test_an_overlay_never_permits_more(build, overlay, collection):
    policy, state = build.policy(), cart(run_state())
    facts = seen(policy, "read_document", state, collection=collection)
    added = tuple(replace(rule, id=f"o-{rule.id}", origin="overlay org") for rule in overlay.rules)
    more = replace(policy, rules_of={"read_document": (*policy.rules_of["read_document"], *added)})
    one, two = decide(policy, "read_document", facts), decide(more, "read_document", facts)
    assert RANK[two.verdict] >= RANK[one.verdict]
    if two.verdict is not Verdict.DENY:
        assert {need.rule for need in one.needs} <= {need.rule for need in two.needs}


@settings(max_examples=100, deadline=None)
@given(rule_sets(), st.sampled_from(COLLECTION.values))
def test_the_decision_is_that_of_the_written_formula(build, collection):
    policy, state = build.policy(), cart(run_state())
    facts = seen(policy, "read_document", state, collection=collection)

    def kleene(rule: Rule) -> Truth:
        parts: list[Truth] = [rule.roles is None or "analyst" in rule.roles]
        if rule.when is not None:
            parts.append(rule.when.test(facts))
        if rule.unless is not None:
            value = rule.unless.test(facts)
            parts.append(not value if isinstance(value, bool) else value)
        if False in parts:
            return False
        return UNKNOWN if UNKNOWN in parts or PENDING in parts else True

    truth = [(rule.effect, kleene(rule)) for rule in build.rules]
    if any(effect is Effect.DENY and value is not False for effect, value in truth) or not any(
        effect.permits and value is True for effect, value in truth
    ):
        expected = Verdict.DENY
    elif any(
        (effect is Effect.ASK and value is True) or (effect is Effect.REQUIRE and value is not False)
        for effect, value in truth
    ):
        expected = Verdict.HUMAN
    else:
        expected = Verdict.ALLOW
    assert decide(policy, "read_document", facts).verdict is expected
