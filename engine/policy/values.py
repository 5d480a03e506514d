"""Owns whether a JSON value is of a declared type, exactly: `true` is no int, `1.0` is no int, nothing is coerced."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from engine.domain.canonical import Json, JsonObject
from engine.domain.diagnostics import suggest
from engine.domain.facts import Unknown
from engine.domain.types import Field, TypeName, ValueType
from engine.policy.conditions.values import converter
from engine.policy.schema import MAX_ID, MAX_ITEMS

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MAX_LEN: Final[Mapping[TypeName, int]] = {
    TypeName.ID: MAX_ID,
    TypeName.REF: MAX_ID,
    TypeName.PATH: 1024,
    TypeName.EMAIL: 254,
    TypeName.URL: 2048,
    TypeName.DECIMAL: 64,
    TypeName.TIMESTAMP: 40,
    TypeName.DURATION: 40,
}
_EXPECTED: Final[Mapping[TypeName, str]] = {
    TypeName.DECIMAL: "a decimal number as a string, such as `12.50`",
    TypeName.PATH: "a relative path without `..`",
    TypeName.EMAIL: "an e-mail address",
    TypeName.URL: "a url with its scheme and host",
    TypeName.TIMESTAMP: "a time with its zone, such as `2026-01-31T00:00:00Z`",
    TypeName.DURATION: "a duration such as `1h30m` or `90s`",
}


class Fault(NamedTuple):
    """What is wrong with a value; `field` is the path to it (`items[2].sku`), `message` one line."""

    field: str
    message: str


def read_value(value: Json, type_: ValueType, field: str, faults: list[Fault]) -> Json:
    """The value as the Host keeps it (paths normalised); what does not fit is added to `faults`."""
    match type_.name:
        case TypeName.BOOL:
            _kind(value, bool, "true or false", field, faults)
            return value
        case TypeName.INT:
            return _int(value, type_, field, faults)
        case TypeName.ENUM:
            return _enum(value, type_, field, faults)
        case TypeName.LIST | TypeName.ARGV:
            return _list(value, type_, field, faults)
        case TypeName.RECORD:
            return _record(value, type_.fields, field, faults)
        case _:
            return _string(value, type_, field, faults)


def fits(value: Json, type_: ValueType) -> bool:
    faults: list[Fault] = []
    read_value(value, type_, "", faults)
    return not faults


def json_kind(value: Json) -> str:
    """What JSON calls a value, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a fraction"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def _kind(value: Json, wanted: type, expected: str, field: str, faults: list[Fault]) -> bool:
    if type(value) is wanted:
        return True
    faults.append(Fault(field, f"`{field}` must be {expected}, not {json_kind(value)}"))
    return False


def _int(value: Json, type_: ValueType, field: str, faults: list[Fault]) -> Json:
    if _kind(value, int, "an integer", field, faults):
        assert isinstance(value, int)
        if type_.min is not None and value < type_.min:
            faults.append(Fault(field, f"`{field}` must be at least {type_.min}"))
        elif type_.max is not None and value > type_.max:
            faults.append(Fault(field, f"`{field}` must be at most {type_.max}"))
    return value


def _enum(value: Json, type_: ValueType, field: str, faults: list[Fault]) -> Json:
    allowed = ", ".join(type_.values)
    if _kind(value, str, f"one of: {allowed}", field, faults) and value not in type_.values:
        faults.append(Fault(field, f"`{field}` must be one of: {allowed}"))
    return value


def _list(value: Json, type_: ValueType, field: str, faults: list[Fault]) -> Json:
    if not _kind(value, list, "an array", field, faults):
        return value
    assert isinstance(value, list)
    most = type_.max_items or MAX_ITEMS
    if len(value) > most:
        faults.append(Fault(field, f"`{field}` has {len(value)} items, at most {most} are allowed"))
        return value
    if type_.name is TypeName.ARGV:
        return _argv(value, field, type_, faults)
    of = type_.of or ValueType(TypeName.ID)
    return [read_value(item, of, f"{field}[{index}]", faults) for index, item in enumerate(value)]


