"""Each fault of a condition: code, exact stretch of text, help."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.policy.conditions import (
    APPROVE_ROOTS,
    GATE_ROOTS,
    RESULT_ROOTS,
    RULE_ROOTS,
    compile_condition,
    compile_value,
)
from tests.conditions.worlds import EVERY, POLICY, at_rule, condition, enum, faults_of, full_facts, plain

CASES = [
    # raise C101, the text
    ("principal.suspended &&", "C101", "&&", "finish the expression"),
    ("", "C101", "", "write a condition"),
    ("principal.suspended and task.freeze", "C101", "and", "`&&`"),
    ("task.channel = 'web'", "C101", "=", "`==`"),
    ("task.channel == 'web", "C101", "'web", "close the string"),
    ("(task.freeze || task.freeze", "C101", "(", "add `)`"),
    ("args.n > 1.5", "C101", "1.5", "decimal('1.50')"),
    ("args.n > 9223372036854775808", "C101", "9223372036854775808", "smaller"),
    ("args.n / 2 > 3", "C101", "/", "multiply"),
    ("args.n % 2 == 0", "C101", "%", "multiply"),
    ("args.flag ? task.freeze : true", "C101", "?", "two rules"),
    ("principal.desk == null", "C101", "null", "has(x)"),
    (r"principal.id == 'a\qb'", "C101", r"\q", "escapes"),
    ("task.freeze task.freeze", "C101", "task", "join"),
    ("!" * 40 + "task.freeze", "C101", "!", "split"),
    ("args.n > " + "1 + " * 40 + "1", "C101", "+", "split"),
    # raise C102, names
    ("principle.suspended", "C102", "principle", "`principal`"),
    ("args.flag == True", "C102", "True", "`true`"),
    ("task.channel == kiosk", "C102", "kiosk", "quoted"),
    ("answer.complete", "C102", "answer", "not a fact"),
    ("params.collection == 'x'", "C102", "params", "reads here"),
    # raise C103, fields
    ("args.nn > 5", "C103", "nn", "did you mean `n`?"),
    ("state.basket.version > 1", "C103", "basket", "fields: cart"),
    ("state.cart.versoin > 1", "C103", "versoin", "`version`"),
    ("args.rows.exists(r, r.skuu == 'a')", "C103", "skuu", "`sku`"),
    ("source.stok.state == 'available'", "C103", "stok", "`stock`"),
    ("done('run_check', {'chek': 'unit'})", "C103", "'chek'", "`check`"),
    ("done('run_check', {}, {'verdikt': 'pass'})", "C103", "'verdikt'", "`verdict`"),
    ("sum('pay', 'sent') > 1", "C103", "'sent'", "`cents`"),
    # raise R201, tools
    ("done('reserve_inventry')", "R201", "'reserve_inventry'", "`reserve_inventory`"),
    # raise C104, types
    ("state.cart.items > 0", "C104", "state.cart.items > 0", "size(state.cart.items)"),
    ("args.n == '5'", "C104", "args.n == '5'", "one type"),
    ("args.amount > 5", "C104", "args.amount > 5", "decimal('1.50')"),
    ("state.cart.age < '10m'", "C104", "state.cart.age < '10m'", "duration('10m')"),
    ("args.name < 'b'", "C104", "args.name < 'b'", "`in`"),
    ("args.n && task.freeze", "C104", "args.n", "compare it"),
    ("args.n", "C104", "args.n", "compare it"),
    ("!args.name", "C104", "args.name", "compare it"),
    ("args.tags == ['a']", "C104", "args.tags == ['a']", "`in`"),
    ("args.mail == args.link", "C104", "args.mail == args.link", "one type"),
    ("args.box == args.box", "C104", "args.box == args.box", "fields"),
    ("args.name in 5", "C104", "args.name in 5", "write"),
    ("args.n in ['a']", "C104", "'a'", "one type"),
    ("args.n[0] == 1", "C104", "args.n[0]", "lists"),
    ("args.tags['x'] == 'a'", "C104", "'x'", "from 0"),
    ("has(args.tags[0])", "C104", "args.tags[0]", "size(x) > 0"),
    ("size(args.name) > 1", "C104", "args.name", "size("),
    ("under(args.name, 'src/')", "C104", "args.name", "under("),
    ("domain(args.link) == 'x'", "C104", "args.link", "domain("),
    ("duration('1d') > args.wait", "C104", "'1d'", "24h"),
    ("age(args.at) > duration(10)", "C104", "10", "duration('10m')"),
    ("size(args.tags, 1) > 1", "C104", "size(args.tags, 1)", "size("),
    ("args.n.exists(x, x > 1)", "C104", "args.n.exists(x, x > 1)", "lists"),
    ("args.tags.all('x')", "C104", "args.tags.all('x')", ".all(x"),
    ("args.tags.all(now, now == 'x')", "C104", "now", "another name"),
    ("{'a': 1}", "C104", "{'a': 1}", "done"),
    ("done('run_check', {}, {'said': 'x'})", "C104", "'said'", "trusted"),
    ("done('read_page', {}, {'title_id': 'x'})", "C104", "'title_id'", "trusted"),
    ("done('run_check', {'check': 'unit', 'check': 'lint'})", "C104", "'check'", "keep one"),
    ("origin(args.tags) == 1", "C104", "args.tags", "args.tags.all(x"),
    ("'user' in origin(state.cart.id)", "C104", "state.cart.id", "origin(args.x)"),
    ("links(args.name).all(u, true)", "C104", "args.name", "value itself"),
    ("args.rows.sku == 'a'", "C104", "args.rows.sku", ".exists(x"),
    # raise C105, functions
    ("len(state.cart.items) > 0", "C105", "len", "`size`"),
    ("args.tags.size() > 0", "C105", "size", "`size(args.tags)`"),
    ("args.tags.filter(x, x == 'a')", "C105", "filter", ".exists(x"),
    ("undre(args.path, 'src/')", "C105", "undre", "`under`"),
    ("args.tags.exist(x, true)", "C105", "exist", "`exists`"),
    # raise C106, values
    ("task.channel == 'kiosc'", "C106", "'kiosc'", "did you mean `kiosk`? values: web, kiosk"),
    ("'kiosc' != task.channel", "C106", "'kiosc'", "kiosk"),
    ("principal.desk in ['funds', 'welth']", "C106", "'welth'", "`wealth`"),
    ("'admin' in principal.roles", "C106", "'admin'", "values: shopper"),
    ("'secret' in run.labels", "C106", "'secret'", "confidential"),
    ("'usr' in origin(args.name)", "C106", "'usr'", "`user`"),
    ("'trusted.ordr' in origin(args.name)", "C106", "'trusted.ordr'", "`trusted.order`"),
    ("args.small == 10", "C106", "10", "between 1 and 9"),
    ("args.code == 'abcd'", "C106", "'abcd'", "shorten"),
    ("args.path == '/etc'", "C106", "'/etc'", "relative"),
    ("under(args.path, '../x')", "C106", "'../x'", "relative"),
    ("args.mail == 'bob'", "C106", "'bob'", "ann@example.org"),
    ("host(args.link) == 'Example.org'", "C106", "'Example.org'", "example.org"),
    ("count('pay', 'confrmed') > 0", "C106", "'confrmed'", "`confirmed`"),
    ("args_of('adress').all(a, true)", "C106", "'adress'", "`address`"),
    ("task.channel == task.kind", "C106", "task.channel == task.kind", "values: web"),
    ("done('run_check', {'check': 'unti'})", "C106", "'unti'", "`unit`"),
    ("source.stock.state == 'down'", "C106", "'down'", "available"),
    # raise C107, parts of values
    ("args.path.startsWith('src')", "C107", "args.path.startsWith('src')", "under(args.path"),
    ("args.mail.endsWith('@x.org')", "C107", "args.mail.endsWith('@x.org')", "domain(args.mail)"),
    ("args.link.contains('x')", "C107", "args.link.contains('x')", "host(args.link)"),
    ("args.name.matches('a.*')", "C107", "args.name.matches('a.*')", "whole value"),
    ("matches(args.name, 'a')", "C107", "matches(args.name, 'a')", "whole value"),
    ("'a' in args.name", "C107", "'a' in args.name", "whole value"),
    # raise C108, optional ones
    ("args.maybe > 1", "C108", "args.maybe", "has(args.maybe) &&"),
    ("args.maybe > 1 && has(args.maybe)", "C108", "args.maybe", "has(args.maybe) &&"),
    ("has(args.maybe) || args.maybe > 1", "C108", "args.maybe", "has(args.maybe) &&"),
    ("(has(args.maybe) || task.freeze) && args.maybe > 1", "C108", "args.maybe", "has(args.maybe) &&"),
    ("!(has(args.maybe) || task.freeze) || args.maybe > 1", "C108", "args.maybe", "has(args.maybe) &&"),
    ("args.box.h > 1", "C108", "args.box.h", "has(args.box.h)"),
    ("task.note == 'x'", "C108", "task.note", "has(task.note)"),
    ("count('pay') == args.maybe", "C108", "args.maybe", "unknown"),
    # raise C110, values that occur everywhere
    ("'user' in origin(args.small)", "C110", "origin(args.small)", "value itself"),
    ("'user' in origin(args.flag)", "C110", "origin(args.flag)", "value itself"),
    ("'user' in origin(args.code)", "C110", "origin(args.code)", "value itself"),
    # raise S301, free text
    ("args.body.contains('question')", "S301", "args.body.contains('question')", "opaque"),
    ("args.body == 'yes'", "S301", "args.body == 'yes'", "opaque"),
    ("'yes' in args.body", "S301", "'yes' in args.body", "opaque"),
    ("state.cart.remark != 'x'", "S301", "state.cart.remark != 'x'", "opaque"),
    ("'user' in origin(args.body)", "S301", "origin(args.body)", "opaque"),
    ("matches(args.body, 'x')", "S301", "matches(args.body, 'x')", "opaque"),
    ("args.body[0] == 'x'", "S301", "args.body[0]", "opaque"),
    ("args_of('payload').exists(p, p == 'x')", "S301", "p == 'x'", "opaque"),
    ("done('run_check', {}, {'log': 'x'})", "S301", "'log': 'x'", "opaque"),
    ("under(args.body, 'src')", "S301", "under(args.body, 'src')", "opaque"),
]


@pytest.mark.parametrize(("text", "code", "where", "help_"), CASES, ids=[case[0][:50] for case in CASES])
def test_each_fault_names_its_stretch_of_the_condition_and_its_remedy(
    text: str, code: str, where: str, help_: str
) -> None:
    (fault,) = faults_of(text)
    assert (fault.code, text[fault.span.start : fault.span.end]) == (code, where)
    assert help_ in fault.help
    assert fault.message[0] == "`" or fault.message[0].islower()


def test_errors_leave_no_condition_and_warnings_do() -> None:
    assert compile_condition("args.n == 'x'", EVERY)[0] is None
    assert compile_condition("args.maybe == 1", EVERY)[0] is not None


def test_all_faults_are_found_in_the_order_of_the_text() -> None:
    text = "principle.x && args.nn > 1 || len(args.tags) > task.freez && task.channel == 'kiosc'"
    assert [fault.code for fault in faults_of(text)] == ["C102", "C103", "C105", "C103", "C106"]


def test_one_cause_raises_one_fault() -> None:
    assert [fault.code for fault in faults_of("size(args.nope) + 1 > 2 && !(args.nope == 'x')")] == [
        "C103",
        "C103",
    ]


def test_spans_count_code_points() -> None:
    text = "principal.id == '👍🏽é' && args.nope"
    (fault,) = faults_of(text)
    assert text[fault.span.start : fault.span.end] == "nope"


@pytest.mark.parametrize(
    "text",
    [
        "has(args.maybe) && args.maybe > 1",
        "!has(args.maybe) || args.maybe > 1",
        "!(has(args.maybe) && args.maybe > 1)",
        "!(has(args.maybe) && task.freeze) || args.maybe > 1",
        "has(args.maybe) && (task.freeze || args.maybe > 1)",
        "(has(args.maybe) && task.freeze) && args.maybe > 1",
        "!(!has(args.maybe) || task.freeze) && args.maybe == 2",
        "has(args.maybe) && args.tags.exists(t, size(args.tags) > args.maybe)",
        "has(args.box.h) && args.box.h > args.box.w",
        "!has(args.maybe)",
    ],
)
def test_has_guards_through_and_and_or(text: str) -> None:
    assert faults_of(text) == []


def test_a_when_guards_the_unless_beside_it() -> None:
    when = condition("has(args.maybe) && args.n > 1")
    assert when.present == {"args.maybe"}
    assert compile_condition("args.maybe == 2", EVERY, present=when.present)[1] == []


# --- several tools ----------------------------------------------------------------------------------------


def test_an_argument_must_exist_in_every_named_tool() -> None:
    (fault,) = faults_of("args.shipping == 'express'", at_rule("place_order", "send_email"))
    assert fault.code == "C103"
    assert "`send_email`" in fault.message


def test_an_argument_must_have_one_type_in_every_named_tool() -> None:
    (fault,) = faults_of("args.query == 'x'", at_rule("search_document", "read_document"))
    assert fault.code == "C104"
    assert "`search_document`" in fault.message
    assert "`read_document`" in fault.message


def test_the_values_of_an_enum_are_those_of_any_named_tool() -> None:
    env = at_rule("search_document", "read_document")
    assert faults_of("args.collection == 'internal_memo' || args.collection == 'annual_report'", env) == []
    (fault,) = faults_of("args.collection == 'memo'", env)
    assert "values: prospectus, internal_memo, annual_report" in fault.help


def test_arguments_cannot_be_read_under_a_selector_but_asked_about_by_class() -> None:
    env = POLICY.at(RULE_ROOTS, selects=True)
    (fault,) = faults_of("args.to == 'a@b.org'", env)
    assert (fault.code, fault.span) == ("C104", (0, 4))
    assert faults_of("args_of('address').all(a, 'user' in origin(a) || 'state' in origin(a))", env) == []
    assert faults_of("args_of('payload').all(p, links(p).all(u, 'user' in origin(u)))", env) == []


def test_an_argument_of_a_tool_that_does_not_exist_is_the_fault_of_the_rule() -> None:
    assert compile_condition("args.x == 1", at_rule("no_such_tool")) == (None, [])


# --- places -----------------------------------------------------------------------------------------------


def test_params_are_read_where_a_request_is_approved() -> None:
    env = POLICY.at(APPROVE_ROOTS, params={"collection": enum("prospectus", "internal_memo")})
    assert faults_of("params.collection in ['prospectus', 'internal_memo']", env) == []
    assert [fault.code for fault in faults_of("args.x == 1", env)] == ["C102"]


def test_results_are_read_where_a_probe_answers() -> None:
    env = POLICY.at(RESULT_ROOTS, result={})
    assert [fault.code for fault in faults_of("!result.found", env)] == ["C103"]


def test_gates_read_outputs_and_counts() -> None:
    env = POLICY.at(GATE_ROOTS)
    assert faults_of("outputs.report.committed && calls.failed == 0 && run.turn > 1", env) == []
    assert [fault.code for fault in faults_of("args.answer_complete", env)] == ["C102"]


def test_an_argument_that_the_host_binds_has_no_origin() -> None:
    (fault,) = faults_of("'user' in origin(args.cart_id)", at_rule("place_order"))
    assert fault.code == "C110"
    assert "the Host fills it in" in fault.message


# --- value paths ------------------------------------------------------------------------------------------


def test_a_value_path_reads_one_value_of_the_wanted_type() -> None:
    path, faults = compile_value("state.cart.id", EVERY, plain("id"))
    assert path is not None
    assert not faults
    assert path.read(full_facts()) == "c1"
    assert path.reads == {"state.cart.id"}


@pytest.mark.parametrize(
    ("text", "code", "where"),
    [
        ("state.cart.owner", "C103", "owner"),
        ("state.cart.version", "C104", "state.cart.version"),
        ("size(state.cart.items)", "C104", "size(state.cart.items)"),
        ("state.cart.", "C101", "."),
    ],
)
def test_a_value_path_is_checked_like_a_condition(text: str, code: str, where: str) -> None:
    path, (fault,) = compile_value(text, EVERY, plain("id"))
    assert path is None
    assert (fault.code, text[fault.span.start : fault.span.end]) == (code, where)


def test_a_value_path_under_grants_that_disagree_is_unknown() -> None:
    path, _ = compile_value("grant.host.level", EVERY)
    assert path is not None
    assert str(path.read(full_facts())) == "Unknown.UNKNOWN"


# --- no input breaks it -----------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    [
        *(
            "args.n",
            "args.body",
            "args.tags",
            "task.channel",
            "state.cart.items",
            "principal",
            "now",
            "x",
            "y",
        ),
        *("(", ")", "[", "]", "{", "}", ",", ".", ":", "?", "!", "-", "+", "*", "/", "%", "'", '"', "\\"),
        *(
            "==",
            "!=",
            "<",
            "<=",
            "&&",
            "||",
            "in",
            "true",
            "null",
            "1",
            "-9",
            "9999999999999999999999",
            "é",
            "👍",
        ),
        *("has(", "size(", "origin(", "done(", "args_of(", "links(", "under(", ".all(x,", ".exists(y,"),
        *("'a'", "'web'", "matches", "\n", "decimal('1')", "duration('1h')", "sum('pay',", "count('pay'"),
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(_PIECES, max_size=40).map(" ".join) | st.text(max_size=80))
def test_any_text_ends_in_faults_or_in_a_condition_that_answers(text: str) -> None:
    found, faults = compile_condition(text, EVERY)
    assert (found is None) == any(not fault.warning for fault in faults)
    assert all(fault.help and 0 <= fault.span.start <= fault.span.end <= len(text) for fault in faults)
    if found is not None:
        found.test(full_facts())


@pytest.mark.parametrize("opening", ["(", "[", "!", "-", "{'a':", "has(", "args.tags.all(x, ", "args.tags["])
def test_deep_nesting_is_refused_and_never_overflows(opening: str) -> None:
    text = (opening * 1999)[:1999]
    assert [fault.code for fault in faults_of(text)] == ["C101"]


def test_a_condition_has_a_greatest_length() -> None:
    (fault,) = faults_of("task.freeze || " * 200 + "true")
    assert (fault.code, fault.span.start) == ("C101", 2000)


def test_many_alternatives_are_not_deep() -> None:
    assert faults_of(" || ".join(["task.freeze"] * 100)) == []
