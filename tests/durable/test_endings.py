"""Owns the promises of the end: each way to stop is another fact, what was done is undone or named, in order."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from engine.domain.calls import Failed, NotExecuted, Outcome
from engine.domain.errors import Refused
from engine.domain.ids import CallId
from engine.runtime.reconcile import Finding
from tests.durable.shop import person
from tests.runtime.bench import ME, TOOLS, Bench, Crash, final, one_result_per_proposal, say, with_lines

ROOM = ("book_room", {"room": 1})
LETTER = ("send_letter", {"to": "x"})
ASK = ("ask_user", {"question": "?"})
THREE = say(*[("reserve", {"sku": sku}) for sku in (1, 2, 3)])
PROBED = TOOLS.replace(
    '    idempotency: {key: [call.id]}\n    reconcile: {manual: "Look at the holds"}\n    compensate',
    "    idempotency: {key: [call.id]}\n    reconcile: {probe: find_booking, args: {key: idempotency_key}, "
    'confirms: "result.found", refutes: "!result.found"}\n    compensate',
)
ONCE = TOOLS.replace("    retry: same_key\n", "")
ENDS = {"RunCompleted", "RunFailed", "RunCancelled", "RunExpired"}


def ends(bench: Bench) -> Any:
    (event,) = [event for event in bench.log if event.kind in ENDS]
    return event.body


def release(bench: Bench, *answers: object) -> None:
    """Each answer of `release` in turn: an exception is raised, anything else stands for the usual work."""
    said = list(answers)

    async def handler(hold: str, context: Any) -> object:
        answer = said.pop(0) if said else None
        if isinstance(answer, BaseException):
            raise answer
        return await bench.shop.release(hold, context)

    bench.shop.special["release"] = handler


# --- undoing ----------------------------------------------------------------------------------------------


def test_effects_are_undone_in_reverse_order_each_as_a_call_of_its_own():
    bench = Bench(THREE, say(ASK), tools=ONCE)
    bench.drive()
    bench.cancel("changed my mind")
    bench.drive()
    assert bench.shop.ledger == ["hold 1", "hold 2", "hold 3", "release H3", "release H2", "release H1"]
    undone = [bench.state.calls[CallId(0, n)] for n in (1, 2, 3)]
    assert [call.host.subject for call in undone] == [CallId(1, 3), CallId(1, 2), CallId(1, 1)]
    assert all(call.host.purpose == "compensation" and call.receipt.outcome == "confirmed" for call in undone)
    assert (ends(bench).not_compensated, ends(bench).unknown_effects) == ((), ())
    assert not bench.state.open_holds


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Failed("gone"), "failed"),
        (NotExecuted("busy"), "not_executed"),
        (ConnectionError(), "unknown"),
        (TimeoutError(), "unknown"),
    ],
)
def test_what_could_not_be_undone_is_named_and_the_rest_is_undone(answer: BaseException, outcome: str):
    """hadamrd/forge-loop#301: one undoing that fails hides behind no other."""
    bench = Bench(THREE, say(ASK), tools=ONCE)
    release(bench, None, answer, None)
    bench.drive()
    bench.cancel()
    bench.drive()
    assert bench.state.calls[CallId(0, 2)].receipt.outcome == outcome
    assert ends(bench).not_compensated == (CallId(1, 2),)
    assert ends(bench).unknown_effects == ((CallId(0, 2),) if outcome == "unknown" else ())
    assert [line for line in bench.shop.ledger if "release" in line] == ["release H3", "release H1"]


def test_an_operator_settles_afterwards_what_the_end_named():
    bench = Bench(say(("reserve", {"sku": 1})), say(ASK), tools=ONCE)
    release(bench, ConnectionError())
    bench.drive()
    bench.cancel()
    bench.drive()
    found = Finding(Outcome.CONFIRMED, "the yard has it back")
    bench.runtime().reconcile(bench.run, CallId(0, 1), by=person("op"), finding=found)
    assert bench.state.calls[CallId(1, 1)].compensated_by == CallId(0, 1)
    assert not bench.state.open_holds
    assert not bench.state.unknown_calls
    bench.verified()


def test_a_process_that_dies_between_two_undoings_goes_on_with_the_next():
    bench = Bench(THREE, say(ASK), tools=ONCE)
    bench.drive()
    bench.cancel()

    def crash(where: str) -> None:
        if where == "before append" and len(bench.shop.ledger) == 5:
            raise Crash(where)

    with pytest.raises(Crash):
        bench.drive(crash)
    bench.drive()
    assert [line for line in bench.shop.ledger if "release" in line] == [
        "release H3",
        "release H2",
        "release H1",
    ]
    assert ends(bench).unknown_effects == (CallId(0, 2),), "nobody knows of the one whose receipt was lost"


def test_an_effect_of_unknown_outcome_is_asked_about_and_undone_if_it_happened():
    bench = Bench(say(("reserve", {"sku": 1})), say(ASK), tools=PROBED)

    async def reserve(sku: int, context: Any) -> object:
        await bench.shop.reserve(sku, context)
        bench.cancel()
        raise ConnectionError

    bench.shop.special["reserve"] = reserve
    bench.drive()
    assert bench.shop.reads == ["find_booking"]
    assert bench.outcome(1, 1) == "confirmed"
    assert bench.status == "cancelled"
    assert ends(bench).not_compensated == (CallId(1, 1),), "its answer, and so its ticket, was lost"


