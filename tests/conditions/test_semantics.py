"""What conditions answer: values, unknowns, receipts, grants, provenance."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from engine.domain.facts import PENDING, UNKNOWN, Facts, PastCall, ToolHistory, Truth
from engine.domain.types import Field
from engine.policy.conditions import RESULT_ROOTS, RULE_ROOTS
from engine.policy.conditions.values import links_in, parse_duration
from tests.conditions.worlds import NOW, POLICY, answer, at_rule, condition, faults_of, full_facts, plain


def with_args(**args: Any) -> Facts:
    facts = full_facts()
    return replace(facts, args={**facts.args, **args})


def without(name: str) -> Facts:
    facts = full_facts()
    return replace(facts, args={key: value for key, value in facts.args.items() if key != name})


# --- the conditions that people write ---------------------------------------------------------------------

WRITTEN = [
    ("size(state.cart.items) > 0", ()),
    (
        "done('reserve_inventory', {'cart_version': args.cart_version}) && args.total_minor <= limits.order_cap_minor",
        ("place_order",),
    ),
    ("args.total_minor > limits.order_cap_minor && task.channel == 'kiosk'", ("place_order",)),
    ("args.template == 'order_question' || done('place_order')", ("send_email",)),
    ("principal.suspended", ()),
    ("task.channel == 'kiosk' && !done('place_order')", ("send_email",)),
    ("principal.desk == 'funds'", ()),
    ("args.collection == grant.documents.collection", ("search_document",)),
    ("done('run_check', {'check': 'unit'}, {'verdict': 'pass'}) && !task.freeze", ()),
    ("under(args.path, 'src/') || under(args.path, 'tests/') || under(args.path, 'docs/')", ("everything",)),
    (
        "args.argv[0] in ['uptime', 'df', 'free'] || (args.argv[0] == 'systemctl' && args.argv[1] == 'status')",
        ("run_command",),
    ),
    ("run.read_untrusted && !tool.reversible", ()),
    ("run.turn >= 0 && run.budget_left.turns > 2", ()),
    (
        "'user' in origin(args.to) || 'mention' in origin(args.to) || 'trusted' in origin(args.to)",
        ("send_email",),
    ),
    ("has(args.cc) && args.cc.all(e, 'user' in origin(e) || 'state' in origin(e))", ("send_email",)),
    ("args_of('address').all(a, 'user' in origin(a) || 'endorsed' in origin(a))", ("send_email",)),
    ("links(args.message).all(u, 'user' in origin(u) || 'trusted' in origin(u))", ("send_email",)),
    ("!has(args.gift_note)", ("place_order",)),
    ("source.stock.state == 'available' && has(source.stock.age)", ()),
    ("'confidential' in run.labels && tool.egress && tool.kind in ['write', 'hybrid']", ()),
]


@pytest.mark.parametrize(("text", "tools"), WRITTEN, ids=[text[:40] for text, _ in WRITTEN])
def test_conditions_of_real_policies_check_and_answer(text: str, tools: tuple[str, ...]) -> None:
    env = at_rule(*tools)
    assert faults_of(text, env) == []
    assert answer(text, full_facts(), env) in (True, False, UNKNOWN)


def test_probe_conditions_read_the_result() -> None:
    env = POLICY.at(RESULT_ROOTS, result={"found": Field(plain("bool"))})
    assert answer("!result.found", Facts(result={"found": False}), env) is True
    assert answer("!result.found", Facts(), env) is UNKNOWN


# --- three values -----------------------------------------------------------------------------------------

_VALUES = {"true": True, "false": False, "args.flag": PENDING, "task.freeze": UNKNOWN}
_CONNECTED = [
    ("false && task.freeze", False),
    ("task.freeze && false", False),
    ("args.flag && false", False),
    ("true || args.flag", True),
    ("task.freeze || true", True),
    ("true && args.flag", PENDING),
    ("true && task.freeze", UNKNOWN),
    ("args.flag && task.freeze", UNKNOWN),
    ("task.freeze || args.flag", UNKNOWN),
    ("args.flag || false", PENDING),
    ("!args.flag", PENDING),
    ("!task.freeze", UNKNOWN),
    ("args.flag == task.freeze", UNKNOWN),
    ("args.flag == true", PENDING),
]


@pytest.mark.parametrize(("text", "expected"), _CONNECTED)
def test_unknown_and_pending_combine_as_kleene_says(text: str, expected: Truth) -> None:
    facts = Facts(args={"flag": PENDING}, task={})
    assert answer(text, facts) is expected


def test_an_absent_optional_argument_is_unknown_and_has_says_so() -> None:
    assert answer("args.maybe > 1", without("maybe")) is UNKNOWN
    assert answer("has(args.maybe)", without("maybe")) is False
    assert answer("has(args.maybe)", with_args(maybe=0)) is True
    assert answer("has(args.maybe)", with_args(maybe=None)) is False
    assert answer("has(args.maybe)", with_args(maybe=PENDING)) is PENDING
    assert answer("has(args.maybe) && args.maybe > 1", without("maybe")) is False


def test_an_element_out_of_range_and_a_slice_that_is_not_there_are_unknown() -> None:
    assert answer("args.argv[1] == 'status'", with_args(argv=["systemctl"])) is UNKNOWN
    assert answer("args.argv[-1] == 'status'") is UNKNOWN
    assert answer("state.cart.version == 3", Facts()) is UNKNOWN


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("args.n == 1", {"n": True}),
        ("args.n < 1", {"n": 0.5}),
        ("args.n < 1", {"n": -(2**63) - 1}),
        ("args.amount < decimal('1')", {"amount": 0.5}),
        ("args.amount < decimal('1')", {"amount": Decimal("NaN")}),
        ("args.flag", {"flag": 1}),
        ("args.name == 'x'", {"name": 5}),
        ("size(args.tags) == 0", {"tags": "abc"}),
        ("args.at < now", {"at": "yesterday"}),
        ("args.at < now", {"at": NOW.replace(tzinfo=None)}),
        ("args.box.w > 1", {"box": [1]}),
        ("args.wait > duration('1s')", {"wait": 5}),
        ("size(args.body) > 1", {"body": None}),
    ],
)
def test_a_value_of_another_type_is_unknown(text: str, args: dict[str, Any]) -> None:
    assert answer(text, with_args(**args)) is UNKNOWN


def test_integers_are_exact_and_unknown_beyond_64_bits() -> None:
    big = 2**63 - 1
    assert answer(f"args.n == {big}", with_args(n=big)) is True
    assert answer(f"args.n == {big - 1}", with_args(n=big)) is False
    assert answer("args.n + 1 > 0", with_args(n=big)) is UNKNOWN
    assert answer("args.n * args.n > 0", with_args(n=big)) is UNKNOWN
    assert answer("-args.n > 0", with_args(n=-(2**63))) is UNKNOWN
    assert answer("args.n == -9223372036854775808", with_args(n=-(2**63))) is True


def test_decimals_are_exact_and_never_floats() -> None:
    assert answer("args.amount == decimal('12.5')") is True
    assert answer("args.amount + decimal('0.1') + decimal('0.2') == decimal('12.8')") is True
    assert answer("args.amount * limits.rate == decimal('18.75')") is True
    assert answer("args.amount > decimal('1')", with_args(amount="1.01")) is True
    huge = Decimal("9" * 90)
    assert answer("args.amount * args.amount > decimal('1')", with_args(amount=huge)) is UNKNOWN


def test_times_and_ages() -> None:
    assert answer("age(args.at) > duration('2m') && age(args.at) < duration('3m1s')") is True
    assert answer("args.at < timestamp('2026-03-01T12:00:00Z')") is True
    assert answer("args.at + args.wait < now && now - args.at == duration('3m')") is True
    assert answer("state.cart.age < limits.patience") is True
    assert answer("args.at + args.wait > now", with_args(wait=timedelta(days=10**6 * 9))) is UNKNOWN
    assert parse_duration("1h30m") == timedelta(minutes=90)
    assert [parse_duration(text) for text in ("", "-", "10", "1d", "m", "1.5h", "1m1h")] == [None] * 7


# --- lists ------------------------------------------------------------------------------------------------


def test_lists_answer_in_exists_all_size_and_element() -> None:
    assert answer("'red' in args.tags && !('green' in args.tags) && size(args.tags) == 2") is True
    assert answer("args.rows.exists(r, r.quantity == 0) && !args.rows.all(r, r.quantity > 0)") is True
    assert answer("args.rows.all(r, state.cart.items.exists(i, i.sku == r.sku))") is False
    assert answer("args.rows[0].sku == 'a' && args.sizes[args.small - 1] == 12") is True
    assert answer("args.name in ['x', 'widget-7'] && args.n in [1, 4200] && !(args.name in [])") is True
    assert answer("args.tags.all(t, false)", with_args(tags=[])) is True
    assert answer("args.tags.exists(t, true)", with_args(tags=[])) is False


def test_lists_with_unknown_elements_follow_kleene() -> None:
    assert answer("args.tags.exists(t, t == 'red')", with_args(tags=[None, "red"])) is True
    assert answer("args.tags.exists(t, t == 'green')", with_args(tags=[None, "red"])) is UNKNOWN
    assert answer("args.tags.all(t, t == 'red')", with_args(tags=[None, "blue"])) is False
    assert answer("'green' in args.tags", with_args(tags=["red", 5])) is UNKNOWN
    assert answer("args.tags.all(t, t == 'red')", with_args(tags=PENDING)) is PENDING
    assert answer("args.tags.exists(t, t == args.name)", with_args(name=PENDING)) is PENDING


def test_variables_of_nested_macros_do_not_disturb_each_other() -> None:
    text = "args.sizes.exists(x, args.tags.all(x, x == 'red') || x == 5)"
    assert answer(text) is True
    text = "args.sizes.all(x, args.sizes.exists(y, y == x) && x < 13)"
    assert answer(text) is True


# --- paths, addresses, links ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".env", True),
        (".env/x", True),
        (".env.local", False),
        ("./.env", True),
        ("a/.env", False),
        (".env//", True),
        ("a/../.env", UNKNOWN),
        ("/.env", UNKNOWN),
        ("..", UNKNOWN),
        ("x\\..\\.env", UNKNOWN),
        (".ENV", False),
        ("", False),
    ],
)
def test_under_compares_whole_components_of_the_normalised_path(path: str, expected: Truth) -> None:
    assert answer("under(args.path, '.env')", with_args(path=path)) is expected


def test_under_takes_a_path_fact_as_folder() -> None:
    assert answer("under(args.path, principal.home)", with_args(path="src/u1/notes")) is True
    assert answer("under(args.path, principal.home)", with_args(path="src/u10")) is False
    assert answer("args.path == './src//main.py'") is True


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("https://shop.example.org/a", True),
        ("HTTPS://Shop.Example.ORG.:443/a", True),
        ("https://shop.example.org@evil.test/", False),
        ("https://evil.test\\@shop.example.org/", UNKNOWN),
        ("https://shop.example.org%2eevil.test/", UNKNOWN),
        ("https://ｓhop.example.org/", UNKNOWN),
        ("//shop.example.org/a", UNKNOWN),
        ("https://shop.example.org:x/", UNKNOWN),
        ("shop.example.org", UNKNOWN),
        ("https://", UNKNOWN),
    ],
)
def test_host_is_what_a_browser_would_ask(link: str, expected: Truth) -> None:
    assert answer("host(args.link) == 'shop.example.org'", with_args(link=link)) is expected


def test_urls_and_mail_addresses_are_compared_without_regard_to_the_case_of_hosts() -> None:
    assert (
        answer("args.link == 'https://shop.example.org/a'", with_args(link="HTTPS://SHOP.example.org:443/a"))
        is True
    )
    assert (
        answer("args.link == 'https://shop.example.org/a'", with_args(link="https://shop.example.org/A"))
        is False
    )
    assert answer("args.mail == 'ann@Example.org'", with_args(mail="ann@EXAMPLE.org")) is True
    assert answer("domain(args.mail) in ['example.org']", with_args(mail="bob@EXAMPLE.org")) is True
    assert answer("domain(args.mail) == 'example.org'", with_args(mail="a@b@example.org")) is UNKNOWN
    assert answer("scheme(args.link) == 'https'") is True


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("nothing here, not even 3.5 or a.b", []),
        ("see https://evil.test/a?b=c#d.", ["https://evil.test/a?b=c#d"]),
        ("(www.evil.test/x) and HTTP://B.test!", ["www.evil.test/x", "HTTP://B.test"]),
        ("[here](https://evil.test/p)", ["https://evil.test/p"]),
        ("<a href='https://evil.test/q'>x</a>", ["https://evil.test/q"]),
        ("mail bob@evil.test, or mailto:eve+x@sub.evil.test.", ["bob@evil.test", "eve+x@sub.evil.test"]),
        ("a" * 300 + "@evil.test", ["a" * 300 + "@evil.test"]),
    ],
)
def test_links_are_found_literally(text: str, links: list[str]) -> None:
    assert links_in(text) == links


def test_links_take_linear_time() -> None:
    for hostile in ("a@" * 50_000, "a." * 50_000, "www." * 50_000, "a" * 100_000, "a@b" + ".c-" * 50_000):
        links_in(hostile)


def test_links_of_an_argument_are_asked_for_their_origin_and_host() -> None:
    assert answer("links(args.body).all(u, 'user' in origin(u))") is False
    assert answer("links(args.body).all(u, host(u) == 'evil.example')") is True
    assert answer("size(links(args.body)) == 0", with_args(body="plain words")) is True
    assert answer("links(args.body).all(u, host(u) == 'a.test')", with_args(body="bob@a.test")) is UNKNOWN


# --- receipts ---------------------------------------------------------------------------------------------


def with_history(tool: str, past: ToolHistory) -> Facts:
    facts = full_facts()
    return replace(facts, history={**facts.history, tool: past})


def test_done_asks_for_a_confirmed_call_that_matches_everything_at_once() -> None:
    assert answer("done('run_check')") is True
    assert answer("done('run_check', {'check': 'unit'}, {'verdict': 'pass'})") is True
    assert answer("done('run_check', {'check': 'lint'})") is False
    assert answer("done('run_check', {'check': 'lint'}, {'verdict': 'pass'})") is False
    assert answer("done('place_order')") is False
    assert answer("done('reserve_inventory', {'cart_version': state.cart.version})") is True
    assert answer("done('reserve_inventory', {'cart_version': state.cart.version + 1})") is False


def test_done_does_not_mix_two_calls() -> None:
    calls = [
        PastCall({"check": "unit"}, {"verdict": "fail"}, NOW),
        PastCall({"check": "lint"}, {"verdict": "pass"}, NOW),
    ]
    facts = with_history("run_check", ToolHistory(confirmed=calls))
    assert answer("done('run_check', {'check': 'unit'}, {'verdict': 'pass'})", facts) is False


def test_an_open_call_makes_done_unknown_only_if_it_could_change_the_answer() -> None:
    confirmed = [PastCall({"check": "unit"}, {"verdict": "pass"}, NOW)]
    facts = with_history("run_check", ToolHistory(confirmed=confirmed, open={(2, 1): {"check": "lint"}}))
    assert answer("done('run_check', {'check': 'unit'})", facts) is True
    assert answer("done('run_check', {'check': 'lint'})", facts) is UNKNOWN
    assert answer("!done('run_check', {'check': 'lint'})", facts) is UNKNOWN
    assert answer("done('run_check', {'check': 'unit'}, {'verdict': 'fail'})", facts) is False
    assert answer("done('run_check', {'check': 'lint'}, {'verdict': 'fail'})", facts) is UNKNOWN
    assert answer("done('run_check', {}, {'verdict': 'fail'})", facts) is UNKNOWN


def test_done_with_a_pending_argument_is_pending() -> None:
    text = "done('reserve_inventory', {'cart_version': args.n})"
    assert answer(text, with_args(n=PENDING)) is PENDING
    assert (
        answer(
            text.replace("reserve_inventory', {'cart_version'", "place_order', {'cart_version'"),
            with_args(n=PENDING),
        )
        is False
    )


def test_count_sum_and_last_age() -> None:
    assert answer("count('pay') == 2 && count('pay', 'failed') == 1 && count('pay', 'unknown') == 0") is True
    assert answer("count('place_order') == 0 && sum('pay', 'cents') == 175") is True
    assert answer("sum('pay', 'amount') == decimal('1.75') && sum('place_order', 'total_minor') == 0") is True
    assert answer("last_age('pay') == duration('3m')") is True
    assert answer("last_age('place_order') > duration('0s')") is UNKNOWN


def test_open_calls_make_counts_sums_and_ages_unknown() -> None:
    past = ToolHistory(
        counts={"confirmed": 1}, confirmed=[PastCall({"cents": 5}, {}, NOW)], open={(1, 1): {"cents": 7}}
    )
    facts = with_history("pay", past)
    for text in ("count('pay') == 1", "sum('pay', 'cents') == 5", "last_age('pay') > duration('0s')"):
        assert answer(text, facts) is UNKNOWN
    past.open = {(1, 1): {"cents": 0}}
    assert answer("sum('pay', 'cents') == 5", facts) is True


def test_a_sum_beyond_64_bits_is_unknown() -> None:
    calls = [PastCall({"cents": 2**62}, {}, NOW)] * 2
    assert answer("sum('pay', 'cents') > 0", with_history("pay", ToolHistory(confirmed=calls))) is UNKNOWN


# --- grants -----------------------------------------------------------------------------------------------


def under_grants(text: str, *levels: Any) -> Truth:
    facts = replace(full_facts(), grants={"host": [{"level": level} for level in levels]})
    return answer(text, facts)


def test_a_condition_holds_if_it_holds_under_any_one_grant() -> None:
    assert under_grants("grant.host.level == 3", 1, 3) is True
    assert under_grants("grant.host.level == 3", 1, 2) is False
    assert under_grants("grant.host.level == 3", 1, None) is UNKNOWN
    assert under_grants("grant.host.level == 3", None, 3) is True
    assert under_grants("grant.host.level == 3", None, PENDING) is UNKNOWN
    assert under_grants("grant.host.level == 3", PENDING, 1) is PENDING


def test_one_grant_must_satisfy_the_whole_condition() -> None:
    assert under_grants("grant.host.level > 1 && grant.host.level < 3", 1, 3) is False
    assert under_grants("grant.host.level > 1 && grant.host.level < 3", 1, 2) is True


def test_without_an_active_grant_the_condition_is_unknown_unless_decided_otherwise() -> None:
    assert under_grants("grant.host.level == 3") is UNKNOWN
    assert under_grants("grant.host.level == 3 && task.freeze") is False


def test_whether_a_capability_is_granted_at_all_is_a_fact() -> None:
    assert under_grants("has(grant.host)", 1) is True
    assert under_grants("has(grant.host)") is False
    assert under_grants("has(grant.host) && grant.host.level == 3") is False
    assert under_grants("has(grant.host) && grant.host.level == 3", 3) is True


def test_grants_of_two_capabilities_are_tried_together() -> None:
    facts = replace(
        full_facts(),
        grants={"host": [{"level": 1}, {"level": 2}], "documents": [{"collection": "prospectus"}]},
    )
    assert answer("grant.host.level == 2 && grant.documents.collection == 'prospectus'", facts) is True
    assert (
        answer(
            "args.sizes.exists(s, s == grant.host.level) && grant.documents.collection != 'prospectus'", facts
        )
        is False
    )


# --- provenance -------------------------------------------------------------------------------------------


def test_origin_is_what_the_records_say_and_unknown_for_trivial_values() -> None:
    assert answer("'user' in origin(args.name)") is True
    assert answer("'state' in origin(args.name)") is False
    assert answer("'user' in origin(args.name)", with_args(name="abc")) is UNKNOWN
    assert answer("'user' in origin(args.n)") is True
    for trivial in (999, -999, 0):
        assert answer("'user' in origin(args.n)", with_args(n=trivial)) is UNKNOWN
    assert answer("'user' in origin(args.amount)", with_args(amount=Decimal("12.00"))) is UNKNOWN
    assert answer("'untrusted' in origin(args.amount)", with_args(amount=Decimal("12.50"))) is True
    assert answer("'user' in origin(args.name)", with_args(name=PENDING)) is PENDING
    assert answer("'user' in origin(args.name)", replace(full_facts(), origin=None)) is UNKNOWN
    assert answer("origin(args.name).all(o, o in ['user', 'task'])") is True
    assert answer("args.tags.all(t, 'untrusted' in origin(t))", with_args(tags=["widget-8"])) is True


def test_args_of_collects_the_arguments_of_a_class_from_lists_too() -> None:
    env = POLICY.at(RULE_ROOTS, selects=True)
    facts = Facts(
        args={"to": "bob@x.org", "cc": ["eve@x.org", "al@x.org"]},
        arg_classes={"address": ["to", "cc", "bcc"]},
        origin=lambda value: frozenset({"user"} if value != "eve@x.org" else {"untrusted"}),
    )
    assert answer("size(args_of('address')) == 3", facts, env) is True
    assert answer("args_of('address').all(a, 'user' in origin(a))", facts, env) is False
    assert answer("args_of('secret').all(a, 'user' in origin(a))", facts, env) is True
    pending = replace(facts, args={"to": PENDING, "cc": []})
    assert answer("args_of('address').all(a, 'user' in origin(a))", pending, env) is PENDING


# --- what a condition reads -------------------------------------------------------------------------------


def test_a_condition_names_the_facts_that_it_depends_on() -> None:
    found = condition(
        "state.cart.items.exists(i, i.sku == args.name) && grant.documents.collection == 'prospectus' "
        "&& age(args.at) < limits.patience && source.stock.state == 'available' && run.read_untrusted "
        "&& done('pay', {'cents': args.n}) && 'user' in origin(args.name) && size(args_of('address')) > 0"
    )
    assert found.reads == {
        "state.cart.items", "args.name", "grant.documents.collection", "args.at", "now", "limits.patience",
        "source.stock.state", "run.read_untrusted", "history.pay", "args.n", "origin", "args_of.address",
    }  # fmt: skip
    assert found.args_read == {"name", "at", "n"}


def test_two_conditions_of_one_text_are_equal() -> None:
    assert condition("args.n > 1") == condition("args.n > 1")
    assert len({condition("args.n > 1"), condition("args.n > 1"), condition("args.n > 2")}) == 2
