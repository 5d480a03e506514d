"""Who may write when: one driver, people at any time, reads side by side, writes one after the other."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.adapters.function_tools import FunctionTools
from engine.adapters.processes import this_process
from engine.adapters.scripted_gateway import ScriptedGateway
from engine.domain.errors import ClaimHeld, ClaimLost, Conflict
from engine.lifecycle.steps import Stop, Wait
from engine.ports import Append, AttemptFailed, Owner
from engine.runtime.runtime import Parts, Runtime
from tests.runtime.bench import ME, TOOLS, Bench, Shop, final, say, sqlite

STOCK = ("get_stock", {"sku": 1})
LETTER = ("send_letter", {"to": "a"})
ELSEWHERE = Owner("another-host", 1, 0.0, "another worker")


def room(n: int) -> tuple[str, Any]:
    return ("book_room", {"room": n})


# --- one driver -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("disk", [False, True])
def test_a_second_driver_is_refused_while_a_claim_lives(disk: bool, tmp_path: Path):
    bench = Bench(say(STOCK), final(), store=sqlite(tmp_path) if disk else None)
    claim = bench.store.claim(bench.run, ELSEWHERE, bench.clock.now(), timedelta(seconds=15))
    seq = bench.state.seq
    with pytest.raises(ClaimHeld, match="another-host"):
        bench.drive()
    assert bench.state.seq == seq
    bench.store.release(claim)
    bench.drive()
    assert bench.status == "completed"


def test_a_claim_that_nobody_renews_lapses():
    bench = Bench(final())
    bench.store.claim(bench.run, ELSEWHERE, bench.clock.now(), timedelta(seconds=15))
    bench.clock.advance(seconds=15)
    bench.drive()
    assert bench.status == "completed"


@pytest.mark.parametrize("disk", [False, True])
def test_a_driver_that_was_taken_over_appends_nothing_more(disk: bool, tmp_path: Path):
    """It stops with ClaimLost, and what the other one recorded stays."""
    bench = Bench(say(STOCK), final(), store=sqlite(tmp_path) if disk else None)
    taken: list[int] = []

    async def slow(sku: int) -> object:
        bench.shop.reads.append("x")
        if not taken:
            bench.clock.advance(seconds=60)
            claim = bench.store.claim(bench.run, ELSEWHERE, bench.clock.now(), timedelta(seconds=15))
            taken.append(claim.epoch)
        return {"left": 1, "level": "L"}

    bench.shop.special["get_stock"] = slow
    seq_then: list[int] = []

    def point(where: str) -> None:
        if where == "after effect":
            seq_then.append(bench.log[-1].seq)

    with pytest.raises(ClaimLost):
        bench.drive(point)
    assert bench.log[-1].seq == seq_then[0]
    bench.clock.advance(seconds=60)
    bench.drive()
    assert bench.status == "completed"
    assert {event.claim_epoch for event in bench.log} == {0, 1, 3}
    bench.verified()


def test_a_run_that_waits_holds_no_claim():
    bench = Bench(say(LETTER))
    driven = bench.drive()
    assert isinstance(driven.step, Wait)
    bench.store.claim(bench.run, ELSEWHERE, bench.clock.now(), timedelta(seconds=15))


# --- people while a driver works ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("look_after")
def test_a_closed_turn_is_kept_when_somebody_spoke_during_the_model_call():
    """The response was paid for and is a fact; what followed from it is decided again."""

    def asked(request: Any) -> Any:
        bench.reply("also this")
        return say(STOCK)

    bench = Bench(asked, final())
    bench.drive()
    assert bench.kinds.count("ModelTurnRecorded") == 2
    assert not bench.of_kind("ModelAttemptFailed")
    heard = [message.text for message in bench.requests[-1].messages if type(message).__name__ == "UserInput"]
    assert heard == ["please", "also this"]
    assert bench.status == "completed"


@pytest.mark.usefixtures("look_after")
@pytest.mark.parametrize("times", [1, 2, 5])
def test_receipts_are_kept_when_somebody_spoke_meanwhile(times: int):
    bench = Bench(say(room(1)), final())

    async def book_room(room: int, context: Any) -> object:
        bench.shop.effect(f"room {room}", context)
        for n in range(times):
            bench.reply(f"and {n}")
        return {"booking": "B"}

    bench.shop.special["book_room"] = book_room
    bench.drive()
    assert bench.outcomes(1) == ["confirmed"]
    assert bench.shop.ledger == ["room 1"]
    assert len(bench.of_kind("ReceiptRecorded")) == 1
    bench.verified()


def test_a_driver_whose_every_append_meets_a_newer_log_still_gets_on():
    """Somebody speaks right before each of the first appends: nothing is lost, nothing happens twice."""
    bench = Bench(say(room(1), STOCK), say(room(2)), final())
    spoken: list[int] = []

    def point(where: str) -> None:
        if where == "before append" and len(spoken) < 12:
            spoken.append(len(spoken))
            if len(spoken) % 2:
                bench.reply(f"word {len(spoken)}")

    bench.drive(point)
    assert sorted(bench.shop.ledger) == ["room 1", "room 2"]
    assert [event.body.call for event in bench.of_kind("ReceiptRecorded")] == [(1, 1), (1, 2), (2, 1)]
    assert bench.status == "completed"
    bench.verified()


@pytest.mark.usefixtures("look_after")
def test_a_policy_loaded_during_the_model_call_fences_what_was_proposed_before():
    from tests.runtime.bench import POLICY

    def asked(request: Any) -> Any:
        bench.load(POLICY.replace("version: 1", "version: 2"))
        return say(room(1), ("finish", {}))

    bench = Bench(asked, final())
    bench.drive()
    assert bench.outcomes(1) == ["fenced", "fenced"]
    assert bench.shop.ledger == []


def test_a_permission_that_moves_while_a_write_is_queued_fences_the_queued_one_only():
    bench = Bench(say(LETTER, room(1)), final())
    bench.drive()
    assert bench.outcomes(1) == ["held", "held"]
    bench.source("papers", "degraded")
    bench.drive()
    assert bench.outcomes(1) == ["held", "fenced"]
    bench.approve(1, 1)
    bench.drive()
    assert bench.shop.ledger == ["letter a"]
    assert bench.status == "completed"


def test_an_append_of_people_names_the_log_it_saw():
    """Two people at once: one wins, the other sees what was said and decides again."""
    bench = Bench(say(text="?"))
    bench.drive()
    event = bench.log[-1]
    with pytest.raises(Conflict):
        bench.store.append(Append(bench.run, event.seq - 1, [event]))


# --- stop, cancel, time-out ---------------------------------------------------------------------------------------


async def test_a_stop_during_the_model_call_leaves_the_run_resumable():
    asked = asyncio.Event()

    class Slow:
        def __init__(self) -> None:
            self.fast = ScriptedGateway.from_turns([final()])

        async def propose(self, request: Any, on_text: Any = None) -> Any:
            if request.attempt == 1:
                asked.set()
                await asyncio.sleep(60)
            return await self.fast.propose(request, on_text)

        def price(self, model: Any, input_tokens: int, output_tokens: int) -> Any:
            return self.fast.price(model, input_tokens, output_tokens)

    bench = Bench(gateway=Slow())
    runtime = bench.runtime()
    driven = asyncio.create_task(runtime.drive(bench.run))
    await asked.wait()
    runtime.stop()
    ended = await asyncio.wait_for(driven, 5)
    assert ended.interrupted
    assert bench.kinds[-1] == "ModelAttemptFailed"
    assert bench.status == "proposing"
    await bench.adrive()
    assert bench.status == "completed"


async def test_a_stop_gives_a_running_write_time_to_answer():
    running, release = asyncio.Event(), asyncio.Event()
    bench = Bench(say(room(1), room(2)), final())

    async def book_room(room: int, context: Any) -> object:
        running.set()
        await release.wait()
        bench.shop.effect(f"room {room}", context)
        return {}

    bench.shop.special["book_room"] = book_room
    runtime = bench.runtime()
    driven = asyncio.create_task(runtime.drive(bench.run))
    await running.wait()
    runtime.stop()
    await asyncio.sleep(0)
    release.set()
    ended = await asyncio.wait_for(driven, 5)
    assert ended.interrupted
    assert bench.outcomes(1) == ["confirmed", "proposed"]
    await bench.adrive()
    assert bench.shop.ledger == ["room 1", "room 2"]
    assert bench.status == "completed"


async def test_a_stop_that_a_write_outlives_leaves_it_unknown_never_repeated(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("engine.runtime.sending.GRACE", 0.01)
    running = asyncio.Event()
    bench = Bench(say(("set_price", {"sku": 1, "price": 2})), final())
    sent: list[int] = []

    async def set_price(sku: int, price: int, context: Any) -> object:
        sent.append(price)
        running.set()
        await asyncio.sleep(60)
        return {}

    bench.shop.special["set_price"] = set_price
    runtime = bench.runtime()
    driven = asyncio.create_task(runtime.drive(bench.run))
    await running.wait()
    runtime.stop()
    assert (await asyncio.wait_for(driven, 5)).interrupted
    assert not bench.state.terminal
    await bench.adrive()
    assert bench.outcomes(1) == ["unknown"]
    assert sent == [2]
    assert bench.status == "awaiting_reconciliation"


async def test_a_stop_during_a_back_off_does_not_wait_it_out():
    waiting = asyncio.Event()

    def fails(request: Any) -> Any:
        raise AttemptFailed("unavailable", "down")

    bench = Bench(fails)

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.sleep(60)

    bench.clock.sleep = sleep  # type: ignore[method-assign]  # this clock really waits
    runtime = bench.runtime()
    driven = asyncio.create_task(runtime.drive(bench.run))
    await waiting.wait()
    runtime.stop()
    ended = await asyncio.wait_for(driven, 5)
    assert ended.interrupted
    assert bench.status == "proposing"


async def test_a_drive_that_its_caller_cancels_gives_its_claim_back():
    running = asyncio.Event()
    bench = Bench(say(STOCK), final())

    async def slow(sku: int) -> object:
        running.set()
        await asyncio.sleep(60)
        return {}

    bench.shop.special["get_stock"] = slow
    driven = asyncio.create_task(bench.runtime().drive(bench.run))
    await running.wait()
    driven.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driven
    del bench.shop.special["get_stock"]
    await bench.adrive()
    assert bench.status == "completed"


def test_stop_cancel_and_time_out_are_three_different_things():
    """A stop writes no event of its own; a cancel is asked for and ends the Run; a time-out is a receipt."""
    tools = TOOLS.replace('"How many are there."', '"How many are there."\n    timeout: 1s')

    async def hangs(sku: int) -> object:
        await asyncio.sleep(60)
        return {}

    late = Bench(say(STOCK), final(), tools=tools)
    late.shop.special["get_stock"] = hangs
    late.drive()
    assert late.outcomes(1) == ["failed"]
    cancelled = Bench(say(LETTER))
    cancelled.drive()
    cancelled.cancel()
    cancelled.drive()
    assert cancelled.kinds[-1] == "RunCancelled"
    assert "CancelRequested" in cancelled.kinds
    unreachable = Bench(lambda request: (_ for _ in ()).throw(AttemptFailed("auth", "no key")))
    assert isinstance(unreachable.drive().step, Stop)
    assert not unreachable.state.terminal


# --- reads and writes ---------------------------------------------------------------------------------------------


def test_reads_of_one_response_run_side_by_side():
    """Each waits until all three have started; the last answers first, and the receipts stand in order."""
    bench = Bench(say(*[("get_stock", {"sku": n}) for n in (1, 2, 3)]), final())
    barrier: list[asyncio.Barrier] = []

    async def get_stock(sku: int) -> object:
        if not barrier:
            barrier.append(asyncio.Barrier(3))
        await asyncio.wait_for(barrier[0].wait(), 5)
        for _ in range(10 - 3 * sku):
            await asyncio.sleep(0)
        bench.shop.reads.append(str(sku))
        return {"left": sku, "level": f"L{sku}"}

    bench.shop.special["get_stock"] = get_stock
    bench.drive()
    assert bench.shop.reads == ["3", "2", "1"]
    assert [event.body.call for event in bench.of_kind("ReceiptRecorded")] == [(1, 1), (1, 2), (1, 3)]
    assert [item.item.id for item in bench.state.evidence.values()] == ["L1", "L2", "L3"]


def test_plain_functions_run_side_by_side_too():
    import threading

    bench = Bench(say(*[("get_stock", {"sku": n}) for n in (1, 2)]), final())
    barrier = threading.Barrier(2)

    def get_stock(sku: int) -> object:
        barrier.wait(timeout=5)
        return {"left": sku}

    bench.shop.special["get_stock"] = get_stock
    bench.drive()
    assert bench.outcomes(1) == ["confirmed", "confirmed"]


def test_writes_of_one_response_run_one_after_the_other_in_order():
    bench = Bench(say(room(3), room(1), room(2)), final())
    running: list[int] = []

    async def book_room(room: int, context: Any) -> object:
        assert not running
        running.append(room)
        for _ in range(5):
            await asyncio.sleep(0)
        running.remove(room)
        bench.shop.effect(f"room {room}", context)
        return {}

    bench.shop.special["book_room"] = book_room
    bench.drive()
    assert bench.shop.ledger == ["room 3", "room 1", "room 2"]
    kinds = [kind for kind in bench.kinds if kind in ("ExecutionStarted", "ReceiptRecorded")]
    assert kinds == ["ExecutionStarted", "ReceiptRecorded"] * 3


def test_a_read_after_a_write_sees_what_the_write_did():
    bench = Bench(say(room(1), STOCK, room(2)), final())
    seen: list[list[str]] = []

    async def get_stock(sku: int) -> object:
        seen.append(list(bench.shop.ledger))
        return {"left": 1, "level": "L"}

    bench.shop.special["get_stock"] = get_stock
    bench.drive()
    assert seen == [["room 1"]]
    assert bench.shop.ledger == ["room 1", "room 2"]


def test_nothing_is_sent_before_its_start_is_durable():
    bench = Bench(say(room(1), STOCK), final())

    async def durable(*args: Any, **kwargs: Any) -> object:
        started = [event.body.tool for event in bench.of_kind("ExecutionStarted")]
        receipts = [event.body.tool for event in bench.of_kind("ReceiptRecorded")]
        assert len(started) == len(receipts) + 1
        return {}

    async def book_room(room: int, context: Any) -> object:
        return await durable()

    async def get_stock(sku: int) -> object:
        return await durable()

    bench.shop.special.update(book_room=book_room, get_stock=get_stock)
    bench.drive()
    assert bench.outcomes(1) == ["confirmed", "confirmed"]


# --- a Run whose policy is gone -------------------------------------------------------------------------------------


def test_a_run_whose_policy_no_longer_compiles_says_so_and_stays(monkeypatch: pytest.MonkeyPatch):
    from engine.domain.errors import PolicyInvalid
    from engine.policy.compiler import compile_policy

    bench = Bench(say(text="?"), final())
    bench.drive()
    bench.reply("go on")
    broken = compile_policy("shop.policy.yaml", {"shop.policy.yaml": "agentctl: policy/v9\n"})
    monkeypatch.setattr("engine.runtime.library.compile_policy", lambda file, files: broken)
    parts = Parts(
        store=bench.store, gateway=bench.gateway, executor=FunctionTools(Shop().handlers()), clock=bench.clock,
        owner=this_process("other"), model="scripted/test",
    )  # fmt: skip
    other = Runtime(parts)
    with pytest.raises(PolicyInvalid) as refused:
        asyncio.run(other.drive(bench.run))
    assert refused.value.diagnostics
    assert not bench.state.terminal
    monkeypatch.undo()
    bench.drive()
    assert bench.status == "completed"


def test_people_can_be_told_apart_from_the_host_in_the_log():
    bench = Bench(say(STOCK), final())
    bench.drive()
    actors = {event.kind: event.actor.type for event in bench.log}
    assert actors["InputReceived"] == "person"
    assert actors["ModelTurnRecorded"] == "model"
    assert {actors[kind] for kind in ("ExecutionStarted", "ReceiptRecorded", "RunCompleted")} == {"host"}
    assert bench.log[1].actor.id == ME.id
