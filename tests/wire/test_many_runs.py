"""Many Runs in one process: each for itself, their commits together, one stop for all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.adapters.memory_store import MemoryStore
from engine.adapters.sql_store import SqlStore
from engine.adapters.system_clock import SystemClock
from engine.domain import events as e
from engine.domain.actors import HOST
from engine.domain.errors import ClaimHeld, ClaimLost, Conflict, StoreError
from engine.domain.ids import RunId
from engine.domain.policy import ModelUse
from engine.ports import Append, Head, ModelRequest, ModelResponse, Owner, ProposedCall
from engine.runtime.audit import verify
from engine.runtime.commit_queue import CommitQueue
from engine.runtime.driver import Driven
from tests.wire.bench import CLERK, Bench, QuickClock, policy

LOOK = ProposedCall("get_stock", '{"item":"apples"}')
ORDER = ProposedCall("order", '{"item":"apples","count":1}')
FINISH = ProposedCall("finish", "{}")


class Slow:
    """A model that answers after `seconds`: two reads and an order, then the finish."""

    def __init__(self, seconds: float = 0.02) -> None:
        self.seconds = seconds
        self.now = self.most = 0

    async def propose(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelResponse:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.seconds)
        self.now -= 1
        calls = (LOOK, LOOK, ORDER) if request.turn == 1 else (FINISH,)
        return ModelResponse("m", calls=calls, finish="tool_calls")

    def price(self, model: ModelUse, input_tokens: int, output_tokens: int) -> Decimal:
        return Decimal(0)


def bench(store: Any, gateway: Any = None) -> Bench:
    return Bench(gateway or Slow(), policy(), store=store, clock=SystemClock())


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_runs_are_driven_side_by_side_and_each_log_is_its_own(kind: str, tmp_path: Path) -> None:
    store = MemoryStore() if kind == "memory" else SqlStore.open(str(tmp_path / "many.db"))
    many = bench(store)
    runs = [many.runtime.start(f"task {number}", principal=CLERK) for number in range(40)]
    ended = await many.runtime.drive_all(runs)
    assert set(ended) == set(runs)
    for run in runs:
        driven = ended[run]
        assert isinstance(driven, Driven)
        assert driven.state.status == "completed"
        assert verify(store, run).holds
        assert many.runtime.state(run).spent.turns == 2
    assert len(many.shop.ledger) == len(runs)
    store.close()


async def test_a_limit_holds_and_the_others_wait_for_their_turn() -> None:
    gateway = Slow()
    many = bench(MemoryStore(), gateway)
    runs = [many.runtime.start("task", principal=CLERK) for _ in range(12)]
    assert len(await many.runtime.drive_all(runs, at_once=3)) == 12
    assert gateway.most == 3


async def test_commits_of_many_runs_share_transactions(tmp_path: Path) -> None:
    store = SqlStore.open(str(tmp_path / "many.db"))
    batches: list[int] = []
    inner = store.append_all

    def counted(items: Any) -> Any:
        batches.append(len(items))
        return inner(items)

    store.append_all = counted  # type: ignore[method-assign]  # it counts what the store is asked for
    many = bench(store)
    runs = [many.runtime.start("task", principal=CLERK) for _ in range(50)]
    batches.clear()
    await many.runtime.drive_all(runs)
    assert sum(batches) >= 50 * 4
    assert len(batches) < sum(batches) / 3
    store.close()


async def test_claims_are_taken_renewed_and_given_back_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.runtime.claims.RENEW_EVERY", 0.1)
    store = SqlStore.open(str(tmp_path / "many.db"))
    asked: dict[str, list[int]] = {"claim_all": [], "renew_all": [], "release_all": []}

    def count(name: str) -> None:
        inner = getattr(store, name)

        def counted(items: Any, *more: Any) -> Any:
            asked[name].append(len(items))
            return inner(items, *more)

        setattr(store, name, counted)

    for name in asked:
        count(name)
    many = bench(store, Slow(0.4))
    runs = [many.runtime.start("task", principal=CLERK) for _ in range(50)]
    await many.runtime.drive_all(runs)
    assert asked["claim_all"] == [50]
    assert sum(asked["release_all"]) == 50
    assert len(asked["release_all"]) < 25
    assert max(asked["renew_all"]) == 50
    assert len(asked["renew_all"]) < 30
    store.close()


async def test_a_run_that_another_took_over_stops_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.runtime.claims.RENEW_EVERY", 0.05)
    store = MemoryStore()
    many = bench(store, Slow(0.3))
    stolen, *others = [many.runtime.start("task", principal=CLERK) for _ in range(5)]
    driving = asyncio.create_task(many.runtime.drive_all([stolen, *others]))
    await asyncio.sleep(0.1)
    later = SystemClock().now() + timedelta(minutes=1)
    newer = store.claim(stolen, Owner("elsewhere", 1, 1.0), later, timedelta(minutes=1))
    ended = await driving
    assert isinstance(ended[stolen], ClaimLost)
    assert all(isinstance(ended[run], Driven) for run in others)
    assert not many.runtime.state(stolen).terminal
    assert newer.epoch == 2
    assert all(event.claim_epoch < 2 for event in store.events(stolen))
    with pytest.raises(ClaimHeld):
        store.claim(stolen, Owner("third", 1, 1.0), SystemClock().now(), timedelta(minutes=1))


async def test_a_stop_while_runs_are_still_being_claimed_and_read_leaves_them_resumable() -> None:
    class Slowly(MemoryStore):
        def events(self, run: RunId, after: int = 0) -> Any:
            time.sleep(0.005)
            return super().events(run, after)

    many = bench(Slowly(), Slow(30))
    runs = [many.runtime.start("task", principal=CLERK) for _ in range(20)]
    driving = asyncio.create_task(many.runtime.drive_all(runs))
    await asyncio.sleep(0.02)
    many.runtime.stop()
    ended = await asyncio.wait_for(driving, 5)
    assert all(isinstance(one, Driven) and one.interrupted for one in ended.values())
    assert set(ended) == set(runs)
    assert len(many.store.claim_all(runs, Owner("x", 1, 1.0), SystemClock().now(), timedelta(1))) == 20


async def test_a_run_that_cannot_be_driven_takes_no_other_with_it() -> None:
    store = MemoryStore()
    first, second = bench(store, Slow(0.2)), bench(store)
    held = first.runtime.start("held", principal=CLERK)
    free = first.runtime.start("free", principal=CLERK)
    driving = asyncio.create_task(first.runtime.drive(held))
    await asyncio.sleep(0.05)
    ended = await second.runtime.drive_all([held, free])
    assert isinstance(ended[held], ClaimHeld)
    assert isinstance(ended[free], Driven)
    await driving


async def test_a_stop_leaves_every_run_resumable() -> None:
    many = bench(MemoryStore(), Slow(30))
    runs = [many.runtime.start("task", principal=CLERK) for _ in range(8)]
    driving = asyncio.create_task(many.runtime.drive_all(runs, at_once=4))
    await asyncio.sleep(0.1)
    many.runtime.stop()
    ended = await asyncio.wait_for(driving, 5)
    assert len(ended) == 4
    assert all(isinstance(one, Driven) and one.interrupted for one in ended.values())
    again = bench(many.store)
    resumed = await again.runtime.drive_all(runs)
    assert all(isinstance(one, Driven) and one.state.status == "completed" for one in resumed.values())


def alert(store: MemoryStore, run: RunId) -> Append:
    """One more event for a Run, after what is stored now."""
    head = store.head(run)
    assert head is not None
    body = e.OperatorAlerted(code="test", message="look")
    event = e.seal(run, head.seq + 1, QuickClock().now(), HOST, 0, body, head.hash)
    return Append(run, head.seq, [event])


async def test_one_append_of_a_batch_fails_by_itself() -> None:
    store = MemoryStore()
    one, two = (bench(store).runtime.start("task", principal=CLERK) for _ in range(2))
    queue = CommitQueue(store)
    stale = alert(store, one)
    store.append(alert(store, one))
    results = await asyncio.gather(
        queue.append(stale), queue.append(alert(store, two)), return_exceptions=True
    )
    await queue.close()
    assert isinstance(results[0], Conflict)
    assert results[1] is None
    assert (queue.appends.batches, queue.appends.items) == (1, 2)


async def test_a_store_that_is_lost_fails_every_append_of_its_batch() -> None:
    class Lost(MemoryStore):
        def append_all(self, items: Any) -> Any:
            raise StoreError("the disk is full", remedy="make room")

    store = MemoryStore()
    runs = [bench(store).runtime.start("task", principal=CLERK) for _ in range(2)]
    queue = CommitQueue(Lost())
    results = await asyncio.gather(*(queue.append(alert(store, run)) for run in runs), return_exceptions=True)
    await queue.close()
    assert [type(one) for one in results] == [StoreError, StoreError]


async def test_a_cancelled_append_is_durable_before_the_cancellation_is_seen() -> None:
    store = MemoryStore()
    run = bench(store).runtime.start("task", principal=CLERK)
    queue = CommitQueue(store)
    item = alert(store, run)
    task = asyncio.create_task(queue.append(item))
    await asyncio.sleep(0)
    task.cancel()
    results = await asyncio.gather(task, return_exceptions=True)
    await queue.close()
    assert isinstance(results[0], asyncio.CancelledError)
    assert store.head(run) == Head(item.events[-1].seq, item.events[-1].hash)
