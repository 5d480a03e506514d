"""Owns how values are spelled to be compared, and which literals stand in a text: exact, never by likeness."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal, InvalidOperation

from engine.domain.canonical import Json
from engine.domain.events import timestamp
from engine.domain.facts import Value

MAX_WHOLE = 256
"""Code points up to which a string is a value of its own; a longer one, or one with spaces, is also text."""
NUMBER = re.compile(r"-?\d{1,40}(\.\d{1,40})?\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
_BETWEEN = r"\s\"'`<>()\[\]{},;|"
"""What stands between literals in a text."""
_TOKEN = re.compile(f"[^{_BETWEEN}]+")
_PARTS = re.compile(r"[^:=]+")
_WORD = re.compile(r"[^\W_]+")
"""What no delimiter and no mark at an edge can divide or belong to."""
_BEFORE, _AFTER = ":;!?*_", ".,:;!?*_"
"""Marks before and after a literal that are not part of it. A dot before it is: `../x` is not `/x`."""
_GROUPED = re.compile(
    r"(?<![\w.,'-])-?\d{1,3}(?:(?:[,']\d{3})+(?:\.\d+)?|(?:\.\d{3})+,\d+)(?![\w'])",
)
"""`12,500.75` and `12.500,75`: one amount, whose pieces are no amounts."""
_AS_NUMBER = "\x00"
"""Marks the spelling of a number: `1.50` as an id is not `1.5`, as an amount it is."""


def normalised(value: Value) -> str:
    """The one spelling under which a scalar is compared."""
    if isinstance(value, str):
        text = (value if value.isascii() else unicodedata.normalize("NFC", value)).strip()
        return _time(text) if _TIME.match(text) else text
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return _number(str(value))
    if isinstance(value, float):
        return _number(repr(value))
    return unicodedata.normalize("NFC", str(value)).strip()


def asked(value: Value) -> str:
    """The spelling under which a value is looked up: a number as a number, everything else as it is written."""
    plain = normalised(value)
    return _AS_NUMBER + plain if isinstance(value, int | float | Decimal) else plain


def spellings(leaf: Json, plain: str) -> tuple[str, ...]:
    """The spellings under which a recorded scalar is found; `plain` is its normalised one."""
    if isinstance(leaf, str):
        return (plain, _AS_NUMBER + _number(plain)) if NUMBER.match(plain) else (plain,)
    return (plain, _AS_NUMBER + plain)


def literals(text: str, *, widely: bool = False) -> Iterator[str]:
    """Each delimited literal of a text, with and without marks at its edges, and the parts of `name:value` and
    `name=value`. `widely` takes every piece that somebody could mean, also one that a closer look takes for a part
    of another literal: for text that is not trusted, where being found is what restricts."""
    for token in dict.fromkeys(_TOKEN.findall(text if widely else _GROUPED.sub(" ", text))):
        if token.isalnum():
            yield token
            continue
        before, after = (_AFTER, _AFTER) if widely else (_BEFORE, _AFTER)
        bare = token.lstrip(before)
        if widely or not _is_pattern(token):
            bare = bare.rstrip(after)
        yield from (each for each in dict.fromkeys((token, bare, *_PARTS.findall(token))) if each)


def delimited(key: str, text: str) -> bool:
    """True if `key` stands in `text` with nothing but marks between it and the next space, quote or bracket."""
    if key not in text:
        return False
    before, after = f"[{re.escape(_BEFORE)}=]*", f"[{re.escape(_AFTER)}=]*"
    pattern = rf"(?:^|[{_BETWEEN}:=]){before}{re.escape(key)}{after}(?:$|[{_BETWEEN}])"
    return re.search(pattern, text) is not None


def is_literal(text: str) -> bool:
    """True for what can stand in a text as one literal: nothing in it divides it."""
    return _TOKEN.fullmatch(text) is not None


def holds_several(text: str) -> bool:
    """True for what is read as a text, not as one literal."""
    return len(text) > MAX_WHOLE or not is_literal(text)


def words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def folded(text: str) -> str:
    """Without case and spaces: the spellings of one value that systems make of each other."""
    return "".join(unicodedata.normalize("NFC", text).casefold().split())


def _is_pattern(token: str) -> bool:
    """`/data/*` names what is under a folder, not the folder."""
    return "/*" in token


def _number(text: str) -> str:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    if not number.is_finite():
        return text
    plain = format(number, "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _time(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return text if moment.tzinfo is None else timestamp(moment)
