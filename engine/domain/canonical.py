"""Owns the one JSON form that is stored and hashed, and the strict reading of JSON that strangers wrote.

Canonical form: UTF-8 text, keys sorted by code point, no white space, integers exact, no floats that JSON
cannot say (NaN and the infinities are refused), decimals as strings. What is hashed is exactly what is stored.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:
    Json = Any  # pydantic need not walk what canonical() checks anyway
JsonObject: TypeAlias = dict[str, Json]

MAX_DEPTH = 64
MAX_INT_DIGITS = 40
_SURROGATE = re.compile("[\ud800-\udfff]")
_plain = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), check_circular=False
)


def _made_once() -> Callable[[object], str]:
    """The C encoder with the settings above: `encode` makes another one for every text, which takes as long as
    encoding it. Without C, `encode` itself."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _plain.encode
    encode = make(None, _plain.default, json.encoder.encode_basestring, None, ":", ",", True, False, False)
    return lambda value: "".join(encode(value, 0))


_encode = _made_once()


class NotJson(ValueError):
    """Text or a value that strict JSON does not allow; `where` is a JSON path such as `$.a[2]`."""

    def __init__(self, what: str, where: str = "$") -> None:
        super().__init__(f"{what} at {where}")
        self.what = what
        self.where = where


def canonical(value: object) -> str:
    """The canonical text of a JSON value. Raises NotJson for what JSON cannot hold."""
    try:
        text = _encode(value)
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotJson("a lone surrogate", _find_surrogate(value)) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error
    return text


def digest(text: str) -> str:
    """SHA-256 of UTF-8 text, 64 lower-case hex digits."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def digest_of(value: object) -> str:
    """SHA-256 of the canonical form of a JSON value."""
    return digest(canonical(value))


def parse_json(text: str) -> Json:
    """Reads strict JSON: no NaN, no duplicate keys, no lone surrogates, bounded depth and integers.

    Fractions are kept as the shortest float that reads back equal; use `exact` schemas for money, which
    travels as a string. Raises NotJson, never another exception, whatever the text is.
    """
    _check_depth(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_int=_int,
            parse_float=_float,
        )
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg.lower()} (character {error.pos + 1})") from error
    except (ValueError, RecursionError) as error:
        raise NotJson("text that is not JSON") from error
    where = _find_surrogate(value)
    if where:
        raise NotJson("a lone surrogate", where)
    return value  # type: ignore[no-any-return]


def _unique(pairs: list[tuple[str, Json]]) -> JsonObject:
    found: JsonObject = {}
    for key, value in pairs:
        if key in found:
            raise NotJson(f"the key {key!r} twice")
        found[key] = value
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise NotJson(f"{name}, which JSON does not have")


def _int(digits: str) -> int:
    if len(digits) > MAX_INT_DIGITS:
        raise NotJson(f"an integer of {len(digits)} digits (at most {MAX_INT_DIGITS})")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise NotJson(f"the number {digits[:40]}, which is out of range")
    return value


def _check_depth(text: str) -> None:
    """Bounds nesting before the recursive parser sees it; brackets inside strings do not count."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    in_string = False
    escaped = False
    for char in text:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise NotJson(f"nesting deeper than {MAX_DEPTH}")
        elif char in "]}":
            depth -= 1


def _find_surrogate(value: object, path: str = "$") -> str:
    if isinstance(value, str):
        return path if _SURROGATE.search(value) else ""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str) and _SURROGATE.search(key):
                return f"{path}.{ascii(key)[1:-1]}"
            found = _find_surrogate(item, f"{path}.{key}")
            if found:
                return found
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            found = _find_surrogate(item, f"{path}[{index}]")
            if found:
                return found
    return ""


def refuse_surrogates(value: object) -> None:
    """Raises NotJson at the first lone surrogate in a value or key."""
    where = _find_surrogate(value)
    if where:
        raise NotJson("a lone surrogate", where)


def clean_text(text: str) -> tuple[str, bool]:
    """Replaces lone surrogates by U+FFFD; the flag says whether anything was replaced."""
    cleaned, count = _SURROGATE.subn("\ufffd", text)
    return cleaned, count > 0
