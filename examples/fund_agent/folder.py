"""Owns where the data folder of the fund example is and how its CSV files are read, row by row."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

from engine.domain.calls import Failed

DATA_VARIABLE = "AGENTCTL_FUND_DATA"
SHIPPED_DATA = Path(__file__).resolve().parent.parent / "fund_data"

_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,10})?")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ISIN = re.compile(r"[A-Z]{2}[A-Z0-9]{9}[0-9]")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a CSV file; `place` is `file:line`, as it stands in every error about the row."""

    place: str
    cells: dict[str, str]

    def text(self, column: str) -> str:
        """The cell; a blank one is a fault."""
        value = self.cells.get(column, "")
        if not value:
            raise Failed(f"`{column}` is blank at {self.place}")
        return value

    def number(self, column: str, at_least: Decimal = Decimal(0)) -> Decimal:
        """The cell as an exact decimal with a point, without thousands separators, exponent or NaN."""
        value = self.text(column)
        if not _NUMBER.fullmatch(value):
            raise Failed(f"`{column}` is `{value}` at {self.place}; write a plain number such as `1234.50`")
        if Decimal(value) < at_least:
            raise Failed(f"`{column}` is `{value}` at {self.place}; it cannot be below {at_least}")
        return Decimal(value)

    def day(self, column: str) -> date:
        """The cell as a calendar day, written `2026-06-30`."""
        value = self.text(column)
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise Failed(f"`{column}` is `{value}` at {self.place}; write a day as `2026-06-30`") from None

    def isin(self, column: str = "isin") -> str:
        """The cell as an ISIN: two letters, nine letters or digits, a digit."""
        value = self.text(column)
        if not _ISIN.fullmatch(value):
            raise Failed(
                f"`{column}` is `{value}` at {self.place}; an ISIN has 12 characters, as XX0000000001"
            )
        return value


def data_folder() -> Path:
    """The folder that `AGENTCTL_FUND_DATA` names, else the synthetic universe that ships with the example."""
    named = os.environ.get(DATA_VARIABLE, "").strip()
    folder = Path(named).expanduser() if named else SHIPPED_DATA
    if not folder.is_dir():
        raise Failed(f"the data folder `{folder}` does not exist; correct {DATA_VARIABLE}")
    return folder


def file_name(value: str, what: str) -> str:
    """`value` where it can be one file name inside the data folder; anything else (a path) is refused."""
    if not _FILE_NAME.fullmatch(value):
        raise Failed(f"`{value}` is not the id of a {what}")
    return value


def read_rows(folder: Path, relative: str, columns: tuple[str, ...]) -> list[Row]:
    """Every row of `folder/relative`, which must have `columns`; others are kept, blank lines skipped."""
    reader = csv.reader(read_text(folder, relative).splitlines(), strict=True)
    try:
        header = [cell.strip() for cell in next(reader, [])]
        missing = [column for column in columns if column not in header]
        if missing:
            raise Failed(f"{relative}:1 has no column {_names(missing)}; it needs {_names(columns)}")
        return list(_rows(reader, relative, header))
    except csv.Error as error:
        raise Failed(f"{relative}:{reader.line_num} is not CSV: {error}") from None


def read_text(folder: Path, relative: str) -> str:
    """The text of `folder/relative`, UTF-8 with or without a byte order mark."""
    try:
        return (folder / relative).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise Failed(f"`{relative}` is missing from the data folder") from None
    except UnicodeDecodeError as error:
        raise Failed(f"`{relative}` is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise Failed(f"`{relative}` cannot be read: {error.strerror}") from None


def moment(value: str, what: str) -> datetime:
    """An RFC 3339 time or a day (its first moment), in UTC; `what` names it in the error."""
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        raise Failed(f"{what} is `{value}`; write `2026-06-30` or `2026-06-30T00:00:00Z`") from None
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def stamp(value: date) -> str:
    """RFC 3339 in UTC: a time as it is, a day as its first moment."""
    at = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _rows(reader: Iterator[list[str]], relative: str, header: list[str]) -> Iterator[Row]:
    for cells in reader:
        place = f"{relative}:{reader.line_num}"  # type: ignore[attr-defined]  # csv readers count lines
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise Failed(f"{place} has {len(cells)} cells, the header has {len(header)}")
        yield Row(place, {name: cell.strip() for name, cell in zip(header, cells, strict=True)})


def _names(columns: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{column}`" for column in columns)
