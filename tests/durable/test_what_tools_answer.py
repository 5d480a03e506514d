"""Owns the promise that what a tool answers or raises becomes a receipt, however it is made, and only what is known."""

from __future__ import annotations

from collections.abc import ItemsView
from typing import Any

import pytest

from engine.domain.calls import Failed, NotExecuted
from tests.durable.test_reconciliation import PRICE, SAME_KEY, failing
from tests.runtime.bench import Bench, final, say


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class MuteFailed(Failed):
    __str__ = Mute.__str__


class MuteNotExecuted(NotExecuted):
    __str__ = Mute.__str__


@pytest.mark.parametrize(
    ("error", "outcome"), [(Mute(), "unknown"), (MuteFailed(), "failed"), (MuteNotExecuted(), "not_executed")]
)
def test_an_exception_that_cannot_be_printed_gets_its_receipt(error: Exception, outcome: str):
    bench = Bench(say(PRICE), final())
    failing(bench, "set_price", 1, error)
    bench.drive()
    assert bench.outcome(1, 1) == outcome


class Changing(dict[str, object]):
    """As a dict that a thread of the tool still changes."""

    def items(self) -> ItemsView[str, object]:
        raise RuntimeError("dictionary changed size during iteration")


def test_an_answer_that_cannot_be_read_is_a_fault_of_the_result_and_the_call_is_confirmed():
    bench = Bench(say(PRICE), final())

    async def set_price(sku: int, price: int, context: Any) -> object:
        bench.shop.effect(f"price {sku}={price}", context)
        return Changing(ok=True)

    bench.shop.special["set_price"] = set_price
    bench.drive()
    receipt = bench.call(1, 1).receipt
    assert receipt is not None
    assert (receipt.outcome, bench.shop.ledger) == ("confirmed", ["price 1=5"])
    assert receipt.result is not None
    assert receipt.result.fault == "not_storable: reading it raised RuntimeError"


def test_nothing_done_the_second_time_says_nothing_of_the_first():
    """The first sending has its effect and its answer is lost; the sendings after it find no connection."""
    bench = Bench(say(PRICE), final(), tools=SAME_KEY)
    keys = failing(bench, "set_price", 1, RuntimeError("line dead"))
    first = bench.shop.special["set_price"]

    async def set_price(sku: int, price: int, context: Any) -> object:
        if keys:
            raise NotExecuted("no connection")
        return await first(sku=sku, price=price, context=context)  # type: ignore[misc]  # an async handler

    bench.shop.special["set_price"] = set_price
    bench.drive()
    assert bench.shop.ledger == ["price 1=5"]
    assert bench.status == "awaiting_reconciliation"
    receipt = bench.call(1, 1).receipt
    assert receipt is not None
    assert receipt.outcome == "unknown"
    assert receipt.detail == "sent again: no connection; of the time before nothing is known"
