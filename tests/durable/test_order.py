"""Owns the promises of order: writes one at a time unless they touch different things, each call in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from engine.domain.ids import CallId
from tests.runtime.bench import POLICY, TOOLS, Bench, Crash, Shop, final, say

LINES = (
    TOOLS
    + """
  set_line:
    kind: write
    handler: "python:shop:set_line"
    description: "Set one line of a document."
    params: {doc: {type: id}, n: {type: int, min: 1, max: 9}, text: {type: id}}
    effects: [line.set]
    idempotency: {key: [call.id]}
    reconcile: {manual: "Read the document"}
  read_doc: {kind: read, handler: "python:shop:read_doc", description: "Read.", params: {doc: {type: id}}}
"""
)
SCOPED = LINES.replace("    effects: [line.set]\n", "    effects: [line.set]\n    serialize_by: [doc]\n")
RULES = POLICY.replace("tools: [get_stock, ping]", "tools: [get_stock, ping, read_doc]").replace(
    "tools: [book_room, reserve, set_price]", "tools: [book_room, reserve, set_price, set_line]"
)


class Desk(Shop):
    """Documents that are read, changed and written back, slowly, as an editor does; and what ran beside what."""

    def __init__(self) -> None:
        super().__init__()
        self.docs: dict[str, dict[int, str]] = {}
        self.running: list[str] = []
        self.beside: set[frozenset[str]] = set()
        self.done: list[str] = []

    async def set_line(self, doc: str, n: int, text: str, context: Any) -> object:
        name = f"{doc}{n}"
        self.beside |= {frozenset({name, other}) for other in self.running}
        self.running.append(name)
        before = dict(self.docs.get(doc, {}))
        await asyncio.sleep(0.01 * (4 - n))
        self.docs[doc] = {**before, n: text}
        self.running.remove(name)
        self.done.append(name)
        self.effect(name, context)
        return {"set": name}

    async def read_doc(self, doc: str) -> object:
        self.done.append(f"read {doc}")
        return {"lines": len(self.docs.get(doc, {}))}

    def handlers(self) -> Any:
        return {**super().handlers(), "set_line": self.set_line, "read_doc": self.read_doc}


def line(doc: str, n: int, text: str = "x") -> tuple[str, Any]:
    return ("set_line", {"doc": doc, "n": n, "text": text})


def edits(*calls: Any, tools: str = SCOPED, policy: str = RULES) -> Bench:
    bench = Bench(say(*calls), final(), policy=policy, tools=tools, shop=Desk())
    bench.drive()
    return bench


def desk(bench: Bench) -> Desk:
    assert isinstance(bench.shop, Desk)
    return bench.shop


@pytest.mark.parametrize("tools", [LINES, SCOPED], ids=["default", "serialize_by"])
def test_two_edits_of_one_document_in_one_response_are_both_there(tools: str):
    """vybestack/llxprt-code#3239: read-modify-write of one object never overlaps."""
    bench = edits(line("D", 1), line("D", 2), line("E", 1), ("read_doc", {"doc": "D"}), tools=tools)
    assert desk(bench).docs == {"D": {1: "x", 2: "x"}, "E": {1: "x"}}
    assert frozenset({"D1", "D2"}) not in desk(bench).beside
    assert desk(bench).done[-1] == "read D"
    assert bench.state.calls[CallId(1, 4)].receipt.result.value == {"lines": 2}  # type: ignore[union-attr]
    assert bench.outcomes(1) == ["confirmed"] * 4


def test_writes_run_one_at_a_time_by_default():
    bench = edits(line("D", 1), line("E", 1), line("F", 1), tools=LINES)
    assert desk(bench).beside == set()
    assert desk(bench).done == ["D1", "E1", "F1"]


def test_writes_of_different_scopes_may_overlap_and_their_receipts_stand_in_order():
    bench = edits(line("D", 1), line("E", 2), line("F", 3))
    assert desk(bench).beside == {frozenset(pair) for pair in (("D1", "E2"), ("D1", "F3"), ("E2", "F3"))}
    assert desk(bench).done == ["F3", "E2", "D1"]
    receipts = [event.body.call.ordinal for event in bench.of_kind("ReceiptRecorded")]
    assert receipts == [1, 2, 3]


def test_a_read_or_another_write_between_them_keeps_its_place():
    bench = edits(
        line("D", 1), ("read_doc", {"doc": "E"}), line("E", 1), ("book_room", {"room": 1}), line("F", 1)
    )
    assert desk(bench).beside == set()
    assert desk(bench).done == ["D1", "read E", "E1", "F1"]


def test_overlapping_writes_do_not_use_a_budget_twice():
    policy = RULES.replace("max_per_run: 50", "max_per_run: 2")
    bench = edits(line("D", 1), line("E", 1), line("F", 1), policy=policy)
    assert bench.outcomes(1) == ["confirmed", "confirmed", "rejected"]
    per_tool = RULES.replace("calls: {total: 60}", "calls: {total: 60, per_tool: {set_line: 2}}")
    bench = edits(line("D", 1), line("E", 1), line("F", 1), policy=per_tool)
    assert bench.outcomes(1) == ["confirmed", "confirmed", "rejected"]


def test_equal_keys_never_overlap():
    tools = SCOPED.replace(
        "serialize_by: [doc]\n    idempotency: {key: [call.id]}",
        "serialize_by: [doc]\n    idempotency: {key: [text]}",
    )
    bench = edits(line("D", 1), line("E", 1), tools=tools)
    assert desk(bench).beside == set()
    assert len(bench.shop.ledger) == 2


@pytest.mark.parametrize("seen", [1, 2])
def test_a_process_that_dies_among_overlapping_writes_repeats_none(seen: int):
    bench = Bench(
        say(line("D", 1), line("E", 2), line("F", 3)), final(), policy=RULES, tools=SCOPED, shop=Desk()
    )

    def crash(where: str) -> None:
        if where == ("before effect", "after effect")[seen - 1]:
            raise Crash(where)

    with pytest.raises(Crash):
        bench.drive(crash)
    before = list(bench.shop.ledger)
    bench.drive()
    assert bench.shop.ledger == before
    assert bench.outcomes(1) == ["unknown"] * 3
    assert bench.status == "awaiting_reconciliation"


def test_answers_that_come_in_another_order_stay_with_their_calls():
    """zoedsoupe/anubis-mcp#143: an answer belongs to the call that was sent, whatever the order of the answers."""

    async def slowest_first(sku: int) -> object:
        await asyncio.sleep(0.01 * (5 - sku))
        return {"left": sku, "level": f"L{sku}"}

    bench = Bench(say(*[("get_stock", {"sku": sku}) for sku in (1, 2, 3, 4)]), final())
    bench.shop.special["get_stock"] = slowest_first
    bench.drive()
    found: Sequence[Any] = [bench.call(1, n).receipt.result.value["left"] for n in (1, 2, 3, 4)]
    assert found == [1, 2, 3, 4]
