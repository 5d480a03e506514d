"""Owns the figures: valuation, weights, returns and costs, in exact decimals, rounded once at the end."""

from __future__ import annotations

import hashlib
from calendar import monthrange
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path

from engine.domain.calls import Failed
from fund_agent.records import Fees, Holding, NavHistory, Quote, holdings, nav_history

_CENT = Decimal("0.01")
_ZERO = Decimal("0.00")
_PERCENT = Decimal(100)
_DIGITS = 60
"""Enough that no product or sum of two numbers from the files is rounded on the way."""

_MONTHS = {"1m": 1, "3m": 3, "6m": 6, "1y": 12, "3y": 36}


@dataclass(frozen=True, slots=True)
class Position:
    holding: Holding
    history: NavHistory
    quote: Quote
    market_value: Decimal


@dataclass(frozen=True, slots=True)
class Valuation:
    """A portfolio at the last NAVs on or before one day, the largest position first."""

    portfolio_id: str
    day: date
    currency: str
    positions: tuple[Position, ...]

    @property
    def total(self) -> Decimal:
        return sum((position.market_value for position in self.positions), _ZERO)

    def weight(self, position: Position) -> Decimal:
        return percent_of(position.market_value, self.total)

    def digest(self) -> str:
        """Changes with any unit or NAV that the valuation rests on."""
        lines = [f"{p.holding.isin} {p.holding.units} {p.quote.day} {p.quote.nav}" for p in self.positions]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Return:
    """One fund over a period: its first and last NAV, and the deepest fall from a high between them."""

    first: Quote
    last: Quote
    return_pct: Decimal
    max_drawdown_pct: Decimal


def value_portfolio(folder: Path, portfolio_id: str, day: date) -> Valuation:
    """Every position at its last NAV on or before `day`. All must be priced in one currency."""
    positions = [_position(folder, holding, day) for holding in holdings(folder, portfolio_id)]
    currency = positions[0].history.currency
    for position in positions:
        if position.history.currency != currency:
            raise Failed(
                f"portfolio `{portfolio_id}` holds `{positions[0].holding.isin}` in {currency} and "
                f"`{position.holding.isin}` in {position.history.currency}; one currency is supported"
            )
    ordered = sorted(positions, key=lambda p: (-p.market_value, p.holding.isin))
    return Valuation(portfolio_id, day, currency, tuple(ordered))


def period_start(period: str, end: date) -> date:
    """The day on which `period` (1m, 3m, 6m, ytd, 1y, 3y) that ends on `end` begins."""
    if period == "ytd":
        return date(end.year - 1, 12, 31)
    if period not in _MONTHS:
        raise Failed(f"`{period}` is not a period; choose one of {', '.join(_MONTHS)}, ytd")
    year, month = divmod(end.year * 12 + end.month - 1 - _MONTHS[period], 12)
    return date(year, month + 1, min(end.day, monthrange(year, month + 1)[1]))


def returns(history: NavHistory, start: date, end: date) -> Return:
    """From the last NAV on or before `start` to the last on or before `end`; distributions are not added."""
    first, last = history.at(start), history.at(end)
    fall, high = _ZERO, first.nav
    for quote in history.between(first.day, last.day):
        high = max(high, quote.nav)
        fall = max(fall, percent_of(high - quote.nav, high))
    return Return(first, last, percent_of(last.nav - first.nav, first.nav), fall)


def units_at(units: Decimal, nav: Decimal) -> Decimal:
    """The value of `units` in money, to the cent."""
    with localcontext(prec=_DIGITS):
        return (units * nav).quantize(_CENT, ROUND_HALF_UP)


def percent_of(part: Decimal, whole: Decimal) -> Decimal:
    """`part` in percent of `whole`, to two places, never `-0.00`; of nothing it is 0."""
    if not whole:
        return _ZERO
    with localcontext(prec=_DIGITS):
        return (part * _PERCENT / whole).quantize(_CENT, ROUND_HALF_UP) + _ZERO


def share(amount: Decimal, percentage: Decimal) -> Decimal:
    """`percentage` percent of `amount`, to the cent."""
    with localcontext(prec=_DIGITS):
        return (amount * percentage / _PERCENT).quantize(_CENT, ROUND_HALF_UP)


def annual_cost(position: Position, schedule: Fees) -> Decimal:
    """The ongoing charge of one year on the position at its present value."""
    return share(position.market_value, schedule.ongoing)


def _position(folder: Path, holding: Holding, day: date) -> Position:
    history = nav_history(folder, holding.isin)
    quote = history.at(day)
    return Position(holding, history, quote, units_at(holding.units, quote.nav))
