"""Owns the promise about handlers that are given up: while the process lives, the Host records what they answer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.adapters.sql_store import SqlStore
from engine.domain.calls import Failed, NotExecuted
from engine.domain.errors import ClaimLost, StoreError
from engine.domain.ids import CallId
from engine.ports import Append, Owner
from engine.runtime.claims import CLAIM_TTL
from engine.runtime.replay import replay
from tests.durable.test_reconciliation import failing
from tests.runtime.bench import TOOLS, Bench, final, say, sqlite

FIRST = CallId(1, 1)
PRICE = ("set_price", {"sku": 1, "price": 5})
ROOM = ("book_room", {"room": 1})
QUICK = TOOLS.replace('"Change one price."\n', '"Change one price."\n    timeout: 1s\n').replace(
    '"Book one room."\n', '"Book one room."\n    timeout: 1s\n'
)


class Slow:
    """A plain handler that does its work only when it is told to."""

    def __init__(self, bench: Bench, tool: str, answer: object = None) -> None:
        self.bench = bench
        self.go = threading.Event()
        self.began = threading.Event()
        self.answer = {"ok": True} if answer is None else answer
        bench.shop.special[tool] = getattr(self, tool)

    def set_price(self, sku: int, price: int, context: Any) -> object:
        return self._work(f"price {sku}={price}", context)

    def book_room(self, room: int, context: Any) -> object:
        return self._work(f"room {room}", context)

    def _work(self, what: str, context: Any) -> object:
        self.began.set()
        assert self.go.wait(60)
        if isinstance(self.answer, BaseException):
            raise self.answer
        self.bench.shop.effect(what, context)
        return self.answer


@pytest.fixture
def sql(tmp_path: Path) -> SqlStore:
    return sqlite(tmp_path)


def until(true: Callable[[], object], seconds: float = 30) -> None:
    give_up = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < give_up, "it never came"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [({"ok": True}, "confirmed"), (Failed("no"), "failed"), (NotExecuted("no"), "not_executed")],
)
def test_what_a_handler_answers_after_its_time_is_recorded_as_late(
    answer: object, outcome: str, sql: SqlStore
):
    bench = Bench(say(PRICE), final(), tools=QUICK, store=sql)
    slow = Slow(bench, "set_price", answer)
    bench.drive()
    assert (bench.outcome(1, 1), bench.status) == ("unknown", "awaiting_reconciliation")
    slow.go.set()
    until(lambda: bench.outcome(1, 1) == outcome)
    receipt = bench.call(1, 1).receipt
    assert receipt is not None
    assert (receipt.late, receipt.settled_by) == (True, "tool")
    event = bench.of_kind("ReceiptRecorded")[-1]
    assert (event.actor.type, event.claim_epoch) == ("host", 0)
    bench.drive()
    assert bench.status == "completed"
    bench.verified()
    assert not replay(bench.store, bench.runtime().library, bench.run).differences


def test_a_run_that_is_driven_meanwhile_hears_of_it(sql: SqlStore):
    bench = Bench(say(PRICE), say(PRICE, ("ping", {})), final(), tools=QUICK, store=sql)
    slow = Slow(bench, "set_price")

    async def ping() -> object:
        slow.go.set()
        await asyncio.to_thread(until, lambda: bench.outcome(1, 1) == "confirmed")
        return "pong"

    bench.shop.special["ping"] = ping
    bench.drive()
    assert bench.status == "completed"
    assert (bench.outcome(1, 1), bench.outcome(2, 1)) == ("confirmed", "not_executed")
    assert bench.shop.ledger == ["price 1=5"]


def test_an_answer_waits_until_its_driver_has_let_go_of_the_call(sql: SqlStore):
    """Before `unknown` is durable it would be overwritten by it."""
    bench = Bench(say(PRICE), final(), store=sql)
    failing(bench, "set_price", 1, RuntimeError("line dead"))
    runtime = bench.runtime()
    asyncio.run(runtime.drive(bench.run))
    expected = runtime._late.expect(bench.run, bench.of_kind("ExecutionStarted")[-1].body)  # type: ignore[arg-type]  # such a body
    assert expected is not None
    threading.Thread(target=expected.answered, args=({"ok": True},), daemon=True).start()
    time.sleep(0.1)
    assert bench.outcome(1, 1) == "unknown"
    expected.let_go()
    until(lambda: bench.outcome(1, 1) == "confirmed")


def test_an_error_that_comes_late_leaves_the_outcome_unknown(sql: SqlStore):
    bench = Bench(say(PRICE), final(), tools=QUICK, store=sql)
    slow = Slow(bench, "set_price", RuntimeError("line dead"))
    runtime = bench.runtime()
    asyncio.run(runtime.drive(bench.run))
    assert runtime._late.at_work(bench.run, FIRST)
    slow.go.set()
    until(lambda: not runtime._late.at_work(bench.run, FIRST))
    assert bench.outcome(1, 1) == "unknown"


def test_what_comes_after_the_runtime_is_closed_is_not_recorded(sql: SqlStore):
    bench = Bench(say(PRICE), final(), tools=QUICK, store=sql)
    slow = Slow(bench, "set_price")
    runtime = bench.runtime()
    asyncio.run(runtime.drive(bench.run))
    runtime.close()
    slow.go.set()
    until(lambda: not runtime._late.at_work(bench.run, FIRST))
    assert bench.outcome(1, 1) == "unknown"


def test_what_a_handler_answers_after_a_stop_settles_the_call(sql: SqlStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("engine.runtime.sending.GRACE", 0.01)
    bench = Bench(say(PRICE), final(), store=sql)
    slow = Slow(bench, "set_price")
    runtime = bench.runtime()

    async def stopped() -> None:
        drive = asyncio.create_task(runtime.drive(bench.run))
        await asyncio.to_thread(slow.began.wait)
        runtime.stop()
        await drive

    asyncio.run(stopped())
    assert bench.call(1, 1).receipt is None
    slow.go.set()
    until(lambda: bench.outcome(1, 1) == "confirmed")
    bench.drive()
    assert (bench.status, bench.shop.ledger) == ("completed", ["price 1=5"])


def test_absence_proves_nothing_while_the_handler_still_runs(sql: SqlStore):
    """The probe finds no room long after the request could have arrived: the handler has not sent it yet."""
    bench = Bench(say(ROOM), final(), tools=QUICK, store=sql)
    slow = Slow(bench, "book_room")
    runtime = bench.runtime()
    asyncio.run(runtime.drive(bench.run))
    for _ in range(4):
        bench.clock.advance(minutes=10)
        asyncio.run(runtime.drive(bench.run))
        assert bench.outcome(1, 1) == "unknown"
    assert not replay(bench.store, bench.runtime().library, bench.run).differences
    slow.go.set()
    until(lambda: bench.outcome(1, 1) == "confirmed")
    asyncio.run(runtime.drive(bench.run))
    assert (bench.status, bench.shop.ledger) == ("completed", ["room 1"])


def test_absence_counts_once_the_handler_is_no_more(sql: SqlStore):
    bench = Bench(say(ROOM), final(), tools=QUICK, store=sql)
    slow = Slow(bench, "book_room", RuntimeError("line dead"))
    runtime = bench.runtime()
    asyncio.run(runtime.drive(bench.run))
    slow.go.set()
    until(lambda: not runtime._late.at_work(bench.run, FIRST))
    bench.clock.advance(minutes=10)
    asyncio.run(runtime.drive(bench.run))
    assert bench.outcome(1, 1) == "not_executed"


# --- receipts whose driver cannot append them -----------------------------------------------------------------


def taking_over(bench: Bench, effect: str) -> None:
    """While the handler works, somebody else takes the Run over: its driver was paused for too long."""

    async def set_price(sku: int, price: int, context: Any) -> object:
        bench.shop.effect(effect, context)
        bench.clock.advance(minutes=1)
        bench.store.claim(bench.run, Owner("elsewhere", 1, 0.0, "other"), bench.clock.now(), CLAIM_TTL)
        return {"ok": True}

    bench.shop.special["set_price"] = set_price


def test_the_answer_of_a_driver_that_lost_its_claim_is_not_lost():
    """dbos-inc/dbos-transact-py#742: the old owner appends nothing as a driver, and its answer settles the call."""
    bench = Bench(say(PRICE), final())
    taking_over(bench, "price 1=5")
    with pytest.raises(ClaimLost):
        bench.drive()
    receipt = bench.call(1, 1).receipt
    assert receipt is not None
    assert (receipt.outcome, receipt.late) == ("confirmed", True)
    bench.clock.advance(minutes=1)
    bench.drive()
    assert (bench.status, bench.shop.ledger) == ("completed", ["price 1=5"])
    bench.verified()


