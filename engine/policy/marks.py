"""Owns the syntax of citations and figure slots in an output's fields, and what the Host writes in their place.

What the Host wrote stands between ⟦ and ⟧; the same signs written by the model are shown as [ and ].
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple

from engine.domain.events import EvidenceFigure

MARK: Final = re.compile(r"\[\[([^\[\]\n]*)\]\]")
HANDLE: Final = re.compile(r"\s*(E\d{1,9})(?:#([^\s#\[\]]+))?\s*")
SLOT: Final = re.compile(r"\{\{\s*fig:([^{}\n]*)\}\}")
_TOKEN: Final = re.compile(f"{MARK.pattern}|{SLOT.pattern}")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_HOST_SIGNS: Final = str.maketrans("⟦⟧", "[]")


class Mark(NamedTuple):
    """`[[E3#p2]]`: `handle` is None if it is not a handle."""

    text: str
    handle: str | None
    span: str | None


class Slot(NamedTuple):
    """`{{fig:E1/KEY/name}}`; the parts are None if it does not read so."""

    text: str
    handle: str | None
    key: str | None
    name: str | None


def read_mark(text: str) -> Mark:
    match = HANDLE.fullmatch(text)
    return Mark(text.strip(), None, None) if match is None else Mark(text.strip(), match[1], match[2])


def read_slot(text: str) -> Slot:
    """A key may hold slashes: the handle is before the first, the name after the last."""
    shown = text.strip()
    handle, _, rest = shown.partition("/")
    key, _, name = rest.rpartition("/")
    if not re.fullmatch(r"E\d{1,9}", handle) or not name:
        return Slot(shown, None, None, None)
    return Slot(shown, handle, key or None, name)


def marks_in(text: str) -> list[Mark]:
    return [read_mark(match[1]) for match in MARK.finditer(text)]


def slots_in(text: str) -> list[Slot]:
    return [read_slot(match[1]) for match in SLOT.finditer(text)]


class Section(NamedTuple):
    """A stretch of Markdown under one heading, or before the first; `line` counts from 1."""

    title: str
    line: int
    text: str


def sections(text: str) -> list[Section]:
    """The sections that have text of their own; a heading inside a fenced block is no heading."""
    found: list[Section] = []
    title, start, body, fence = "", 1, list[str](), ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = _FENCE.match(line)
        if mark is not None and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark[1]
        if not fence and _HEADING.match(line):
            found.append(Section(title, start, "\n".join(body)))
            title, start, body = line.strip(" \t#"), number, []
        else:
            body.append(line)
    found.append(Section(title, start, "\n".join(body)))
    return [section for section in found if section.text.strip()]


def render(text: str, cite: Callable[[Mark], str], figure: Callable[[Slot], str]) -> str:
    """The text with every mark and slot replaced by what the Host writes."""
    parts: list[str] = []
    last = 0
    for match in _TOKEN.finditer(text):
        parts.append(text[last : match.start()].translate(_HOST_SIGNS))
        parts.append(cite(read_mark(match[1])) if match[1] is not None else figure(read_slot(match[2])))
        last = match.end()
    parts.append(text[last:].translate(_HOST_SIGNS))
    return "".join(parts)


def plain(text: str) -> str:
    """Text in which nothing is the Host's."""
    return text.translate(_HOST_SIGNS)


# --- figures -----------------------------------------------------------------------------------------------


_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,2})?")
"""What a source writes as a number; an exponent of three digits would fill the page."""
_LONGEST: Final = 40
"""Characters of a unit or a date."""
_NARROW: Final = "\u202f"
SEPARATORS: Final = {
    "en": (",", "."),
    "de": (".", ","),
    "de-CH": ("’", "."),
    "es": (".", ","),
    "fr": (_NARROW, ","),
    "it": (".", ","),
    "sv": (_NARROW, ","),
}
"""Locale -> what stands between thousands, and before decimals."""


def figure_text(figure: EvidenceFigure, locale: str = "en") -> str | None:
    """The number as people read it, every digit kept: `1,234.50 EUR`, `12.5 %`; a date as it is. None for what is
    neither."""
    if figure.type == "date":
        return figure.value if _is_date(figure.value) else None
    if _NUMBER.fullmatch(figure.value) is None:
        return None
    number = Decimal(figure.value)
    if figure.type == "int":
        if number != number.to_integral_value():
            return None
        number = number.to_integral_value()
    unit = "%" if figure.type == "percent" else _word(figure.unit or "")
    between, before = SEPARATORS[locale]
    text = f"{number if number else abs(number):,f}".translate({ord(","): between, ord("."): before})
    return f"{text} {unit}" if unit else text


def traced(text: str, as_of: str | None, handle: str) -> str:
    """A rendered figure with its as-of (a day, where it is a midnight) and its source."""
    dated = f"as of {_word(as_of.removesuffix('T00:00:00Z'))}" if as_of else ""
    return "⟦" + " · ".join(part for part in (text, dated, handle) if part) + "⟧"


def _is_date(text: str) -> bool:
    try:
        return len(text) <= _LONGEST and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def _word(text: str) -> str:
    """What a tool says beside a number, such as its unit: short, on one line, and without the Host's signs."""
    line = plain(" ".join(text.split())).replace("·", "-")
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def numbered(number: int) -> str:
    return f"⟦{number}⟧"


def leaves(value: object) -> Iterator[str]:
    """Every string in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
