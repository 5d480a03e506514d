"""Owns the seeded generator of `examples/fund_data`: run it again and it writes the same files.

    python examples/fund_universe.py [FOLDER]

Every fund, company, index, web address and ISIN is invented. The conflicts between fact sheets and annual
reports are planted: `SHEET_SAYS` lists them.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from pathlib import Path

from fund_universe_texts import MEMOS, PAGES, annual_report, fact_sheet, prospectus

SEED = 20260630
FIRST_NAV = date(2023, 6, 23)
WEEKS = 158
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Spec:
    """One invented fund. `drift` and `swing` are millionths a week; `beta` is percent of the market."""

    slug: str
    name: str
    number: str
    currency: str
    domicile: str
    launched: int
    benchmark: str
    asset_class: str
    objective: str
    sectors: str
    ongoing: str
    entry: str
    exit: str
    performance: str
    first_nav: str
    drift: int
    swing: int
    beta: int
    units: str = ""

    @property
    def isin(self) -> str:
        return with_check_digit(f"XX{self.number}")


# fmt: off
FUNDS = (
    Spec("alderquay-global-equity", "Alderquay Global Equity Fund", "000041207", "EUR", "Luxembourg", 2012,
         "Quillon World 1500 Index", "global equities",
         "long-term growth from companies of any country, chosen for steady cash earnings",
         "technology 23 %, industrials 18 %, health care 15 %, consumer goods 14 %, finance 13 %, other 17 %",
         "0.62", "3.00", "0.00", "0.00", "118.4200", 1500, 5200, 100, "2350.0000"),
    Spec("brackenholm-european-dividend", "Brackenholm European Dividend Fund", "000058310", "EUR", "Ireland",
         2009, "Quillon Europe Dividend Select Index", "European equities",
         "income and moderate growth from European companies that have raised their dividend for ten years",
         "finance 24 %, utilities 19 %, consumer goods 17 %, industrials 15 %, telecoms 11 %, other 14 %",
         "0.88", "2.00", "0.00", "0.00", "64.1500", 1150, 4600, 85, "2180.0000"),
    Spec("corvanne-euro-corporate-bond", "Corvanne Euro Corporate Bond Fund", "000063928", "EUR",
         "Luxembourg", 2010, "Quillon Euro Corporate Bond Index", "euro corporate bonds",
         "a steady return from euro bonds of companies rated investment grade",
         "banks 31 %, utilities 22 %, transport 14 %, telecoms 13 %, property 8 %, cash 12 %",
         "0.41", "1.00", "0.00", "0.00", "102.7700", 620, 1200, 12, "1420.5000"),
    Spec("dunmarrow-emerging-markets", "Dunmarrow Emerging Markets Fund", "000070455", "EUR", "Ireland", 2017,
         "Quillon Emerging 800 Index", "emerging market equities",
         "long-term growth from companies that earn most of their revenue in emerging countries",
         "technology 27 %, finance 22 %, consumer goods 18 %, materials 12 %, energy 9 %, other 12 %",
         "1.24", "4.00", "0.50", "10.00", "41.3600", 900, 8200, 115, "1650.2500"),
    Spec("estrelune-climate-transition", "Estrelune Climate Transition Fund", "000084161", "EUR",
         "Luxembourg", 2019, "Quillon World Transition Index", "global equities",
         "growth from companies that supply grids, storage, heat pumps and rail",
         "industrials 38 %, utilities 25 %, technology 16 %, materials 13 %, other 8 %",
         "0.95", "3.00", "0.00", "0.00", "73.0800", 700, 7400, 120, "815.0000"),
    Spec("farrowmere-short-duration", "Farrowmere Short Duration Fund", "000092706", "EUR", "Ireland", 2015,
         "Quillon Euro 1-3 Year Index", "short-dated euro bonds",
         "preservation of capital with bonds that mature within three years",
         "states 46 %, covered bonds 28 %, companies 18 %, cash 8 %",
         "0.22", "0.00", "0.00", "0.00", "100.9400", 520, 420, 3, "640.0000"),
    Spec("gallenby-small-companies", "Gallenby Small Companies Fund", "000105538", "EUR", "Luxembourg", 2008,
         "Quillon Europe Small 1000 Index", "European small companies",
         "growth from European companies with a market value below three billion euros",
         "industrials 33 %, technology 21 %, health care 17 %, consumer goods 16 %, other 13 %",
         "1.35", "4.00", "1.00", "15.00", "152.6000", 1000, 7800, 110),
    Spec("hollinfirth-balanced", "Hollinfirth Balanced Fund", "000116042", "EUR", "Ireland", 2004,
         "60 % Quillon World 1500 Index, 40 % Quillon Euro Aggregate Index", "balanced",
         "growth with fewer swings than shares alone, from a fixed mix of shares and bonds",
         "shares 60 %, state bonds 25 %, corporate bonds 12 %, cash 3 %",
         "0.74", "2.50", "0.00", "0.00", "88.2500", 950, 2600, 62),
    Spec("ironvale-infrastructure", "Ironvale Infrastructure Fund", "000127719", "USD", "Luxembourg", 2016,
         "Quillon Listed Infrastructure Index", "infrastructure equities",
         "inflation-linked income from owners of networks, ports and toll roads",
         "networks 41 %, transport 32 %, communication towers 18 %, other 9 %",
         "0.97", "3.00", "0.00", "0.00", "27.9300", 980, 4400, 70),
    Spec("juniperstrand-asia-growth", "Juniperstrand Asia Growth Fund", "000138264", "USD", "Ireland", 2013,
         "Quillon Asia 600 Index", "Asian equities",
         "long-term growth from Asian companies with little debt",
         "technology 34 %, consumer goods 24 %, finance 20 %, health care 12 %, other 10 %",
         "1.10", "4.00", "0.00", "0.00", "35.8100", 1050, 7600, 105),
    Spec("kestrelmoor-inflation-linked", "Kestrelmoor Inflation Linked Fund", "000149385", "EUR",
         "Luxembourg", 2011, "Quillon Euro Inflation Linked Index", "inflation-linked bonds",
         "protection of purchasing power with index-linked bonds of euro states",
         "France 38 %, Italy 27 %, Germany 21 %, Spain 14 %",
         "0.33", "1.00", "0.00", "0.00", "109.6400", 430, 1900, 10),
    Spec("larkendale-money-market", "Larkendale Money Market Fund", "000150871", "EUR", "Ireland", 2018,
         "Quillon Euro Overnight Index", "money market",
         "the overnight rate with daily access",
         "deposits 52 %, commercial paper 34 %, treasury bills 14 %",
         "0.12", "0.00", "0.00", "0.00", "100.2100", 480, 60, 0),
)
# fmt: on

SHEET_SAYS = {
    "alderquay-global-equity": {"ongoing": "0.45"},
    "brackenholm-european-dividend": {"benchmark": "Quillon Europe Large 300 Index"},
    "dunmarrow-emerging-markets": {"launched": "2014"},
}
"""The planted conflicts: what the public fact sheet says where the annual report says otherwise."""

WITH_FACT_SHEET = tuple(spec.slug for spec in FUNDS[:8])


def with_check_digit(base: str) -> str:
    """The ISIN whose first eleven characters are `base`."""
    digits = "".join(str(int(character, 36)) for character in base)
    doubled = [int(digit) * (2 if place % 2 == 0 else 1) for place, digit in enumerate(reversed(digits))]
    return base + str(-sum(number // 10 + number % 10 for number in doubled) % 10)


def weekly_navs(spec: Spec, market: list[int], rng: random.Random) -> list[tuple[date, Decimal]]:
    """Integers drive the walk, so that every machine writes the same digits."""
    nav = Decimal(spec.first_nav)
    rows = [(FIRST_NAV, nav)]
    for week in range(1, WEEKS):
        own = sum(rng.randint(-spec.swing, spec.swing) for _ in range(4))
        move = MILLION + spec.drift + own + market[week] * spec.beta // 100
        nav = (nav * move / MILLION).quantize(Decimal("0.0001"), ROUND_HALF_EVEN)
        rows.append((FIRST_NAV + timedelta(weeks=week), nav))
    return rows


def year_return(rows: list[tuple[date, Decimal]], year: int) -> str:
    """The calendar year in percent, from the last NAV of the year before, with its sign."""
    before = [nav for day, nav in rows if day.year < year][-1]
    end = [nav for day, nav in rows if day.year <= year][-1]
    change = ((end - before) * 100 / before).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{change:+}"


def universe() -> dict[str, str]:
    """Every file of the universe: its path inside the folder, and its text."""
    rng = random.Random(SEED)
    market = [sum(rng.randint(-7000, 7000) for _ in range(4)) for _ in range(WEEKS)]
    files = {"funds.csv": _funds_csv(), "fees.csv": _fees_csv(), "holdings/p1.csv": _holdings_csv()}
    for spec in FUNDS:
        rows = weekly_navs(spec, market, rng)
        lines = [f"{day},{nav},{spec.currency}" for day, nav in rows]
        files[f"nav/{spec.isin}.csv"] = "\n".join(["date,nav,currency", *lines, ""])
        facts = _facts(spec) | {"last_year": year_return(rows, 2025), "year_before": year_return(rows, 2024)}
        files[f"documents/prospectus/{spec.slug}-prospectus.md"] = prospectus(facts)
        files[f"documents/annual_report/{spec.slug}-annual-report-2025.md"] = annual_report(facts)
        if spec.slug in WITH_FACT_SHEET:
            files[f"public/{spec.slug}-fact-sheet.md"] = fact_sheet(facts | SHEET_SAYS.get(spec.slug, {}))
    named = {spec.slug.replace("-", "_"): spec.isin for spec in FUNDS}
    files |= {f"documents/internal_memo/{name}": _filled(text, named) for name, text in MEMOS.items()}
    return files | {f"public/{name}": _filled(text, named) for name, text in PAGES.items()}


def write(folder: Path) -> int:
    """Writes the universe below `folder` and returns the number of files."""
    files = universe()
    for relative, text in files.items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return len(files)


def _facts(spec: Spec) -> dict[str, str]:
    names = (
        "slug",
        "name",
        "isin",
        "currency",
        "domicile",
        "benchmark",
        "asset_class",
        "objective",
        "sectors",
    )
    charges = ("ongoing", "entry", "exit", "performance")
    return {name: str(getattr(spec, name)) for name in (*names, *charges, "launched")}


def _funds_csv() -> str:
    rows = [f"{s.isin},{s.name},{s.currency},{s.domicile},{s.asset_class},{s.launched}" for s in FUNDS]
    return "\n".join(["isin,name,currency,domicile,asset_class,launched", *rows, ""])


def _fees_csv() -> str:
    rows = [f"{s.isin},{s.ongoing},{s.entry},{s.exit},{s.performance}" for s in FUNDS]
    header = "isin,ongoing_charge_pct,entry_charge_pct,exit_charge_pct,performance_fee_pct"
    return "\n".join([header, *rows, ""])


def _holdings_csv() -> str:
    rows = [f"{s.isin},{s.name},{s.units}" for s in FUNDS if s.units]
    return "\n".join(["isin,name,units", *rows, ""])


def _filled(text: str, isins: dict[str, str]) -> str:
    for name, isin in isins.items():
        text = text.replace(f"@{name}@", isin)
    return text


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "fund_data"
    print(f"{write(target)} files in {target}")