def _argv(value: list[Json], field: str, type_: ValueType, faults: list[Fault]) -> Json:
    if not value:
        faults.append(Fault(field, f"`{field}` must name a command"))
    for index, item in enumerate(value):
        here = f"{field}[{index}]"
        if not _kind(item, str, "a string", here, faults):
            continue
        assert isinstance(item, str)
        if "\0" in item or len(item) > (type_.max_len or 4096):
            faults.append(Fault(here, f"`{here}` is too long or holds a null character"))
    return value


def _record(value: Json, fields: Mapping[str, Field], field: str, faults: list[Fault]) -> Json:
    if not _kind(value, dict, "an object", field, faults):
        return value
    assert isinstance(value, dict)
    return read_fields(value, fields, f"{field}." if field else "", faults)


def read_fields(
    value: JsonObject, fields: Mapping[str, Field], prefix: str, faults: list[Fault], *, partial: bool = False
) -> JsonObject:
    """An object of declared fields: none unknown, none missing (unless `partial`), each of its type."""
    faults.extend(
        Fault(prefix + name, unknown_field(prefix + name, name, fields))
        for name in value
        if name not in fields
    )
    if not partial:
        for name, declared in fields.items():
            if declared.required and name not in value:
                faults.append(Fault(prefix + name, f"`{prefix}{name}` is missing"))
    return {
        name: read_value(item, fields[name].type, prefix + name, faults)
        for name, item in value.items()
        if name in fields
    }


def unknown_field(shown: str, name: str, known: Mapping[str, object]) -> str:
    accepted = f"accepted: {', '.join(known)}" if known else "it takes none"
    near = suggest(name, known, "")
    return f"`{_short(shown)}` is not accepted ({accepted})" + (f"; {near}" if near else "")


def _short(text: str) -> str:
    """A name that a stranger chose, safe to print."""
    clean = text.encode("unicode_escape").decode("ascii")
    return clean if len(clean) <= 64 else f"{clean[:61]}..."


def _string(value: Json, type_: ValueType, field: str, faults: list[Fault]) -> Json:
    expected = _EXPECTED.get(type_.name, "a string")
    if not _kind(value, str, expected, field, faults):
        return value
    assert isinstance(value, str)
    most = type_.max_len if type_.max_len is not None else _MAX_LEN.get(type_.name)
    if most is not None and len(value) > most:
        faults.append(Fault(field, f"`{field}` has {len(value)} characters, at most {most} are allowed"))
    elif not type_.opaque:
        return _name(value, type_, field, expected, faults)
    return value


def _name(value: str, type_: ValueType, field: str, expected: str, faults: list[Fault]) -> str:
    if not value or _CONTROL.search(value):
        faults.append(Fault(field, f"`{field}` is empty or holds a control character"))
    elif type_.pattern is not None and not _pattern(type_.pattern).fullmatch(value):
        faults.append(Fault(field, f"`{field}` does not match the pattern `{type_.pattern}`"))
    elif type_.name in _EXPECTED:
        return _formatted(value, type_, field, expected, faults)
    return value


def _formatted(value: str, type_: ValueType, field: str, expected: str, faults: list[Fault]) -> str:
    if type_.name is TypeName.PATH:
        value = unicodedata.normalize("NFC", value)
    found = converter(type_)(value)
    if isinstance(found, Unknown) or found == "" or (type_.name is TypeName.URL and "://" not in value):
        faults.append(Fault(field, f"`{field}` must be {expected}"))
        return value
    return str(found) if type_.name is TypeName.PATH else value


@lru_cache(maxsize=512)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def references(value: Json, type_: ValueType, field: str) -> Iterator[tuple[str, str, str]]:
    """(field, evidence kind, id) of every reference in a value of the type."""
    if type_.name is TypeName.REF and isinstance(value, str):
        yield field, type_.kind or "", value
    elif type_.name is TypeName.LIST and type_.of is not None and isinstance(value, list):
        for index, item in enumerate(value):
            yield from references(item, type_.of, f"{field}[{index}]")
    elif type_.name is TypeName.RECORD and isinstance(value, dict):
        for name, item in value.items():
            if name in type_.fields:
                yield from references(item, type_.fields[name].type, f"{field}.{name}")
