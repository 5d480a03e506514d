"""Owns identities that the Host gives: Runs and calls. Provider ids are never identity."""

from __future__ import annotations

import os
import re
import time
from typing import NamedTuple, NewType

RunId = NewType("RunId", str)

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_CALL = re.compile(r"(\d{1,9})\.(\d{1,6})\Z")


def new_run_id() -> RunId:
    """A fresh id: 9 characters of time (milliseconds), then 7 of chance; sorts by the time of birth."""
    stamp = int(time.time() * 1000)
    chance = int.from_bytes(os.urandom(5), "big") % 32**7
    return RunId("r" + _base32(stamp, 9) + _base32(chance, 7))


def _base32(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, rest = divmod(number, 32)
        digits.append(_ALPHABET[rest])
    return "".join(reversed(digits))


class CallId(NamedTuple):
    """A proposal within its Run: the ModelTurn (from 1) and its place in that response (from 1).

    Calls of the Host (probes, refreshes, compensations) have turn 0 and count through the Run.
    """

    turn: int
    ordinal: int

    def __str__(self) -> str:
        return f"{self.turn}.{self.ordinal}"

    @classmethod
    def parse(cls, text: str) -> CallId | None:
        """`"3.1"` -> CallId(3, 1); None for anything else."""
        match = _CALL.match(text.strip())
        return cls(int(match[1]), int(match[2])) if match else None