@pytest.mark.parametrize(("when", "minutes"), [("before the end", 11), ("at the end", 10)])
def test_a_hold_that_lapsed_as_declared_is_named_as_such_and_not_undone(when: str, minutes: int):
    bench = Bench(say(("reserve", {"sku": 1})), say(ASK))
    bench.drive()
    bench.clock.advance(minutes=minutes)
    if when == "before the end":
        bench.drive()
        assert bench.of_kind("HoldLapsed")
    bench.cancel()
    bench.drive()
    assert ends(bench).lapsed == (CallId(1, 1),)
    assert ends(bench).not_compensated == ()
    assert bench.shop.ledger == ["hold 1"]


def test_a_consumed_hold_is_neither_undone_nor_named():
    bench = Bench(say(("reserve", {"sku": 1})), say(LETTER), final())
    bench.drive()
    bench.approve(2, 1)
    bench.drive()
    assert bench.status == "completed"
    assert bench.shop.ledger == ["hold 1", "letter x"]
    assert (ends(bench).lapsed, ends(bench).not_compensated) == ((), ())


# --- ways to stop -----------------------------------------------------------------------------------------


def test_a_shutdown_is_no_event_and_the_run_goes_on_elsewhere():
    """dust-tt/dust#30742: a deploy ends no Run."""
    bench = Bench(say(("get_stock", {"sku": 1})), say(ROOM), final())

    async def get_stock(sku: int) -> object:
        threading.Timer(0.05, runtime.stop).start()
        await asyncio.sleep(0.2)
        return {"left": 1, "level": "L1"}

    bench.shop.special["get_stock"] = get_stock
    runtime = bench.runtime()
    driven = asyncio.run(runtime.drive(bench.run))
    assert driven.interrupted
    assert not ENDS & set(bench.kinds)
    assert "CancelRequested" not in bench.kinds
    assert bench.outcome(1, 1) == "confirmed", "what came in within the grace is kept"
    bench.drive()
    assert bench.status == "completed"


def test_a_cancel_settles_or_names_every_open_call_and_lets_nothing_start():
    """Agenta-AI/agenta#5160: it is checked before every dispatch and every request to the model."""
    bench = Bench(say(("get_stock", {"sku": 1}), ROOM, LETTER), say(ROOM))

    async def get_stock(sku: int) -> object:
        bench.cancel("stop")
        return {"left": 1, "level": "L1"}

    bench.shop.special["get_stock"] = get_stock
    bench.drive()
    assert bench.status == "cancelled"
    assert bench.outcomes(1) == ["confirmed", "fenced", "fenced"]
    assert bench.shop.ledger == []
    assert len(bench.state.turns) == 1
    one_result_per_proposal(bench.log)


def test_a_cancel_leaves_no_approval_behind():
    """letta-ai/letta#3176: what was pending is closed, later decisions are refused, other Runs are untouched."""
    bench = Bench(say(LETTER))
    bench.drive()
    bench.cancel()
    with pytest.raises(Refused, match="run cancelled"):
        bench.approve(1, 1)
    bench.drive()
    assert bench.call(1, 1).receipt.denial == "undecided"
    for decide in (bench.approve, bench.refuse):
        with pytest.raises(Refused, match="run cancelled"):
            decide(1, 1)
    other = Bench(say(LETTER), final(), store=bench.store)
    other.drive()
    other.approve(1, 1)
    other.drive()
    assert other.shop.ledger == ["letter x"]


def test_a_time_out_of_a_tool_ends_a_call_and_no_run():
    tools = TOOLS.replace('description: "Book one room."', 'description: "Book one room."\n    timeout: 1s')
    bench = Bench(say(ROOM), final(), tools=tools)

    async def slow(room: int, context: Any) -> object:
        await bench.shop.book_room(room, context)
        await asyncio.sleep(30)
        return {}

    bench.shop.special["book_room"] = slow
    bench.drive()
    assert bench.status == "completed"
    first = [event.body for event in bench.of_kind("ReceiptRecorded") if event.body.call == (1, 1)]
    assert (first[0].outcome.value, first[0].detail) == ("unknown", "no answer within 1 s")
    assert first[-1].settled_by == "probe"


def test_used_up_budgets_end_a_run_as_expired_and_undo():
    short = with_lines(budgets='{turns: 1, cost_usd: "1.00", wall_time: 1h, calls: {total: 60}}')
    bench = Bench(say(("reserve", {"sku": 1})), final(), policy=short)
    bench.drive()
    assert (bench.status, bench.reason) == ("expired", "budget:turns")
    assert bench.shop.ledger == ["hold 1", "release H1"]


def test_each_way_to_stop_is_another_kind_of_event():
    cancelled = Bench(say(ASK))
    cancelled.drive()
    cancelled.cancel("by me")
    cancelled.drive()
    (asked,) = cancelled.of_kind("CancelRequested")
    assert (asked.actor, asked.body.because) == (ME, "by me")
    assert cancelled.kinds[-1] == "RunCancelled"
    assert ends(cancelled).message == "by me"
    expired = Bench(say(LETTER), final())
    expired.drive()
    expired.clock.advance(seconds=91)
    expired.drive()
    assert "ApprovalExpired" in expired.kinds
    assert expired.kinds[-1] == "RunCompleted", "an approval that expired ends a call, not the Run"
