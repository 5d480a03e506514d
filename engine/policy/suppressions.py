"""Owns the comments that silence a finding: `# agentctl: ignore[W213] because="…" until=2026-12-31`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

from engine.domain.diagnostics import Diagnostic, Location, suggest
from engine.policy.codes import CODES, NOT_SUPPRESSIBLE, finding
from engine.policy.source import Document

_COMMENT: Final = re.compile(r"#[ \t]*agentctl:[ \t]*ignore\b(?P<codes>[ \t]*\[[^\]\n]*\])?(?P<rest>[^\n]*)")
_BECAUSE: Final = re.compile(r"\bbecause=\"(?P<text>[^\"\n]*)\"")
_UNTIL: Final = re.compile(r"\buntil=(?P<day>\S+)")
_FORM: Final = 'write # agentctl: ignore[CODE] because="…" until=2026-12-31'


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment. It silences findings of its codes in one line."""

    codes: frozenset[str]
    because: str
    until: date
    location: Location
    line: int
    """The line whose findings it silences: its own, or the next one with content if it stands alone."""

    def covers(self, diagnostic: Diagnostic) -> bool:
        where = diagnostic.location
        return where.file == self.location.file and where.line == self.line and diagnostic.code in self.codes


def read_suppressions(document: Document, today: date) -> tuple[list[Suppression], list[Diagnostic]]:
    """The comments of a file that hold, and a finding (L002) for each that does not."""
    found: list[Suppression] = []
    faults: list[Diagnostic] = []
    for match in _comments(document):
        location = document.source.location(match.start(), match.end())
        problems = list(_problems(match, today))
        if problems:
            faults.extend(finding("L002", location, message, help_) for message, help_ in problems)
        else:
            found.append(_suppression(document, match, location))
    return found, faults


def silence(
    diagnostics: Iterable[Diagnostic], suppressions: list[Suppression]
) -> tuple[list[Diagnostic], list[Diagnostic], list[Diagnostic]]:
    """What is left, what was silenced, and a finding (L001) for each comment that silenced nothing."""
    kept: list[Diagnostic] = []
    silenced: list[Diagnostic] = []
    used: set[Suppression] = set()
    for diagnostic in diagnostics:
        covering = [item for item in suppressions if item.covers(diagnostic)]
        used.update(covering)
        (silenced if covering else kept).append(diagnostic)
    unused = [
        finding(
            "L001",
            item.location,
            f"nothing in line {item.line} raises {', '.join(sorted(item.codes))}",
            "delete the comment",
        )
        for item in suppressions
        if item not in used
    ]
    return kept, silenced, unused


def _comments(document: Document) -> Iterator[re.Match[str]]:
    """Matches outside of quoted and block scalars, where a `#` is only a character."""
    for match in _COMMENT.finditer(document.source.text):
        if not any(start <= match.start() < end for start, end in document.scalars):
            yield match


def _codes(match: re.Match[str]) -> list[str]:
    words = (match["codes"] or "").strip(" \t[]").split(",")
    return [word.strip() for word in words if word.strip()]


def _problems(match: re.Match[str], today: date) -> Iterator[tuple[str, str]]:
    by_name = {code.name: key for key, code in CODES.items()}
    codes = _codes(match)
    if not codes:
        yield "the comment names no finding", _FORM
    for word in codes:
        code = by_name.get(word, word)
        if code not in CODES:
            yield f"`{word}` is no finding", suggest(word, [*CODES, *by_name], "name a code such as W213")
        elif code in NOT_SUPPRESSIBLE:
            yield (
                f"{code} cannot be ignored in the file",
                "mend it; only agentctl.yaml may lower it, with an owner and an end date",
            )
    because = _BECAUSE.search(match["rest"])
    if because is None or not because["text"].strip():
        yield "the comment gives no reason", _FORM
    until = _until(match)
    if until is None:
        yield "the comment has no end date", _FORM
    elif until < today:
        yield f"the comment has lapsed on {until}", "mend the finding, or give a new date"


def _until(match: re.Match[str]) -> date | None:
    found = _UNTIL.search(match["rest"])
    try:
        return date.fromisoformat(found["day"]) if found else None
    except ValueError:
        return None


def _suppression(document: Document, match: re.Match[str], location: Location) -> Suppression:
    by_name = {code.name: key for key, code in CODES.items()}
    because, until = _BECAUSE.search(match["rest"]), _until(match)
    assert because is not None
    assert until is not None
    codes = frozenset(by_name.get(word, word) for word in _codes(match))
    return Suppression(codes, because["text"], until, location, _line(document, match, location.line))


def _line(document: Document, match: re.Match[str], line: int) -> int:
    text = document.source.text
    before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
    if before.strip():
        return line
    for below, content in enumerate(text.split("\n")[line:], start=line + 1):
        if content.strip() and not content.lstrip().startswith("#"):
            return below
    return line
