"""Owns full-text search over the texts of one shelf, with SQLite FTS5 and one row per paragraph."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from engine.domain.calls import Failed
from fund_agent.library import Text, files, open_text

MAX_HITS = 8
_MAX_WORDS = 64
_WORD = re.compile(r"[^\W_]+")
_SCHEMA = (
    "CREATE VIRTUAL TABLE paragraphs USING fts5("
    "text_id UNINDEXED, span UNINDEXED, title, isin, body, tokenize = 'porter unicode61 remove_diacritics 2')"
)
_QUERY = (
    "SELECT text_id, span, snippet(paragraphs, 4, '', '', ' … ', 40) FROM paragraphs "
    "WHERE paragraphs MATCH ? ORDER BY bm25(paragraphs, 0, 0, 3.0, 5.0, 1.0), text_id, rowid"
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A text that matches, its best paragraph, and an extract of that."""

    text: Text
    span: str
    extract: str


@dataclass(frozen=True, slots=True)
class _Shelf:
    signature: tuple[tuple[str, int, int], ...]
    texts: dict[str, Text]
    index: bytes


_shelves: dict[Path, _Shelf] = {}


def search(folder: Path, shelf: str, query: str) -> list[Hit]:
    """Every text of the shelf with a word of the query, best first. FTS5 syntax is plain words here."""
    words = _WORD.findall(query)[:_MAX_WORDS]
    if not words:
        raise Failed("the query has no words to search for")
    indexed = _indexed(folder, shelf)
    best: dict[str, Hit] = {}
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(indexed.index)
        for text_id, span, extract in db.execute(_QUERY, [" OR ".join(f'"{word}"' for word in words)]):
            best.setdefault(text_id, Hit(indexed.texts[text_id], span, extract))
    return list(best.values())


def _indexed(folder: Path, shelf: str) -> _Shelf:
    """The index of the shelf as its files are now; a file that changed makes a new one."""
    paths = files(folder, shelf)
    signature = tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in paths)
    known = _shelves.get(folder / shelf)
    if known is None or known.signature != signature:
        texts = [open_text(folder, shelf, path) for path in paths]
        known = _Shelf(signature, {text.id: text for text in texts}, _build(texts))
        _shelves[folder / shelf] = known
    return known


def _build(texts: Iterable[Text]) -> bytes:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(_SCHEMA)
        db.executemany(
            "INSERT INTO paragraphs VALUES (?, ?, ?, ?, ?)",
            (
                (text.id, f"p{number}", text.title, text.isin, paragraph)
                for text in texts
                for number, paragraph in enumerate(text.paragraphs, 1)
            ),
        )
        db.commit()
        return db.serialize()