class Unreachable(SqlStore):
    """Refuses appends for a while."""

    refuse = 0

    def append(self, item: Append) -> None:
        if any(event.kind == "ReceiptRecorded" for event in item.events) and self.refuse:
            self.refuse -= 1
            raise StoreError("the database is away", remedy="wait")
        super().append(item)


def test_a_receipt_that_a_store_out_of_reach_refused_is_recorded_when_it_is_back(tmp_path: Path):
    store = Unreachable.open(str(tmp_path / "runs.db"))
    assert isinstance(store, Unreachable)
    bench = Bench(say(PRICE), final(), store=store)
    store.refuse = 2
    with pytest.raises(StoreError):
        bench.drive()
    until(lambda: bench.outcome(1, 1) == "confirmed")
    bench.drive()
    assert (bench.status, bench.shop.ledger) == ("completed", ["price 1=5"])


# --- cancelled from outside -------------------------------------------------------------------------------------


def test_a_drive_that_is_cancelled_keeps_the_receipts_that_it_has():
    tools = TOOLS.replace("    effects: [price.set]\n", "    effects: [price.set]\n    serialize_by: [sku]\n")
    bench = Bench(say(PRICE, ("set_price", {"sku": 2, "price": 5})), final(), tools=tools)
    both = asyncio.Event()

    async def set_price(sku: int, price: int, context: Any) -> object:
        bench.shop.effect(f"price {sku}={price}", context)
        if sku == 2:
            both.set()
            await asyncio.sleep(60)
        return {}

    bench.shop.special["set_price"] = set_price

    async def cancelled() -> None:
        drive = asyncio.create_task(bench.adrive())
        await both.wait()
        drive.cancel()
        with pytest.raises(asyncio.CancelledError):
            await drive

    asyncio.run(cancelled())
    bench.drive()
    assert (bench.outcome(1, 1), bench.outcome(1, 2)) == ("confirmed", "unknown")
