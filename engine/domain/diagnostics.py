"""Owns findings about files: where, what, how bad, how to mend."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Confidence(StrEnum):
    CERTAIN = "certain"
    LIKELY = "likely"


class Location(NamedTuple):
    """A stretch of one line in a file; lines and columns count from 1, columns in Unicode code points."""

    file: str
    line: int
    column: int
    end_column: int | None = None
    """One past the last column of the stretch; None when only the start is known."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `message` is one lowercase sentence with user text in backticks; `help` is never empty."""

    code: str
    name: str
    severity: Severity
    message: str
    location: Location
    help: str
    confidence: Confidence = Confidence.CERTAIN

    def sort_key(self) -> tuple[str, int, int, str, str]:
        """By place, then by what is said, so that the order is the same in every process."""
        return (self.location.file, self.location.line, self.location.column, self.code, self.message)


def many(count: int, noun: str, plural: str = "") -> str:
    """`1 rule`, `2 rules`, `1,200 rules`: the one place where things are counted in words."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The known word closest to `word`, or None: the one place where suggestions are made."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def suggest(word: str, known: Iterable[str], otherwise: str) -> str:
    """A help line: "did you mean `x`?" where something is near, else `otherwise`."""
    near = did_you_mean(word, known)
    return f"did you mean `{near}`?" if near else otherwise
