"""Publications: citations that resolve, figures from evidence, and evidence that goes out of scope later."""

from __future__ import annotations

from typing import Any

import pytest

from engine.domain.errors import PolicyInvalid
from engine.policy.compiler import compile_policy
from engine.report.documents import document
from tests.facts.world import POLICY, TOOLS, Desk, DeskRun
from tests.runtime.bench import CLERK, final, say

PRICE = ("get_price", {"sku": "tea-assam"})
BODY = "# Tea\n\nIt costs {{fig:E1/price}} [[E1]].\n\n- <b>one</b>\n- two"
PUBLISH = ("publish_note", {"body": BODY})
SET = ("set_price", {"sku": "tea-assam", "price": 999})


def played(*turns: Any, **options: Any) -> DeskRun:
    bench = DeskRun(*turns, final(), **options)
    bench.drive()
    return bench


def flags(bench: DeskRun) -> list[str]:
    return bench.state.publications["note"].flags


def rendered(bench: DeskRun, form: Any, template: str | None = None) -> str:
    (body,) = [event.body for event in bench.of_kind("OutputPublished")]
    return document(body, bench.state, form, template)


# --- handles --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marks", "said"),
    [
        ("[[E9]]", "citation `E9` in `body` names no evidence of this Run"),
        ("[[e1]]", "citation `e1` in `body` names no evidence of this Run"),
        ("[[E 1]]", "citation `E 1` in `body` names no evidence of this Run"),
        ("[[https://archive.example.test/x]]", "names no evidence of this Run"),
        ("[[E1#p9]]", "names no span of E1"),
    ],
)
def test_one_citation_that_does_not_resolve_refuses_the_whole_and_is_named(marks, said):
    """Nothing is dropped or altered silently (miurla/morphic#1007, SiderealPress/Lobster#2102)."""
    bench = played(say(PRICE), say(("publish_note", {"body": f"Good [[E1]], bad {marks}."})))
    assert bench.outcomes(2) == ["rejected"]
    assert said in bench.call(2, 1).refusal.message
    assert bench.state.publications == {}


def test_a_handle_cited_twice_is_one_source():
    bench = played(say(PRICE), say(("publish_note", {"body": "One [[E1]], two [[ E1 ]]."})))
    assert bench.state.publications["note"].rendered["body"] == "One ⟦1⟧, two ⟦1⟧."


def test_a_link_in_free_text_is_not_judged():
    body = "See https://archive.example.test/x and [[E1]]."
    bench = played(say(PRICE), say(("publish_note", {"body": body})))
    assert "https://archive.example.test/x" in bench.state.publications["note"].rendered["body"]


def test_marks_in_chat_text_are_no_publication():
    """CherryHQ/cherry-studio#18787: a text with internal marks is a text."""
    policy = POLICY.replace("gates: {finish: []}", "gates: {finish: [{output_committed: note}]}")
    bench = DeskRun(say(PRICE), say(("finish", {}), text="It costs 1290 [cite:E1] [[E1]]."), policy=policy)
    bench.drive()
    assert bench.outcomes(2) == ["rejected"]
    assert bench.call(2, 1).refusal.gates == ("output_committed note",)
    assert bench.runtime().outputs(bench.run) == {}


def test_a_refused_publication_keeps_what_was_valid():
    bench = played(
        say(PRICE),
        say(("publish_note", {"title": "Tea", "body": "no source"})),
        say(("publish_note", {"draft": "D1", "body": "It is so [[E1]]."})),
    )
    assert bench.outcomes(2) == ["rejected"]
    assert bench.state.drafts["D1"].fields == {"title": "Tea", "body": "no source"} or bench.state.drafts[
        "D1"
    ].fields == {"title": "Tea"}
    assert bench.state.publications["note"].rendered["title"] == "Tea"


@pytest.mark.parametrize("points", [3, 5, 7, 9, 11])
def test_a_process_that_dies_around_a_publication_leaves_exactly_one(points):
    from tests.runtime.bench import Crash, CrashAt

    bench = DeskRun(say(PRICE), say(PUBLISH), final())
    try:
        bench.drive(CrashAt(points))
    except Crash:
        bench.drive()
    assert bench.kinds.count("OutputPublished") == 1
    assert bench.status == "completed"


# --- scope ----------------------------------------------------------------------------------------------------


def test_a_write_after_the_publication_flags_it():
    bench = played(say(PRICE), say(PUBLISH), say(SET))
    assert flags(bench) == ["E1: made out of date by call 3.1"]


def test_another_answer_to_the_same_read_flags_it_and_the_same_answer_does_not():
    def dearer(request: Any) -> Any:
        bench.shop.prices["tea-assam"] = 1500  # type: ignore[attr-defined]
        bench.clock.advance(minutes=2)
        return say(PRICE)

    def again(request: Any) -> Any:
        bench.clock.advance(minutes=2)
        return say(PRICE)

    bench = DeskRun(say(PRICE), say(PUBLISH), again, final())
    bench.drive()
    assert bench.shop.reads == ["get_price tea-assam"] * 2
    assert flags(bench) == []
    bench = DeskRun(say(PRICE), say(PUBLISH), dearer, final())
    bench.drive()
    assert flags(bench) == ["E1: read again as call 3.1, with another answer"]


def test_a_source_that_is_lost_flags_it():
    def lost(request: Any) -> Any:
        bench.source("prices", "unauthorized")
        return final()

    bench = DeskRun(say(PRICE), say(PUBLISH), lost, final())
    bench.drive()
    assert flags(bench) == ["E1: source prices is unauthorized"]


