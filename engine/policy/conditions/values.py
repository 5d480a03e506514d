"""Owns how a recorded value becomes the typed value that a condition compares.

A value that is not of its declared type is UNKNOWN, never an error: unknown restricts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from datetime import datetime, timedelta
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow
from functools import lru_cache
from typing import Final, TypeAlias
from urllib.parse import SplitResult, urlsplit

from engine.domain.facts import UNKNOWN, Unknown, Value
from engine.domain.types import TypeName, ValueType

Converter: TypeAlias = Callable[[Value], Value]

INT_LIMIT: Final = 2**63
# Exact or unknown: a sum that needs rounding at 100 digits is not a sum of money.
EXACT: Final = Context(prec=100, traps=[InvalidOperation, Inexact, Overflow])
ZERO: Final = Decimal(0)
_CLEAN_PATH: Final = re.compile(r"(?!\.{1,2}(?:/|\Z))[^/\\\0]+(?:/(?!\.{1,2}(?:/|\Z))[^/\\\0]+)*")
_UNSAFE_URL: Final = re.compile(r"[\s\\\x00-\x1f\x7f]")
_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
_EMAIL: Final = re.compile(r"([^\s@<>,;:\\\"]+)@([^\s@<>,;:\\\"/]+)")
_DURATION: Final = re.compile(r"(-)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,9})ms)?", re.ASCII)
_TIMESTAMP: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def as_bool(value: Value) -> Value:
    return value if value is True or value is False else _unknown(value)


def as_int(value: Value) -> Value:
    if value.__class__ is int:
        return value if -INT_LIMIT <= value < INT_LIMIT else UNKNOWN
    return _unknown(value)


def as_string(value: Value) -> Value:
    if value.__class__ is str:
        return value
    return str(value) if isinstance(value, str) else _unknown(value)


def as_decimal(value: Value) -> Value:
    """From Decimal, int or the string that a decimal travels as."""
    if value.__class__ is int:
        return Decimal(value)
    if isinstance(value, str):
        value = parse_decimal(value)
    return value if isinstance(value, Decimal) and value.is_finite() else _unknown(value)


def as_timestamp(value: Value) -> Value:
    if isinstance(value, str):
        value = parse_timestamp(value)
    return value if isinstance(value, datetime) and value.tzinfo is not None else _unknown(value)


def as_duration(value: Value) -> Value:
    if isinstance(value, str):
        value = parse_duration(value)
    return value if isinstance(value, timedelta) else _unknown(value)


def as_path(value: Value) -> Value:
    """The path without `.` and doubled or trailing slashes; UNKNOWN if absolute, climbing or not a path."""
    if isinstance(value, str):
        return value if _CLEAN_PATH.fullmatch(value) else _normal_path(value)
    return _unknown(value)


def as_email(value: Value) -> Value:
    """The address with its domain in lower case."""
    if not isinstance(value, str):
        return _unknown(value)
    match = _EMAIL.fullmatch(value)
    return f"{match[1]}@{match[2].lower().rstrip('.')}" if match else UNKNOWN


def as_url(value: Value) -> Value:
    """The address with scheme and host in lower case, without a default port."""
    return normal_url(value) if isinstance(value, str) else _unknown(value)


def as_list(value: Value) -> Value:
    """Lists and tuples in their order, sets sorted. The elements are converted where they are read."""
    if value.__class__ is list or isinstance(value, tuple):
        return value
    return sorted(value, key=str) if isinstance(value, Set) else _unknown(value)


def as_record(value: Value) -> Value:
    return value if isinstance(value, Mapping) else _unknown(value)


_CONVERTERS: Final[Mapping[TypeName, Converter]] = {
    TypeName.BOOL: as_bool,
    TypeName.INT: as_int,
    TypeName.DECIMAL: as_decimal,
    TypeName.ENUM: as_string,
    TypeName.ID: as_string,
    TypeName.REF: as_string,
    TypeName.PATH: as_path,
    TypeName.EMAIL: as_email,
    TypeName.URL: as_url,
    TypeName.TIMESTAMP: as_timestamp,
    TypeName.DURATION: as_duration,
    TypeName.LIST: as_list,
    TypeName.ARGV: as_list,
    TypeName.RECORD: as_record,
    TypeName.TEXT: as_string,
    TypeName.RICH_TEXT: as_string,
}


def converter(type_: ValueType) -> Converter:
    """What turns a recorded value of the type into the value that is compared, or into an Unknown."""
    return _CONVERTERS[type_.name]


def _unknown(value: Value) -> Unknown:
    return value if value.__class__ is Unknown else UNKNOWN


def _normal_path(text: str) -> Value:
    if text.startswith("/") or "\\" in text or "\0" in text:
        return UNKNOWN
    parts = [part for part in text.split("/") if part not in ("", ".")]
    return UNKNOWN if ".." in parts else "/".join(parts)


# --- reading ----------------------------------------------------------------------------------------------


def parse_decimal(text: str) -> Decimal | None:
    """A plain decimal such as `-12.50`; None for anything else, exponents and NaN included."""
    if len(text) > 100 or not re.fullmatch(r"-?\d+(?:\.\d+)?", text, re.ASCII):
        return None
    try:
        return Decimal(text)
    except DecimalException:
        return None


def parse_duration(text: str) -> timedelta | None:
    """`1h30m`, `90s`, `250ms`; None for anything else (a day is `24h`)."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()[1:]):
        return None
    hours, minutes, seconds, millis = (int(part or 0) for part in match.groups()[1:])
    try:
        found = timedelta(hours=hours, minutes=minutes, seconds=seconds, milliseconds=millis)
    except OverflowError:
        return None
    return -found if match[1] else found


