"""Owns the texts of the data folder: documents and saved pages with their headers, cut into paragraphs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

from engine.domain.calls import Failed
from fund_agent.folder import file_name, moment, read_text, stamp

SUFFIXES = (".md", ".txt", ".html", ".htm")

_BLANK_LINES = re.compile(r"\n\s*\n")
_SILENT = frozenset({"script", "style", "template", "noscript"})
_BLOCKS = frozenset(
    {"p", "div", "section", "article", "header", "footer", "br", "ul", "ol", "li"}
    | {"table", "tr", "td", "th", "h1", "h2", "h3", "h4", "h5", "h6"}
)


@dataclass(frozen=True, slots=True)
class Text:
    """One document or page: its id (the file's name without suffix), header, and paragraphs p1, p2, …"""

    id: str
    relative: str
    header: dict[str, str]
    paragraphs: tuple[str, ...]

    @property
    def title(self) -> str:
        return self._field("title")

    @property
    def isin(self) -> str:
        """Blank where the text is about no single fund."""
        return self.header.get("isin", "")

    def link(self, field: str) -> str:
        return self._field(field)

    def time(self, field: str) -> str:
        """A header field as RFC 3339 in UTC."""
        return stamp(moment(self._field(field), f"`{field}` of {self.relative}"))

    def _field(self, field: str) -> str:
        if not self.header.get(field):
            raise Failed(f"{self.relative}:1 has no `{field}` in its header")
        return self.header[field]


def files(folder: Path, shelf: str) -> list[Path]:
    """The text files of one shelf (`public`, `documents/prospectus`, …) by name; the shelf must exist."""
    if not (folder / shelf).is_dir():
        raise Failed(f"the folder `{shelf}` is missing from the data folder")
    found = sorted(path for path in (folder / shelf).iterdir() if path.suffix in SUFFIXES)
    for one, other in pairwise(found):
        if one.stem == other.stem:
            raise Failed(f"`{shelf}` has both {one.name} and {other.name}; one id needs one file")
    return found


def read(folder: Path, shelf: str, text_id: str, what: str) -> Text:
    """The text with this id on the shelf; `what` names it in the error."""
    wanted = file_name(text_id, what)
    for path in files(folder, shelf):
        if path.stem == wanted:
            return open_text(folder, shelf, path)
    raise Failed(f"there is no {what} `{wanted}`")


def open_text(folder: Path, shelf: str, path: Path) -> Text:
    """One file as a Text."""
    relative = f"{shelf}/{path.name}"
    source = read_text(folder, relative)
    if path.suffix in (".html", ".htm"):
        header, body = _html(source)
    else:
        header, body = _headed(source, relative)
    paragraphs = (" ".join(part.split()) for part in _BLANK_LINES.split(body))
    return Text(path.stem, relative, header, tuple(part for part in paragraphs if part))


def _headed(source: str, relative: str) -> tuple[dict[str, str], str]:
    lines = source.splitlines()
    if not lines or lines[0].strip() != "---" or "---" not in (line.strip() for line in lines[1:]):
        raise Failed(f"{relative}:1 has no header; begin with `---`, `title: …` and so on, `---`")
    end = next(number for number, line in enumerate(lines[1:], 1) if line.strip() == "---")
    header = {}
    for number, line in enumerate(lines[1:end], 2):
        key, colon, value = line.partition(":")
        if not colon:
            raise Failed(f"{relative}:{number} is not `key: value`")
        header[key.strip()] = value.strip()
    return header, "\n".join(lines[end + 1 :])


def _html(source: str) -> tuple[dict[str, str], str]:
    page = _Page()
    page.feed(source)
    page.close()
    return page.header, "".join(page.parts)


class _Page(HTMLParser):
    """Collects `<title>`, `<meta name content>` and the visible text with a blank line at block tags."""

    def __init__(self) -> None:
        super().__init__()
        self.header: dict[str, str] = {}
        self.parts: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "meta":
            found = dict(attrs)
            self.header[found.get("name") or ""] = found.get("content") or ""
        if tag in _SILENT or tag == "title":
            self._open.append(tag)
        if tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            del self._open[self._open.index(tag) :]
        if tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "title":
            self.header["title"] = self.header.get("title", "") + " ".join(data.split())
        elif not self._open:
            self.parts.append(" ".join(data.split()) + " " if data.strip() else " ")
