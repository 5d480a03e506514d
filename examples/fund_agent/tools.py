"""Owns the tools of the fund research agent, one function per tool of `tool_specs/fund.tools.yaml`."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from fund_agent import drafts, fulltext, library
from fund_agent.drafts import CallContext
from fund_agent.figures import (
    Position,
    Return,
    annual_cost,
    percent_of,
    period_start,
    returns,
    share,
    units_at,
    value_portfolio,
)
from fund_agent.folder import data_folder, moment, stamp
from fund_agent.library import Text
from fund_agent.records import fees, fund, nav_history

Result = dict[str, Any]
"""JSON-safe: dict, list, str, int, bool. Money, percentages and units are decimal strings."""

PAGE_CHARACTERS = 40_000


def search_public(query: str, as_of: str, recency_days: int | None = None) -> Result:
    """Searches the saved public pages; `recency_days` counts back from `as_of` to when a page was fetched."""
    hits = fulltext.search(data_folder(), "public", query)
    if recency_days is not None:
        oldest = moment(as_of, "`as_of`") - timedelta(days=recency_days)
        hits = [hit for hit in hits if moment(hit.text.time("fetched_at"), "`fetched_at`") >= oldest]
    return {"matches": len(hits), "hits": [_page_hit(hit) for hit in hits[: fulltext.MAX_HITS]]}


def read_public(page: str, from_paragraph: int = 1) -> Result:
    """One saved public page."""
    text = library.read(data_folder(), "public", page, "page")
    head = {"url_id": text.id, "url": text.link("url"), "fetched_at": text.time("fetched_at")}
    return head | {"title": text.title, "isin": text.isin} | _spans(text, from_paragraph)


def search_document(collection: str, query: str) -> Result:
    """Searches one document collection."""
    hits = fulltext.search(data_folder(), f"documents/{collection}", query)
    return {"matches": len(hits), "hits": [_document_hit(hit) for hit in hits[: fulltext.MAX_HITS]]}


def read_document(collection: str, document: str, from_paragraph: int = 1) -> Result:
    """One document of a collection."""
    text = library.read(data_folder(), f"documents/{collection}", document, "document")
    head = {"doc_id": text.id, "collection": collection, "published_at": text.time("published_at")}
    return head | {"title": text.title, "isin": text.isin} | _spans(text, from_paragraph)


def read_holdings(portfolio_id: str, as_of: str) -> Result:
    """The portfolio at the last NAVs on or before `as_of`, the largest position first."""
    valuation = value_portfolio(data_folder(), portfolio_id, _day(as_of))
    positions = [
        _named(position)
        | {
            "units": str(position.holding.units),
            "nav": str(position.quote.nav),
            "nav_date": position.quote.day.isoformat(),
            "market_value": str(position.market_value),
            "weight_pct": str(valuation.weight(position)),
        }
        for position in valuation.positions
    ]
    return {
        "snapshot_id": f"{portfolio_id}:{valuation.day}:{valuation.digest()}",
        "as_of": stamp(moment(as_of, "`as_of`")),
        "currency": valuation.currency,
        "total_value": str(valuation.total),
        "positions": positions,
    }


def read_performance(portfolio_id: str, as_of: str, period: str) -> Result:
    """Return of each fund held and of today's units together, over `period` up to `as_of`."""
    valuation = value_portfolio(data_folder(), portfolio_id, _day(as_of))
    start = period_start(period, valuation.day)
    rows, start_value = [], Decimal("0.00")
    for position in valuation.positions:
        result = returns(position.history, start, valuation.day)
        value_before = units_at(position.holding.units, result.first.nav)
        start_value += value_before
        change = position.market_value - value_before
        rows.append(_named(position) | _return(result) | {"value_change": str(change)})
    return {
        "performance_id": f"{portfolio_id}:{period}:{valuation.day}:{valuation.digest()}",
        "as_of": stamp(moment(as_of, "`as_of`")),
        "period": period,
        "start": start.isoformat(),
        "currency": valuation.currency,
        "start_value": str(start_value),
        "end_value": str(valuation.total),
        "value_change": str(valuation.total - start_value),
        "return_pct": str(percent_of(valuation.total - start_value, start_value)),
        "positions": rows,
    }


