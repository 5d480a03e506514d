"""Owns the call ids on the wire: derived per request from Host identity, never from a provider's id."""

from __future__ import annotations

from typing import Literal

from engine.domain.ids import CallId

IdStyle = Literal["plain", "nine"]
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def wire_id(call: CallId, style: IdStyle) -> str:
    """`call_3_1`, or nine alphanumerics where a provider insists on them. One call, one id, in every request."""
    if style == "plain":
        return f"call_{call.turn}_{call.ordinal}"
    number = call.turn * 10**6 + call.ordinal
    digits = []
    for _ in range(9):
        number, rest = divmod(number, 62)
        digits.append(_DIGITS[rest])
    return "".join(reversed(digits))
