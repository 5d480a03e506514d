"""Owns the one rule that turns a tool's raw answer into data that every database can keep."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import TypeAlias
from uuid import UUID

from pydantic import BaseModel

from engine.domain.canonical import MAX_DEPTH, MAX_INT_DIGITS, Json, NotJson, canonical, clean_text, digest
from engine.domain.events import StoredResult

MAX_INLINE = 8 * 1024
"""Bytes of canonical JSON that a receipt carries itself; more goes to the blob table by digest."""
MAX_SIZE = 8 * 1024 * 1024
"""Bytes beyond which a result is not kept: its receipt says so and holds only digest and size."""
_MAX_INT = 10**MAX_INT_DIGITS


ReadResult: TypeAlias = Callable[[StoredResult], Json]
"""Gives the value of a stored result, by digest where it is large."""


@dataclass(frozen=True, slots=True)
class Storable:
    """What a receipt holds of an answer, and the text for the blob table where it is large."""

    result: StoredResult
    blob: str | None = None
    """Canonical JSON whose digest `result.digest` is; None for what is inline or not kept."""


def storable(value: object) -> Storable:
    """Turns a raw answer into a StoredResult. Never raises: what cannot be kept becomes a `fault` that begins
    with `not_storable: ` (with the path) or `too_large: `; the effect of the call is not in doubt then."""
    try:
        data, sanitised = jsonable(value)
        text = canonical(data)
    except NotJson as error:
        return Storable(StoredResult(fault=f"not_storable: {error}"))
    except Exception as error:  # noqa: BLE001 - a container of the tool's own, or one that its thread still changes
        return Storable(StoredResult(fault=f"not_storable: reading it raised {type(error).__name__}"))
    size = len(text.encode("utf-8"))
    if size <= MAX_INLINE:
        return Storable(StoredResult(value=data, size=size, sanitised=sanitised))
    kept = StoredResult(digest=digest(text), size=size, sanitised=sanitised)
    if size <= MAX_SIZE:
        return Storable(kept, text)
    fault = f"too_large: {size} bytes of JSON (at most {MAX_SIZE})"
    return Storable(kept.model_copy(update={"fault": fault}))


def jsonable(value: object) -> tuple[Json, bool]:
    """Plain JSON data for a Python value; the flag says that lone surrogates became U+FFFD.

    Decimals become strings, datetimes RFC 3339 (they need a time zone), dates and times ISO 8601, enums their
    value, pydantic models, dataclasses and named tuples objects. Raises NotJson with the path for anything else:
    bytes, sets, NaN, infinities, integers of more than 40 digits, keys that are no strings, cycles, nesting
    deeper than 64.
    """
    walk = _Walk()
    return walk.visit(value, "$", 0), walk.sanitised


class _Walk:
    __slots__ = ("open", "sanitised")

    def __init__(self) -> None:
        self.sanitised = False
        self.open: set[int] = set()

    def visit(self, value: object, path: str, depth: int) -> Json:
        if value is None or value is True or value is False:
            return value
        kind = type(value)
        if kind is str:
            return self._text(value)  # type: ignore[arg-type]  # the exact type was just compared
        if kind is int or kind is float:
            return _number(value, path)  # type: ignore[arg-type]  # as above
        scalar = _scalar(value, path)
        if scalar is not None:
            return self._text(scalar) if isinstance(scalar, str) else scalar
        return self._container(value, path, depth)

    def _container(self, value: object, path: str, depth: int) -> Json:
        if depth >= MAX_DEPTH:
            raise NotJson(f"nesting deeper than {MAX_DEPTH}", path)
        if id(value) in self.open:
            raise NotJson("a value that contains itself", path)
        self.open.add(id(value))
        try:
            fields = _fields(value)
            if fields is not None:
                return self._object(fields, path, depth)
            if isinstance(value, list | tuple):
                return [self.visit(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
        finally:
            self.open.discard(id(value))
        raise NotJson(f"a {type(value).__name__}, which JSON does not have,", path)

    def _object(self, fields: Mapping[object, object], path: str, depth: int) -> Json:
        found: dict[str, Json] = {}
        for key, item in fields.items():
            if not isinstance(key, str):
                raise NotJson(f"a key that is a {type(key).__name__}, not a string,", path)
            name = self._text(key)
            if name in found:
                raise NotJson(f"the key {name!r} twice", path)
            found[name] = self.visit(item, f"{path}.{name}", depth + 1)
        return found

    def _text(self, text: str) -> str:
        if text.isascii():
            return str(text)
        cleaned, replaced = clean_text(text)
        self.sanitised = self.sanitised or replaced
        return cleaned


def _number(value: int | float, path: str) -> Json:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJson(f"the number {value}, which JSON does not have,", path)
        return float(value)
    if not -_MAX_INT < value < _MAX_INT:
        raise NotJson(f"an integer of more than {MAX_INT_DIGITS} digits", path)
    return int(value)


def _scalar(value: object, path: str) -> Json:
    """JSON for the scalars that JSON has no type for, and for subclasses of its own; None for containers."""
    match value:
        case Enum():
            return jsonable(value.value)[0]
        case str():
            return str.__str__(value)
        case int() | float():
            return _number(value, path)
        case Decimal():
            return _decimal(value, path)
        case datetime():
            return _moment(value, path)
        case date() | time():
            return value.isoformat()
        case UUID():
            return str(value)
    return None


def _decimal(value: Decimal, path: str) -> str:
    if not value.is_finite():
        raise NotJson(f"the decimal {value}, which is not a number,", path)
    plain = -MAX_INT_DIGITS <= value.adjusted() <= MAX_INT_DIGITS
    return format(value, "f") if plain else str(value)


def _moment(value: datetime, path: str) -> str:
    if value.utcoffset() is None:
        raise NotJson("a datetime without time zone", path)
    text = value.isoformat()
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def _fields(value: object) -> Mapping[object, object] | None:
    if isinstance(value, Mapping):
        return value
    if isinstance(value, BaseModel):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    names = getattr(value, "_fields", None) if isinstance(value, tuple) else None
    return None if names is None else dict(zip(names, value, strict=True))  # type: ignore[call-overload]  # a named tuple