def read_costs(portfolio_id: str, as_of: str) -> Result:
    """What the fee schedule takes from each position: ongoing a year, and on exit. No performance fees."""
    folder = data_folder()
    valuation = value_portfolio(folder, portfolio_id, _day(as_of))
    rows, yearly = [], Decimal("0.00")
    for position in valuation.positions:
        schedule = fees(folder, position.holding.isin)
        cost = annual_cost(position, schedule)
        yearly += cost
        charges = {
            "market_value": str(position.market_value),
            "ongoing_charge_pct": str(schedule.ongoing),
            "annual_cost": str(cost),
            "exit_cost": str(share(position.market_value, schedule.exit)),
            "performance_fee_pct": str(schedule.performance),
        }
        rows.append(_named(position) | charges)
    return {
        "costs_id": f"{portfolio_id}:{valuation.day}:{valuation.digest()}",
        "as_of": stamp(moment(as_of, "`as_of`")),
        "currency": valuation.currency,
        "annual_cost": str(yearly),
        "ongoing_charge_pct": str(percent_of(yearly, valuation.total)),
        "positions": rows,
    }


def read_fund(isin: str, as_of: str, period: str) -> Result:
    """One fund, held or not: NAV, return over `period` up to `as_of`, fee schedule."""
    folder, day = data_folder(), _day(as_of)
    known, schedule = fund(folder, isin), fees(folder, isin)
    history = nav_history(folder, isin)
    result = returns(history, period_start(period, day), day)
    return {
        "profile_id": f"{isin}:{period}:{day}",
        "as_of": stamp(moment(as_of, "`as_of`")),
        "isin": isin,
        "name": known.name,
        "domicile": known.domicile,
        "currency": history.currency,
        "nav": str(result.last.nav),
        "period": period,
        **_return(result),
        "ongoing_charge_pct": str(schedule.ongoing),
        "entry_charge_pct": str(schedule.entry),
        "exit_charge_pct": str(schedule.exit),
        "performance_fee_pct": str(schedule.performance),
    }


def save_draft(title: str, body: str, context: CallContext) -> Result:
    """Saves a draft of the note as a file; saving again under the same idempotency key changes nothing."""
    return {"draft_id": drafts.save(title, body, context)}


def find_draft(key: str) -> Result:
    """Whether the call with this idempotency key has saved a draft."""
    return {"found": drafts.exists(key)}


def delete_draft(key: str) -> Result:
    """Deletes the draft that the call with this idempotency key has saved."""
    return {"deleted": drafts.delete(key)}


def _day(as_of: str) -> date:
    return moment(as_of, "`as_of`").date()


def _named(position: Position) -> Result:
    return {"isin": position.holding.isin, "name": position.holding.name}


def _return(result: Return) -> Result:
    return {
        "start_date": result.first.day.isoformat(),
        "end_date": result.last.day.isoformat(),
        "return_pct": str(result.return_pct),
        "max_drawdown_pct": str(result.max_drawdown_pct),
    }


def _page_hit(hit: fulltext.Hit) -> Result:
    head = {"url_id": hit.text.id, "url": hit.text.link("url"), "fetched_at": hit.text.time("fetched_at")}
    return head | _extract(hit)


def _document_hit(hit: fulltext.Hit) -> Result:
    return {"doc_id": hit.text.id, "published_at": hit.text.time("published_at")} | _extract(hit)


def _extract(hit: fulltext.Hit) -> Result:
    return {"title": hit.text.title, "isin": hit.text.isin, "paragraph": hit.span, "extract": hit.extract}


def _spans(text: Text, first: int) -> Result:
    """Paragraphs from number `first` on, as many as fit; `next_paragraph` is 0 where the text ends."""
    spans: list[Result] = []
    left = PAGE_CHARACTERS
    for number, paragraph in enumerate(text.paragraphs[first - 1 :], first):
        if spans and len(paragraph) > left:
            return {"spans": spans, "next_paragraph": number}
        left -= len(paragraph)
        spans.append({"id": f"p{number}", "text": paragraph})
    return {"spans": spans, "next_paragraph": 0}
