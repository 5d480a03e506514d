"""Owns what the API says of tool calls: reads, writes and hybrids are three types, each with its own facts."""

from __future__ import annotations

from typing import Any

from engine.domain.calls import HybridCall, NotExecuted, Outcome, ReadCall, WriteCall
from tests.runtime.bench import TOOLS, Bench, final, say

READ = ("get_stock", {"sku": 1})
CACHED = TOOLS.replace(
    '    description: "How many are there."',
    '    description: "How many are there."\n    cache: {ttl: 1h, key: [sku]}',
)


def test_calls_are_typed_by_their_kind_and_ordered_by_their_place():
    bench = Bench(
        say(READ, ("set_price", {"sku": 1, "price": 2}), ("nothing", {})),
        say(("reserve", {"sku": 3}), ("send_letter", {"to": "x"})),
        final(),
    )
    bench.drive()
    bench.approve(2, 2)
    bench.drive()
    calls = bench.runtime().calls(bench.run)
    assert [(str(call.id), type(call)) for call in calls] == [
        ("1.1", ReadCall), ("1.2", WriteCall), ("2.1", HybridCall), ("2.2", WriteCall),
    ]  # fmt: skip
    read, price, hold, letter = calls
    assert isinstance(read, ReadCall)
    assert (read.result, read.cached_at) == ({"left": 10, "level": "L1"}, None)
    assert isinstance(price, WriteCall)
    assert str(price.approved_by).startswith("rule rooms of policy ")
    assert price.executed_at == bench.of_kind("ExecutionStarted")[1].recorded_at
    assert isinstance(hold, HybridCall)
    assert (hold.side_effects, hold.reversible) == (("stock.hold",), True)
    assert isinstance(letter, WriteCall)
    assert letter.approved_by == "lead1"


def test_a_cached_read_says_when_its_answer_was_obtained():
    bench = Bench(say(READ), say(READ), final(), tools=CACHED)
    bench.drive()
    first, second = bench.runtime().calls(bench.run)
    assert isinstance(first, ReadCall)
    assert isinstance(second, ReadCall)
    assert first.cached_at is None
    assert second.cached_at == bench.call(1, 1).receipt.at
    assert second.result == first.result


def test_a_hybrid_that_did_nothing_has_no_side_effects():
    bench = Bench(say(("reserve", {"sku": 1})), final())

    async def reserve(sku: int, context: Any) -> object:
        raise NotExecuted("sold out")

    bench.shop.special["reserve"] = reserve
    bench.drive()
    (call,) = bench.runtime().calls(bench.run)
    assert isinstance(call, HybridCall)
    assert (call.outcome, call.side_effects) == (Outcome.NOT_EXECUTED, ())


def test_an_open_call_has_no_outcome_and_a_large_result_is_read():
    bench = Bench(say(READ), say(("send_letter", {"to": "x"})), final())

    async def get_stock(sku: int) -> object:
        return {"left": 1, "level": "L" * 200_000}

    bench.shop.special["get_stock"] = get_stock
    bench.drive()
    read, letter = bench.runtime().calls(bench.run)
    assert len(read.result["level"]) == 200_000  # type: ignore[index,call-overload]
    assert letter.outcome is None
