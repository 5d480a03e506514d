"""Owns logic over sets of truth values: what `and`, `or` and `not` may answer where operands are not settled."""

from __future__ import annotations

from typing import Final

from engine.domain.facts import Truth
from engine.policy.solver.claims import FALSE, TRUE, UNSURE

_BITS: Final = {True: TRUE, False: FALSE}


def bit(truth: Truth) -> int:
    return _BITS.get(truth, UNSURE) if truth.__class__ is bool else UNSURE


def _members(mask: int) -> list[int]:
    return [each for each in (TRUE, FALSE, UNSURE) if mask & each]


def _kleene(one: int, two: int) -> int:
    """`and` of two single truth values."""
    if FALSE in (one, two):
        return FALSE
    return UNSURE if UNSURE in (one, two) else TRUE


def inverse(mask: int) -> int:
    return (mask & UNSURE) | (TRUE if mask & FALSE else 0) | (FALSE if mask & TRUE else 0)


def _table() -> list[list[int]]:
    return [
        [sum({_kleene(a, b) for a in _members(one) for b in _members(two)}) for two in range(8)]
        for one in range(8)
    ]


AND: Final = _table()
OR: Final = [[inverse(AND[inverse(one)][inverse(two)]) for two in range(8)] for one in range(8)]
