"""One rule for every database: what a tool's answer becomes before it is stored."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from engine.domain.calls import Outcome
from engine.domain.canonical import canonical, digest
from engine.domain.events import ReceiptRecorded, payload_of
from engine.domain.ids import CallId
from engine.domain.results import MAX_INLINE, MAX_SIZE, storable


class Colour(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: Decimal


class Item(BaseModel):
    name: str
    at: date


@dataclasses.dataclass
class Box:
    item: Item
    size: tuple[int, int]


@pytest.mark.parametrize(
    ("raw", "stored"),
    [
        (None, None),
        ({"a": [1, 2.5, True, "x"]}, {"a": [1, 2.5, True, "x"]}),
        (Decimal("10.50"), "10.50"),
        (Decimal("1E+3"), "1000"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00Z"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=2))), "2026-01-02T03:04:00+02:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (Colour.RED, "red"),
        (Point(1, Decimal("2")), {"x": 1, "y": "2"}),
        (
            Box(Item(name="n", at=date(2026, 1, 2)), (1, 2)),
            {"item": {"name": "n", "at": "2026-01-02"}, "size": [1, 2]},
        ),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (2512292042121000001, 2512292042121000001),
    ],
)
def test_python_values_become_plain_json(raw: object, stored: object) -> None:
    kept = storable(raw)
    assert kept.result.value == stored
    assert kept.result.fault is None
    assert kept.result.size == len(canonical(stored).encode())


def _endless() -> Any:
    loop: list[Any] = []
    loop.append({"again": loop})
    return loop


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def _numbers() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        ({"score": float("nan")}, "$.score"),  # langflow-ai/langflow#11905
        ({"a": [1, float("inf")]}, "$.a[1]"),
        ({"a": Decimal("NaN")}, "$.a"),
        (b"bytes", "$"),
        ({"a": {1, 2}}, "$.a"),
        ({"a": object()}, "$.a"),
        ({1: "x"}, "$"),
        (10**40, "$"),
        (datetime(2026, 1, 2, 3, 4), "$"),
        (_endless(), "$[0].again"),
        (_deep(100), "$" + "[0]" * 64),
        (dict.fromkeys(["\ud800", "\ufffd"], 1), "$"),
        (_numbers(), "$"),
    ],
)
def test_what_json_cannot_hold_is_a_fault_with_its_path(raw: object, where: str) -> None:
    kept = storable(raw)
    assert kept.result.fault is not None
    assert kept.result.fault.startswith("not_storable: ")
    assert kept.result.fault.endswith(f" at {where}")
    assert (kept.result.value, kept.result.digest, kept.blob) == (None, None, None)


def test_lone_surrogates_are_replaced_and_marked() -> None:
    """NousResearch/hermes-agent#102757: half a surrogate in a value or a key bricked the session."""
    kept = storable({"t\udc88": "x\ud800", "é": "é"}).result
    assert kept.value == {"t\ufffd": "x\ufffd", "é": "é"}
    assert kept.sanitised


def test_a_large_result_goes_to_the_blob_table_by_digest() -> None:
    kept = storable("x" * MAX_INLINE)
    assert kept.blob == canonical("x" * MAX_INLINE)
    assert kept.result.digest == digest(kept.blob)
    assert (kept.result.value, kept.result.size, kept.result.fault) == (None, MAX_INLINE + 2, None)
    assert storable("x" * (MAX_INLINE - 2)).blob is None


def test_a_result_that_is_too_large_keeps_digest_and_size_only() -> None:
    kept = storable("x" * MAX_SIZE)
    assert kept.result.fault is not None
    assert kept.result.fault.startswith("too_large: ")
    assert (kept.blob, kept.result.size) == (None, MAX_SIZE + 2)
    assert kept.result.digest == digest(canonical("x" * MAX_SIZE))


ANYTHING = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters()), st.binary(), st.decimals(),
        st.datetimes(), st.dates(), st.sets(st.integers(), max_size=2),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(st.characters(), max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip


@given(ANYTHING)
def test_whatever_a_tool_returns_can_be_recorded(raw: object) -> None:
    kept = storable(raw)
    receipt = ReceiptRecorded(
        call=CallId(1, 1), tool="t", outcome=Outcome.CONFIRMED, settled_by="tool", result=kept.result
    )
    assert payload_of(receipt)
