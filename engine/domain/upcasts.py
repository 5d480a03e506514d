"""Owns the reading of old event shapes: one function per shape that was ever released, oldest first."""

from __future__ import annotations

from collections.abc import Callable

UPCASTS: dict[str, Callable[[str], str]] = {}
"""Event kind -> payload text of any released shape to payload text of the present one."""


def upcast(kind: str, payload: str) -> str:
    change = UPCASTS.get(kind)
    return change(payload) if change else payload
