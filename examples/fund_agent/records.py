"""Owns what the CSV files say: holdings, NAV histories, fee schedules, the list of funds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

from engine.domain.calls import Failed
from fund_agent.folder import file_name, read_rows

MAX_NAV_AGE_DAYS = 10
"""A weekly history has a NAV at most 7 days old; beyond this the history has a hole or has ended."""

_SMALLEST_NAV = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class Holding:
    isin: str
    name: str
    units: Decimal


@dataclass(frozen=True, slots=True)
class Quote:
    day: date
    nav: Decimal


@dataclass(frozen=True, slots=True)
class NavHistory:
    """The NAVs of one fund, oldest first, in one currency."""

    isin: str
    currency: str
    quotes: tuple[Quote, ...]

    def at(self, day: date) -> Quote:
        """The last NAV on or before `day`; none, or one too old to stand for that day, is a fault."""
        earlier = [quote for quote in self.quotes if quote.day <= day]
        if not earlier:
            raise Failed(f"nav/{self.isin}.csv has no NAV on or before {day}; it starts {self.quotes[0].day}")
        age = (day - earlier[-1].day).days
        if age > MAX_NAV_AGE_DAYS:
            raise Failed(
                f"the last NAV of `{self.isin}` on or before {day} is of {earlier[-1].day}, {age} days old; "
                f"{MAX_NAV_AGE_DAYS} days are allowed"
            )
        return earlier[-1]

    def between(self, first: date, last: date) -> tuple[Quote, ...]:
        """The NAVs from `first` to `last`, both included."""
        return tuple(quote for quote in self.quotes if first <= quote.day <= last)


@dataclass(frozen=True, slots=True)
class Fees:
    """The charges of one fund in percent: ongoing a year, entry and exit once, performance of the excess."""

    ongoing: Decimal
    entry: Decimal
    exit: Decimal
    performance: Decimal


@dataclass(frozen=True, slots=True)
class Fund:
    isin: str
    name: str
    currency: str
    domicile: str


def holdings(folder: Path, portfolio_id: str) -> list[Holding]:
    """The positions in `holdings/<portfolio_id>.csv`, at least one, each ISIN once."""
    relative = f"holdings/{file_name(portfolio_id, 'portfolio')}.csv"
    found: dict[str, Holding] = {}
    for row in read_rows(folder, relative, ("isin", "name", "units")):
        isin = row.isin()
        if isin in found:
            raise Failed(f"`{isin}` stands twice at {row.place}; add the units up in one row")
        found[isin] = Holding(isin, row.text("name"), row.number("units"))
    if not found:
        raise Failed(f"{relative} has no positions")
    return list(found.values())


def nav_history(folder: Path, isin: str) -> NavHistory:
    """The history in `nav/<isin>.csv`; rows may stand in any order, each day once, in one currency."""
    relative = f"nav/{file_name(isin, 'fund')}.csv"
    quotes: dict[date, Quote] = {}
    currency = ""
    for row in read_rows(folder, relative, ("date", "nav", "currency")):
        day = row.day("date")
        if day in quotes:
            raise Failed(f"{day} stands twice at {row.place}")
        if currency and row.text("currency") != currency:
            raise Failed(f"`currency` changes from {currency} to {row.text('currency')} at {row.place}")
        currency = row.text("currency")
        quotes[day] = Quote(day, row.number("nav", at_least=_SMALLEST_NAV))
    if not quotes:
        raise Failed(f"{relative} has no NAVs")
    return NavHistory(isin, currency, tuple(quotes[day] for day in sorted(quotes)))


def fees(folder: Path, isin: str) -> Fees:
    """The row of `isin` in `fees.csv`."""
    columns = ("ongoing_charge_pct", "entry_charge_pct", "exit_charge_pct", "performance_fee_pct")
    rows = [row for row in read_rows(folder, "fees.csv", ("isin", *columns)) if row.isin() == isin]
    if not rows:
        raise Failed(f"fees.csv has no row for `{isin}`")
    if len(rows) > 1:
        raise Failed(f"`{isin}` stands twice at {rows[1].place}")
    return Fees(*(rows[0].number(column) for column in columns))


def fund(folder: Path, isin: str) -> Fund:
    """The row of `isin` in `funds.csv`."""
    for row in read_rows(folder, "funds.csv", ("isin", "name", "currency", "domicile")):
        if row.isin() == isin:
            return Fund(isin, row.text("name"), row.text("currency"), row.text("domicile"))
    raise Failed(f"funds.csv has no fund `{isin}`")
