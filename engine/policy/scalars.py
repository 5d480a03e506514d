"""Owns how a plain YAML scalar is read: the YAML 1.2 core schema, and where YAML 1.1 would read it otherwise."""

from __future__ import annotations

import re
from typing import Final

Plain = None | bool | int | float | str

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_BOOL_1_1: Final = {
    **dict.fromkeys(("yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "off", "Off", "OFF"), False),
}
_NUMERIC: Final = re.compile(r"[-+.0-9]")
_INT: Final = re.compile(r"[-+]?[0-9]{1,40}")
_OCTAL: Final = re.compile(r"0o[0-7]{1,40}")
_HEX: Final = re.compile(r"0x[0-9a-fA-F]{1,40}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INT_1_1: Final = re.compile(
    r"[-+]?0b[01_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"
)
_FLOAT_1_1: Final = re.compile(r"[-+]?[0-9][0-9_]*\.[0-9_]*|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*")


def read_plain(text: str) -> Plain:
    """The value of a plain scalar by the YAML 1.2 core schema."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if not _NUMERIC.match(text):
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text):
        return int(text[2:], 8)
    if _HEX.fullmatch(text):
        return int(text, 16)
    if _FLOAT.fullmatch(text) or _SPECIAL.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def other_reading(text: str, value: Plain) -> str | None:
    """How YAML 1.1 readers see the scalar, as words, where that is another value; None where both agree."""
    if text in _BOOL_1_1:
        return "true" if _BOOL_1_1[text] else "false"
    if not _NUMERIC.match(text) or isinstance(value, float):
        return None
    if _INT_1_1.fullmatch(text):
        legacy = _int_1_1(text)
        return None if legacy == value else f"the number {legacy}"
    if isinstance(value, str):
        return f"the number {text.replace('_', '')}" if _FLOAT_1_1.fullmatch(text) else None
    return "text" if _OCTAL.fullmatch(text) else None


def _int_1_1(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-").replace("_", "")
    if ":" in digits:
        total = 0
        for part in digits.split(":"):
            total = total * 60 + int(part)
        return sign * total
    base = {"0b": 2, "0x": 16}.get(digits[:2])
    if base:
        return sign * int(digits[2:] or "0", base)
    return sign * int(digits, 8 if digits.startswith("0") and len(digits) > 1 else 10)
