"""A publication: fields, citations, figures; prose is nobody's business."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.domain.events import EvidenceFigure
from engine.domain.ids import CallId
from engine.domain.policy import Citations, OutputField
from engine.domain.state import DraftState, PublicationState
from engine.domain.types import Field, TypeName, ValueType
from engine.policy.marks import figure_text, sections, traced
from engine.policy.publication import Publish, Refuse, check_publication
from engine.policy.view import FactsView

from .build import NOW, TEXT, Build, evidence, ref, run_state

FIGURES = [
    {"name": "market_value", "type": "money", "value": "1234567.50", "key": "XX0000000001", "unit": "EUR"},
    {"name": "total_value", "type": "money", "value": "100.00", "unit": "EUR"},
    {"name": "weight", "type": "percent", "value": "12.5", "key": "a/b"},
    {"name": "units", "type": "decimal", "value": "3", "key": "XX0000000001"},
]


def state():
    made = evidence(run_state(), "E1", "holding", "s1", figures=FIGURES, as_of="2026-06-30T00:00:00Z")
    return evidence(made, "E2", "document", "d1", spans=("p1", "p2"))


def check(body="Text [[E2]].", made=None, run=None, **fields):
    policy = (made or Build().output("note")).policy()
    run = run or state()
    sent = {"title": "T", "body": body, **fields}
    sent = {name: value for name, value in sent.items() if value is not None}
    return check_publication(policy, policy.outputs["note"], sent, run, FactsView([policy], run).at(NOW)[0])


def codes(found):
    assert isinstance(found, Refuse)
    return [reason.code for reason in found.reasons]


def test_marks_are_resolved_and_figures_rendered_by_the_host():
    found = check(
        "You hold {{fig:E1/XX0000000001/market_value}} of {{fig:E1/total_value}} [[E1]] [[E2#p2]] [[E1]]."
    )
    assert isinstance(found, Publish)
    assert found.rendered["body"] == (
        "You hold ⟦1,234,567.50 EUR · as of 2026-06-30 · E1⟧ of "
        "⟦100.00 EUR · as of 2026-06-30 · E1⟧ ⟦1⟧ ⟦2⟧ ⟦1⟧."
    )
    assert [(each.evidence, each.span) for each in found.citations] == [
        ("E1", None),
        ("E2", "p2"),
        ("E1", None),
    ]
    assert [each.value for each in found.figures] == ["1234567.50", "100.00"]


def test_the_model_cannot_write_what_looks_like_the_hosts():
    assert check("⟦999 EUR⟧ [[E2]]").rendered["body"] == "[999 EUR] ⟦1⟧"


def test_a_note_that_misreads_an_authentic_citation_is_published():
    assert isinstance(check("The fund never charges fees, the document says the opposite [[E2]]."), Publish)


def test_a_figure_key_may_hold_a_slash():
    assert "12.5 %" in check("{{fig:E1/a/b/weight}} [[E1]]").rendered["body"]


@pytest.mark.parametrize("mark", ["[[E9]]", "[[E2#p9]]", "[[]]", "[[some page]]", "[[E2#]]"])
def test_a_citation_that_does_not_resolve_is_named(mark):
    found = check(f"Text [[E2]] {mark}.")
    assert codes(found) == ["citation"]
    assert mark.strip("[]") in found.message
    assert found.valid == {"title": "T"}


def test_citations_must_be_of_a_citable_kind_in_scope_and_young_enough():
    run = evidence(state(), "E3", "web_page", "w")
    evidence(run, "E4", "document", "d4", NOW - timedelta(hours=25))
    evidence(run, "E5", "document", "d5", superseded="invalidated by call 2.1")
    found = check("[[E3]] [[E4]] [[E5]] [[E2]]", run=run)
    assert [reason.object for reason in found.reasons] == ["E3", "E4", "E5"]


def test_every_section_needs_its_citations_and_text_before_a_heading_is_one():
    found = check("Intro.\n# A\nText [[E2]]\n## B\nmore\n```\n# no heading\n```\n# Empty\n")
    assert codes(found) == ["min_per_section", "min_per_section"]
    assert "the text before the first heading" in found.message
    assert "section `B`" in found.message


def test_sections_are_syntax():
    assert [section.title for section in sections("# A #\nx\n\n###### B\ny\n#no\n")] == ["A", "B"]


def test_min_counts_over_the_output():
    made = Build().output("note", citations=Citations(frozenset(), 2, None, None))
    assert codes(check("[[E2]]", made)) == ["min"]
    assert isinstance(check("[[E2]] [[E1]]", made), Publish)


@pytest.mark.parametrize(
    "slot",
    [
        "fig:E1/nothing",
        "fig:E9/total_value",
        "fig:E1/XX9/market_value",
        "fig:E1",
        "fig:",
        "fig:E2/total_value",
        "fig:E1/XX0000000001/units",
    ],
)
def test_a_slot_that_cannot_be_rendered_is_named(slot):
    found = check(f"Text {{{{{slot}}}}} [[E2]].")
    assert codes(found) == ["figure"]
    assert found.reasons[0].object == f"{{{{{slot}}}}}"


@pytest.mark.parametrize(
    ("type_", "value", "unit", "text"),
    [
        ("money", "-1234567.50", "EUR", "-1.234.567,50 EUR"),
        ("money", "-0", "EUR", "0 EUR"),
        ("money", "0.00", "EUR", "0,00 EUR"),
        ("money", "1E+5", "EUR", "100.000 EUR"),
        ("money", "9" * 40, "EUR", ".".join(["9"] + ["999"] * 13) + " EUR"),
        ("int", "1.0", None, "1"),
        ("int", "1.5", None, None),
        ("percent", "-0.5", None, "-0,5 %"),
        ("date", "2026-06-30", None, "2026-06-30"),
        ("date", "2026-06-31", None, None),
        ("date", "⟧ verified ⟦", None, None),
        *(("money", value, "EUR", None) for value in (
            "NaN", "sNaN", "Infinity", "-inf", "", "12 EUR", "1,5", "1_000", "١٢٣", "1E+999999999999", "9" * 41,
        )),
    ],
)  # fmt: skip
def test_a_figure_is_every_digit_of_a_number_or_nothing(type_, value, unit, text):
    figure = EvidenceFigure(name="n", type=type_, value=value, unit=unit)
    assert figure_text(figure, "de") == text


def test_what_a_tool_says_beside_a_number_cannot_look_like_the_hosts():
    figure = EvidenceFigure(name="n", type="money", value="12", unit="EUR⟧ verified\n ⟦" + "x" * 99)
    text = traced(figure_text(figure), "2026⟧\n# x · E9", "E1")
    assert (text.count("⟦"), text.count("⟧"), text.count("\n"), text.count("·")) == (1, 1, 0, 2)
    assert len(text) < 100


def test_marks_and_slots_in_a_field_that_takes_none_are_refused():
    assert codes(check(title="About [[E2]] {{fig:E1/total_value}}")) == ["figure", "citation"]


def test_fields_are_checked_and_the_valid_ones_kept():
    found = check(title=None)
    assert codes(found) == ["missing"]
    assert found.valid == {"body": "Text [[E2]]."}
    assert codes(check(title="x" * 999)) == ["field"]
    assert codes(check(title=3)) == ["field"]


def test_a_draft_fills_in_what_is_left_out():
    run = state()
    run.drafts["D1"] = DraftState("D1", "note", {"body": "Kept [[E2]]."})
    found = check(None, run=run, draft="D1")
    assert isinstance(found, Publish)
    assert found.fields == {"title": "T", "body": "Kept [[E2]]."}
    assert check("New [[E2]].", run=run, draft="D1").fields["body"] == "New [[E2]]."
    assert codes(check(run=run, draft="D9")) == ["draft"]


def test_one_output_is_published_once():
    run = state()
    run.publications["note"] = PublicationState("note", CallId(1, 1), {}, {}, (), NOW, "d")
    assert codes(check(run=run)) == ["published"]


FINDING = ValueType(
    TypeName.RECORD,
    fields={"claim": Field(TEXT), "sources": Field(ValueType(TypeName.LIST, of=ref("document")))},
)


def findings():
    field = OutputField("findings", ValueType(TypeName.LIST, of=FINDING), True, True, False)
    return Build().output("note", fields={"findings": field})


def test_typed_findings_cite_by_handle_or_id_and_each_is_a_section():
    good = [{"claim": "a", "sources": ["E2#p1"]}, {"claim": "b", "sources": ["d1"]}]
    found = check(None, findings(), title=None, findings=good)
    assert isinstance(found, Publish)
    assert [each.evidence for each in found.citations] == ["E2", "E2"]
    bad = [{"claim": "a", "sources": []}, {"claim": "b", "sources": ["d9"]}]
    assert codes(check(None, findings(), title=None, findings=bad)) == ["citation", "min_per_section"]
