"""Owns the behaviour of the fund research tools, on the shipped universe and on folders of one's own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fund_universe
import pytest
from fund_agent import tools
from fund_agent.folder import SHIPPED_DATA

from engine.domain.calls import Failed, NotExecuted

AS_OF = "2026-06-30T00:00:00Z"
ALDERQUAY = "XX0000412074"
IRONVALE = fund_universe.FUNDS[8].isin


@dataclass(frozen=True)
class Context:
    idempotency_key: str = "k-1"
    run: str = "r-1"
    call: str = "3.1"
    now: datetime = datetime(2026, 6, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped universe that a test may break."""
    folder = tmp_path / "data"
    shutil.copytree(SHIPPED_DATA, folder)
    monkeypatch.setenv("AGENTCTL_FUND_DATA", str(folder))
    return folder


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own: two funds with figures that can be checked by hand."""
    folder = tmp_path / "own"
    (folder / "holdings").mkdir(parents=True)
    (folder / "nav").mkdir()
    (folder / "holdings" / "mine.csv").write_text(
        "isin,name,units\nXX0000000001,First,3\nXX0000000002,Second,0.5\n"
    )
    (folder / "nav" / "XX0000000001.csv").write_text(
        "date,nav,currency\n2025-12-31,8.00,CHF\n2026-03-01,12,CHF\n2026-03-29,9.60,CHF\n2026-03-31,10.00,CHF\n"
    )
    (folder / "nav" / "XX0000000002.csv").write_text(
        "date,nav,currency\n2026-03-31,66.67,CHF\n2025-12-31,66.67,CHF\n"
    )
    (folder / "fees.csv").write_text(
        "isin,ongoing_charge_pct,entry_charge_pct,exit_charge_pct,performance_fee_pct\n"
        "XX0000000001,0.50,0,1,0\nXX0000000002,1.00,0,0,10\n"
    )
    monkeypatch.setenv("AGENTCTL_FUND_DATA", str(folder))
    return folder


@pytest.fixture
def drafts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENTCTL_FUND_DRAFTS", str(tmp_path / "drafts"))
    return tmp_path / "drafts"


def edit(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def has_float(value: Any) -> bool:
    if isinstance(value, dict):
        return any(has_float(part) for part in value.values())
    if isinstance(value, list):
        return any(has_float(part) for part in value)
    return isinstance(value, float)


# The shipped universe


def test_the_shipped_universe_is_what_its_generator_writes() -> None:
    for relative, text in fund_universe.universe().items():
        assert (SHIPPED_DATA / relative).read_text(encoding="utf-8") == text, relative


def test_the_shipped_universe_is_small_and_its_isins_are_fictional() -> None:
    assert sum(path.stat().st_size for path in SHIPPED_DATA.rglob("*") if path.is_file()) < 400_000
    assert len(fund_universe.FUNDS) == len({spec.isin for spec in fund_universe.FUNDS}) == 12
    assert all(spec.isin.startswith("XX") for spec in fund_universe.FUNDS)


def test_the_planted_conflict_can_be_read_in_both_documents() -> None:
    sheet = tools.read_public("alderquay-global-equity-fact-sheet")
    report = tools.read_document("annual_report", "alderquay-global-equity-annual-report-2025")
    assert {"id": "p4", "text": "Ongoing charge: 0.45 % a year."} in sheet["spans"]
    assert any("0.62 % of average net assets" in span["text"] for span in report["spans"])


# Figures


def test_total_is_the_sum_of_the_positions_and_weights_add_up_to_100() -> None:
    result = tools.read_holdings("p1", AS_OF)
    values = [Decimal(position["market_value"]) for position in result["positions"]]
    weights = [Decimal(position["weight_pct"]) for position in result["positions"]]
    assert len(values) == 6
    assert Decimal(result["total_value"]) == sum(values)
    assert abs(sum(weights) - 100) <= Decimal("0.03")
    assert values == sorted(values, reverse=True)


def test_each_value_is_units_times_nav_to_the_cent() -> None:
    for position in tools.read_holdings("p1", AS_OF)["positions"]:
        exact = Decimal(position["units"]) * Decimal(position["nav"])
        assert abs(Decimal(position["market_value"]) - exact) <= Decimal("0.005")


def test_results_are_json_without_floats() -> None:
    results = [
        tools.read_holdings("p1", AS_OF),
        tools.read_performance("p1", AS_OF, "3y"),
        tools.read_costs("p1", AS_OF),
        tools.read_fund(IRONVALE, AS_OF, "1y"),
        tools.search_public("charge", AS_OF),
    ]
    assert json.loads(json.dumps(results)) == results
    assert not has_float(results)


def test_own_folder_is_valued_by_hand(small: Path) -> None:
    result = tools.read_holdings("mine", "2026-04-01T00:00:00Z")
    assert (result["currency"], result["total_value"]) == ("CHF", "63.34")
    assert [(p["isin"], p["market_value"], p["weight_pct"]) for p in result["positions"]] == [
        ("XX0000000002", "33.34", "52.64"),
        ("XX0000000001", "30.00", "47.36"),
    ]


def test_returns_come_from_the_nav_history(small: Path) -> None:
    result = tools.read_performance("mine", "2026-03-31T00:00:00Z", "ytd")
    first = next(row for row in result["positions"] if row["isin"] == "XX0000000001")
    assert (first["return_pct"], first["value_change"]) == ("25.00", "6.00")
    assert first["max_drawdown_pct"] == "20.00"
    assert (result["start_value"], result["end_value"]) == ("57.34", "63.34")
    assert result["return_pct"] == "10.46"


def test_costs_come_from_the_fee_schedule(small: Path) -> None:
    result = tools.read_costs("mine", "2026-03-31T00:00:00Z")
    rows = {row["isin"]: (row["annual_cost"], row["exit_cost"]) for row in result["positions"]}
    assert rows == {"XX0000000001": ("0.15", "0.30"), "XX0000000002": ("0.33", "0.00")}
    assert (result["annual_cost"], result["ongoing_charge_pct"]) == ("0.48", "0.76")


def test_a_month_before_the_31st_is_the_last_day_of_the_shorter_month(small: Path) -> None:
    assert tools.read_performance("mine", "2026-03-31T00:00:00Z", "3m")["start"] == "2025-12-31"
    with pytest.raises(Failed, match=r"2026-02-28"):
        tools.read_performance("mine", "2026-03-31T00:00:00Z", "1m")


def test_snapshot_id_changes_with_the_units_and_not_without(data: Path) -> None:
    before = tools.read_holdings("p1", AS_OF)["snapshot_id"]
    assert tools.read_holdings("p1", AS_OF)["snapshot_id"] == before
    edit(data / "holdings" / "p1.csv", lambda text: text.replace("2350.0000", "2351.0000"))
    assert tools.read_holdings("p1", AS_OF)["snapshot_id"] != before


def test_the_day_of_a_time_with_an_offset_is_that_of_utc() -> None:
    assert tools.read_holdings("p1", "2026-06-26T01:00:00+02:00")["positions"][0]["nav_date"] == "2026-06-19"


def test_empty_portfolio_value_gives_no_division_by_zero(small: Path) -> None:
    (small / "holdings" / "mine.csv").write_text("isin,name,units\nXX0000000001,First,0\n")
    result = tools.read_holdings("mine", "2026-03-31T00:00:00Z")
    assert (result["total_value"], result["positions"][0]["weight_pct"]) == ("0.00", "0.00")


# Bad data


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("holdings/p1.csv", "isin,name\nXX0000412074,A\n", r"holdings/p1\.csv:1 has no column `units`"),
        ("holdings/p1.csv", "isin,name,units\n", r"holdings/p1\.csv has no positions"),
        ("holdings/p1.csv", "", r"holdings/p1\.csv:1 has no column"),
        ("holdings/p1.csv", "isin,name,units\nXX0000412074,A\n", r"holdings/p1\.csv:2 has 2 cells"),
        ("holdings/p1.csv", "isin,name,units\n\nXX0000412074,A,1e5\n", r"`1e5` at holdings/p1\.csv:3"),
        ("holdings/p1.csv", "isin,name,units\nXX0000412074,A,NaN\n", r"`NaN` at holdings/p1\.csv:2"),
        ("holdings/p1.csv", "isin,name,units\nXX0000412074,A,-1\n", r"cannot be below 0"),
        ("holdings/p1.csv", "isin,name,units\nXX0000412074,A,\n", r"`units` is blank at holdings/p1\.csv:2"),
        (
            "holdings/p1.csv",
            "isin,name,units\nsome fund,A,1\n",
            r"`some fund` at holdings/p1\.csv:2; an ISIN",
        ),
        (
            "holdings/p1.csv",
            "isin,name,units\nXX0000412074,A,1\nXX0000412074,A,1\n",
            r"stands twice at holdings/p1\.csv:3",
        ),
        ("holdings/p1.csv", 'isin,name,units\nXX0000412074,"A,1\n', r"holdings/p1\.csv:2 is not CSV"),
        (f"nav/{ALDERQUAY}.csv", "date,nav,currency\n", r"has no NAVs"),
        (f"nav/{ALDERQUAY}.csv", "date,nav,currency\n30.06.2026,1,EUR\n", r"`30\.06\.2026` at nav/.*:2"),
        (f"nav/{ALDERQUAY}.csv", "date,nav,currency\n2026-06-26,0,EUR\n", r"`nav` is `0` at nav/.*:2"),
        (
            f"nav/{ALDERQUAY}.csv",
            "date,nav,currency\n2026-06-26,1,EUR\n2026-06-26,2,EUR\n",
            r"2026-06-26 stands twice at nav/.*:3",
        ),
        (
            f"nav/{ALDERQUAY}.csv",
            "date,nav,currency\n2026-06-25,1,EUR\n2026-06-26,2,USD\n",
            r"changes from EUR to USD at nav/.*:3",
        ),
        (
            f"nav/{ALDERQUAY}.csv",
            "date,nav,currency\n2026-05-01,1,EUR\n",
            r"60 days old; 10 days are allowed",
        ),
        (
            f"nav/{ALDERQUAY}.csv",
            "date,nav,currency\n2026-07-01,1,EUR\n",
            r"has no NAV on or before 2026-06-30",
        ),
        (f"nav/{ALDERQUAY}.csv", "date,nav,currency\n2026-06-26,1,USD\n", r"one currency is supported"),
    ],
)
def test_malformed_rows_are_named_with_file_and_line(data: Path, file: str, text: str, expected: str) -> None:
    (data / file).write_text(text)
    with pytest.raises(Failed, match=expected):
        tools.read_holdings("p1", AS_OF)


def test_missing_files_are_named(data: Path) -> None:
    (data / "nav" / f"{ALDERQUAY}.csv").unlink()
    with pytest.raises(Failed, match=rf"`nav/{ALDERQUAY}\.csv` is missing from the data folder"):
        tools.read_holdings("p1", AS_OF)
    with pytest.raises(Failed, match=r"`holdings/p9\.csv` is missing"):
        tools.read_holdings("p9", AS_OF)
    shutil.rmtree(data / "public")
    with pytest.raises(Failed, match=r"the folder `public` is missing"):
        tools.search_public("charge", AS_OF)


def test_missing_data_folder_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTCTL_FUND_DATA", "/nowhere/at/all")
    with pytest.raises(Failed, match="AGENTCTL_FUND_DATA"):
        tools.read_holdings("p1", AS_OF)


def test_file_in_another_encoding_is_named(data: Path) -> None:
    (data / "fees.csv").write_bytes("isin,über\n".encode("latin-1"))
    with pytest.raises(Failed, match=r"`fees\.csv` is not UTF-8"):
        tools.read_costs("p1", AS_OF)


def test_byte_order_mark_and_windows_line_ends_are_read(data: Path) -> None:
    path = data / "holdings" / "p1.csv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert len(tools.read_holdings("p1", AS_OF)["positions"]) == 6


def test_unknown_isin_is_an_error_that_names_it() -> None:
    with pytest.raises(Failed, match=r"funds\.csv has no fund `XX0000000001`"):
        tools.read_fund("XX0000000001", AS_OF, "1y")


def test_fund_without_fee_schedule_is_named(data: Path) -> None:
    edit(data / "fees.csv", lambda text: text.replace(f"{ALDERQUAY},0.62,3.00,0.00,0.00\n", ""))
    with pytest.raises(Failed, match=rf"fees\.csv has no row for `{ALDERQUAY}`"):
        tools.read_costs("p1", AS_OF)


@pytest.mark.parametrize("portfolio", ["../holdings/p1", "/etc/passwd", "", ".hidden", "a/b", "a\x00b"])
def test_ids_cannot_leave_the_data_folder(portfolio: str) -> None:
    with pytest.raises(Failed, match="is not the id of a portfolio"):
        tools.read_holdings(portfolio, AS_OF)


def test_time_that_is_none_is_refused() -> None:
    with pytest.raises(Failed, match="`as_of` is `last week`"):
        tools.read_holdings("p1", "last week")


# Documents and pages


@pytest.mark.parametrize(
    "query",
    ['charge"', "charge*", "title:charge AND (", "NEAR(charge b", "-charge ^ fund", "charge'); DROP TABLE x"],
)
def test_search_takes_query_syntax_as_plain_words(query: str) -> None:
    assert tools.search_public(query, AS_OF)["matches"] > 0


@pytest.mark.parametrize("query", ["", "   ", '"', "?!", "___"])
def test_empty_query_is_refused(query: str) -> None:
    with pytest.raises(Failed, match="no words to search for"):
        tools.search_document("prospectus", query)


def test_search_finds_inflected_words_and_ranks_the_named_fund_first() -> None:
    hits = tools.search_document("annual_report", "charges of the Alderquay fund")["hits"]
    assert hits[0]["isin"] == ALDERQUAY
    assert hits[0]["published_at"] == "2026-03-31T00:00:00Z"
    assert len(hits) <= 8


def test_search_by_isin_finds_the_pages_of_that_fund() -> None:
    hits = tools.search_public(ALDERQUAY, AS_OF)["hits"]
    assert {hit["isin"] for hit in hits} == {ALDERQUAY}


def test_search_without_a_match_is_an_empty_list() -> None:
    assert tools.search_public("xylophone", AS_OF) == {"matches": 0, "hits": []}


def test_recency_counts_back_from_the_as_of_day() -> None:
    everything = tools.search_public("Harbourview ongoing charge", AS_OF)
    recent = tools.search_public("Harbourview ongoing charge", AS_OF, recency_days=13)
    assert [hit["url_id"] for hit in recent["hits"]] == ["harbourview-markets-june-2026"]
    assert everything["matches"] > 1


def test_paragraph_of_a_hit_is_a_span_of_the_text() -> None:
    hit = tools.search_document("annual_report", "Alderquay average net assets")["hits"][0]
    spans = tools.read_document("annual_report", hit["doc_id"])["spans"]
    assert hit["paragraph"] in {span["id"] for span in spans}


def test_search_sees_a_file_that_was_added_later(data: Path) -> None:
    assert tools.search_public("xylophone", AS_OF)["matches"] == 0
    (data / "public" / "new.txt").write_text(
        "---\ntitle: New\nurl: https://new.example\nfetched_at: 2026-06-20\n---\n\nA xylophone.\n"
    )
    hit = tools.search_public("xylophones", AS_OF)["hits"][0]
    assert (hit["url_id"], hit["fetched_at"]) == ("new", "2026-06-20T00:00:00Z")


def test_html_page_may_leave_out_its_end_tags(data: Path) -> None:
    (data / "public" / "loose.html").write_text(
        "<title>Loose</title><meta name=url content=https://l.example><meta name=fetched_at content=2026-06-20>"
        "<body><p>One<p>Two <b>bold</b> words<br>Three"
    )
    page = tools.read_public("loose")
    assert [span["text"] for span in page["spans"]] == ["One", "Two bold words", "Three"]


def test_html_page_is_read_without_tags_and_scripts() -> None:
    page = tools.read_public("fundforum-brackenholm")
    assert page["title"].startswith("Fund Forum")
    assert [span["id"] for span in page["spans"]] == ["p1", "p2", "p3", "p4"]
    assert "dividend index & says" in page["spans"][2]["text"]
    assert not any("counter" in span["text"] for span in page["spans"])


def test_long_document_is_read_in_parts(data: Path) -> None:
    body = "\n\n".join(f"Paragraph {number}. " + "word " * 400 for number in range(1, 61))
    text = f"---\ntitle: Long\npublished_at: 2026-01-02\n---\n\n{body}\n"
    (data / "documents" / "prospectus" / "long.md").write_text(text)
    ids, start = [], 1
    while start:
        part = tools.read_document("prospectus", "long", start)
        ids += [span["id"] for span in part["spans"]]
        start = part["next_paragraph"]
    assert ids == [f"p{number}" for number in range(1, 61)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Just text.\n", r"documents/prospectus/bad\.md:1 has no header"),
        ("---\ntitle: T\nno colon\n---\nx\n", r"documents/prospectus/bad\.md:3 is not `key: value`"),
        ("---\ntitle: T\n---\nx\n", r"documents/prospectus/bad\.md:1 has no `published_at`"),
        ("---\npublished_at: 2026-01-01\n---\nx\n", r"documents/prospectus/bad\.md:1 has no `title`"),
        (
            "---\ntitle: T\npublished_at: soon\n---\nx\n",
            r"`published_at` of documents/prospectus/bad\.md is `soon`",
        ),
    ],
)
def test_document_without_a_usable_header_is_named(data: Path, text: str, expected: str) -> None:
    (data / "documents" / "prospectus" / "bad.md").write_text(text)
    with pytest.raises(Failed, match=expected):
        tools.read_document("prospectus", "bad")


def test_unknown_document_and_two_files_of_one_id_are_refused(data: Path) -> None:
    with pytest.raises(Failed, match="there is no document `nothing`"):
        tools.read_document("prospectus", "nothing")
    (data / "public" / "oft-ongoing-charges.txt").write_text("---\ntitle: T\n---\n")
    with pytest.raises(Failed, match="one id needs one file"):
        tools.search_public("charge", AS_OF)


# Drafts


def test_draft_is_saved_found_and_deleted_by_its_key(drafts: Path) -> None:
    assert tools.find_draft("k-1") == {"found": False}
    saved = tools.save_draft("Costs", "To be written.", Context())
    assert tools.find_draft("k-1") == {"found": True}
    text = (drafts / f"{saved['draft_id']}.md").read_text(encoding="utf-8")
    assert text.startswith("---\ntitle: Costs\nrun: r-1\ncall: 3.1\nsaved_at: 2026-06-30T12:00:00Z\n---\n")
    assert tools.delete_draft("k-1") == {"deleted": True}
    assert tools.delete_draft("k-1") == {"deleted": False}
    assert list(drafts.iterdir()) == []


def test_same_key_saves_once_and_another_key_a_second_draft(drafts: Path) -> None:
    first = tools.save_draft("A", "one", Context())
    assert tools.save_draft("A", "two", Context()) == first
    assert "one" in (drafts / f"{first['draft_id']}.md").read_text(encoding="utf-8")
    assert tools.save_draft("A", "two", Context("k-2")) != first


def test_draft_that_cannot_be_written_was_not_executed(drafts: Path) -> None:
    drafts.write_text("a file where the folder should be")
    with pytest.raises(NotExecuted, match="cannot be saved"):
        tools.save_draft("A", "one", Context())
    assert tools.find_draft("k-1") == {"found": False}


def test_title_cannot_add_lines_to_the_header_of_a_draft(drafts: Path) -> None:
    saved = tools.save_draft("A\nrun: other", "b", Context())
    lines = (drafts / f"{saved['draft_id']}.md").read_text(encoding="utf-8").splitlines()
    assert lines[1:3] == ["title: A run: other", "run: r-1"]