def test_a_flag_stands_below_the_document():
    bench = played(say(PRICE), say(PUBLISH), say(SET))
    assert "- E1: made out of date by call 3.1" in rendered(bench, "markdown")
    assert "made out of date" in rendered(bench, "html")


# --- documents ------------------------------------------------------------------------------------------------


def test_markdown_has_the_fields_and_the_sources_by_number():
    text = rendered(played(say(PRICE), say(PUBLISH)), "markdown")
    assert "It costs ⟦1,290 · as of 2026-06-30T12:00:00.000000Z · E1⟧ ⟦1⟧." in text
    assert "## Sources\n\n1. price tea-assam, as of 2026-06-30T12:00:00.000000Z (get_price 1.1)" in text


def test_html_escapes_what_a_model_wrote_and_links_the_sources():
    text = rendered(played(say(PRICE), say(PUBLISH)), "html")
    assert "<h1>Tea</h1>" in text
    assert "<b>one</b>" not in text
    assert "<li>&lt;b&gt;one&lt;/b&gt;</li>" in text
    assert '<a href="#source-1">[1]</a>' in text
    assert '<li id="source-1">price tea-assam' in text
    assert '<span class="figure" title="as of' in text


@pytest.mark.parametrize("attack", ["<script>x</script>", '" onload="x', "⟦<img>⟧", "{{ 7*7 }}", "{% raw %}"])
def test_nothing_of_a_model_becomes_markup_or_template(attack):
    bench = played(say(PRICE), say(("publish_note", {"title": attack, "body": f"{attack} [[E1]]"})))
    html = rendered(bench, "html")
    assert "<script>" not in html
    assert "<img>" not in html
    assert "49" not in rendered(bench, "markdown").replace(attack, "")


def test_what_a_tool_calls_its_evidence_stays_on_its_line_among_the_sources():
    desk = Desk()
    desk.special["get_price"] = lambda sku: {"sku": "tea\n\n## Approved by the house ⟦9⟧", "price": 1290}
    bench = played(say(PRICE), say(("publish_note", {"body": "It is so [[E1]]."})), shop=desk)
    for form in ("markdown", "html"):
        (line,) = [line for line in rendered(bench, form).splitlines() if "Approved" in line]
        assert "price tea ## Approved by the house [9], as of" in line


@pytest.mark.parametrize(
    "template",
    ["{{ '%(a)s' | format(b=1) }}", "{{ {} | described }}", "{{ fields.body[99] }}", "{{ 1 / 0 }}"],
)
def test_whatever_a_template_does_wrong_is_said_in_words(template):
    bench = played(say(PRICE), say(PUBLISH))
    with pytest.raises(PolicyInvalid, match="the markdown template of `note` does not render"):
        rendered(bench, "markdown", template)


def templated(markdown: str = "", html: str = "", locale: str = "en") -> DeskRun:
    forms = ", ".join(f"{name}: {file}" for name, file in (("markdown", "n.md.j2"), ("html", "n.html.j2")))
    policy = POLICY.replace('    about: "The note"\n', f'    about: "The note"\n    template: {{{forms}}}\n')
    policy = policy.replace("render: host}", f"render: host, locale: {locale}}}")
    files = {"shop.policy.yaml": policy, "shop.tools.yaml": TOOLS, "n.md.j2": markdown, "n.html.j2": html}
    made = compile_policy("shop.policy.yaml", files)
    assert made.policy is not None, made.diagnostics
    bench = DeskRun(say(PRICE), say(PUBLISH), final())
    bench.policy = made.policy
    bench.run = bench.runtime().start("please", principal=CLERK)
    bench.drive()
    return bench


def test_the_policys_own_template_is_kept_with_the_run():
    bench = templated(
        "{{ fields.body | length }} signs, {{ sources | length }} source", "<p>{{ fields.body }}</p>"
    )
    output = bench.runtime().library.policy(bench.state.bundle).outputs["note"]
    assert rendered(bench, "markdown", output.templates["markdown"]).endswith(" signs, 1 source")
    assert "&lt;b&gt;" in rendered(bench, "html", output.templates["html"])
    assert bench.policy.bundle["n.md.j2"].startswith("{{ fields.body")


@pytest.mark.parametrize(
    ("locale", "number"), [("en", "1,290"), ("de", "1.290"), ("de-CH", "1’290"), ("fr", "1\u202f290")]
)
def test_figures_are_written_as_the_locale_writes_numbers(locale, number):
    assert f"⟦{number} · " in templated("-", "-", locale).state.publications["note"].rendered["body"]


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ fields.body", "cannot be read"),
        ("{{ state.cart }}", "no `state.cart`"),
        ("{% if %}", "cannot be read"),
    ],
)
def test_a_template_that_cannot_work_is_a_finding(template, said):
    policy = POLICY.replace(
        '    about: "The note"\n', '    about: "The note"\n    template: {markdown: n.md.j2}\n'
    )
    files = {"shop.policy.yaml": policy, "shop.tools.yaml": TOOLS, "n.md.j2": template}
    found = compile_policy("shop.policy.yaml", files)
    assert found.policy is None
    assert any(said in each.message for each in found.diagnostics)


def test_a_template_reaches_nothing_outside_the_publication():
    from engine.domain.errors import PolicyInvalid

    bench = played(say(PRICE), say(PUBLISH))
    for attack in ("{{ ''.__class__.__mro__ }}", "{{ fields.__init__.__globals__ }}"):
        try:
            assert "class" not in rendered(bench, "markdown", attack)
        except PolicyInvalid:
            continue