def parse_timestamp(text: str) -> datetime | None:
    """An RFC 3339 time with its zone; None for anything else."""
    if not _TIMESTAMP.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError:
        return None


@lru_cache(maxsize=1024)
def _split(text: str) -> SplitResult | None:
    """The parts of an absolute URL, or None where two readers could see two hosts."""
    if _UNSAFE_URL.search(text):
        return None
    try:
        parts = urlsplit(f"//{text}" if text[:4].lower() == "www." else text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return None
    return parts if host and _HOST.fullmatch(host) and (parts.scheme or text[:4].lower() == "www.") else None


@lru_cache(maxsize=1024)
def normal_url(text: str) -> Value:
    parts = _split(text)
    if parts is None:
        return UNKNOWN
    host = host_of(text)
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return parts._replace(netloc=f"{user}{shown}{port}", path=parts.path or "/").geturl()


def host_of(text: str) -> Value:
    """The host of a URL in lower case without a trailing dot."""
    parts = _split(text)
    return (parts.hostname or "").rstrip(".") if parts is not None else UNKNOWN


def scheme_of(text: str) -> Value:
    parts = _split(text)
    return parts.scheme if parts is not None and parts.scheme else UNKNOWN


def domain_of(address: str) -> str:
    """The domain of an address that `as_email` returned."""
    return address.rpartition("@")[2]


def is_under(path: str, folder: str) -> bool:
    """True for the folder itself and what is inside; both normalised. An empty folder is the root."""
    return path == folder or not folder or path.startswith(folder + "/")


# --- links -------------------------------------------------------------------------------------------------

_LINK: Final = re.compile(
    r"https?://[^\s<>\"'`]+"
    r"|(?<![\w.@-])www\.[^\s<>\"'`]+"
    r"|(?<![\w.%+-])[\w.%+-]+@[\w-]+(?:\.[\w-]+)+",
    re.IGNORECASE,
)
_TRAILING: Final = ".,;:!?)]}*_~|"


def links_in(text: str) -> list[str]:
    """The URLs (`http://`, `https://`, `www.`) and e-mail addresses that occur in a text, in order."""
    return [match[0].rstrip(_TRAILING) for match in _LINK.finditer(text)]
