"""A Run that is killed at any point and driven again ends the same way: reads may repeat, effects never do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.domain import events as e
from engine.domain.calls import CallStatus
from engine.domain.ids import CallId
from engine.domain.policy import Kind
from engine.ports import EventStore
from engine.runtime import signals
from tests.runtime.bench import (
    LEAD,
    TOOLS,
    Bench,
    Crash,
    CrashAt,
    final,
    one_result_per_proposal,
    say,
    sqlite,
)

Make = Callable[[EventStore | None], Bench]


def reads_and_a_write(store: EventStore | None) -> Bench:
    return Bench(
        say(("get_stock", {"sku": 1}), ("get_stock", {"sku": "x"}), ("ping", "")),
        say(("book_room", {"room": 1}), ("get_stock", {"sku": 2})),
        say(("publish_note", {"body": "It is {{fig:E1/left}} [[E1]]."}), ("finish", {})),
        store=store,
    )


def people_decide(store: EventStore | None) -> Bench:
    return Bench(
        say(("send_letter", {"to": "a"}), ("get_stock", {"sku": 1}), ("book_room", {"room": 2})),
        say(("request_capability", {"capability": "ops"}), ("ask_user", {"question": "Well?"})),
        say(("wipe_cache", {}), ("ask_user", {"question": "Sure?"})),
        final(),
        store=store,
    )


def holds_are_undone(store: EventStore | None) -> Bench:
    return Bench(say(("reserve", {"sku": 3})), say(("reserve", {"sku": 4})), final(), store=store)


def nobody_can_tell(store: EventStore | None) -> Bench:
    return Bench(say(("set_price", {"sku": 1, "price": 5})), final(), store=store)


SCENES: dict[str, Make] = {
    make.__name__: make for make in (reads_and_a_write, people_decide, holds_are_undone, nobody_can_tell)
}


def act(bench: Bench) -> None:
    """What people do when the Run waits for them."""
    state = bench.state
    if state.status == "awaiting_approval":
        for id_ in list(state.open_calls):
            approval = state.calls[id_].approval
            if approval is not None and not approval.decided:
                bench.approve(*id_)
    elif state.status == "awaiting_input":
        bench.reply("yes")
    else:
        body = [
            e.ReceiptRecorded(
                call=call, tool=state.calls[call].tool, outcome="not_executed", settled_by="operator"
            )
            for call in state.unknown_calls
        ]
        signals.append(bench.store, bench.clock, bench.run, LEAD, lambda _: list(body))


def to_the_end(bench: Bench, point: CrashAt) -> int:
    """Drives until the Run is over, again after each crash; returns how often it crashed."""
    crashes = 0
    for _ in range(60):
        try:
            bench.drive(point)
        except Crash:
            crashes += 1
            continue
        if bench.state.terminal:
            return crashes
        act(bench)
    raise AssertionError(f"the Run never ends: {bench.kinds}")


def outcomes(bench: Bench) -> dict[CallId, str]:
    return {id_: bench.outcome(*id_) for id_ in bench.state.calls if id_.turn}


def check(bench: Bench) -> None:
    bench.verified()
    one_result_per_proposal(bench.log)
    state = bench.state
    started = Counter(
        event.body.call
        for event in bench.of_kind("ExecutionStarted")
        if event.body.tool_kind is not Kind.READ
    )
    tool = {id_: state.calls[id_].tool for id_ in started}
    assert all(count == 1 for id_, count in started.items() if tool[id_] != "release")
    effects = Counter(bench.shop.ledger)
    assert all(count == 1 for what, count in effects.items() if not what.startswith("release")), effects
    confirmed = [
        call for call in state.calls.values() if call.kind in (Kind.WRITE, Kind.HYBRID) and call.receipt
    ]
    happened = sum(1 for call in confirmed if call.receipt and call.receipt.outcome.value == "confirmed")
    assert happened <= sum(effects.values())
    first = {event.body.call: event.seq for event in reversed(bench.of_kind("ExecutionStarted"))}
    for event in bench.of_kind("ReceiptRecorded"):
        if state.calls[event.body.call].attempts:
            assert first[event.body.call] < event.seq


@pytest.mark.parametrize("scene", SCENES)
def test_a_run_killed_at_any_point_ends_the_same_way(scene: str):
    """Memory store: every crash point of every drive, one crash per Run."""
    calm = SCENES[scene](None)
    counted = CrashAt(0)
    to_the_end(calm, counted)
    check(calm)
    assert calm.status == "completed"
    for n in range(1, len(counted.points) + 1):
        bench = SCENES[scene](None)
        assert to_the_end(bench, CrashAt(n)) == 1, n
        check(bench)
        assert bench.status == "completed"
        assert {
            call: said for call, said in outcomes(bench).items() if said in ("rejected", "fenced", "granted")
        } == {
            call: said for call, said in outcomes(calm).items() if said in ("rejected", "fenced", "granted")
        }
        differ = {call for call, said in outcomes(bench).items() if said != outcomes(calm)[call]}
        assert all(bench.state.calls[call].kind is not Kind.READ for call in differ)
        assert bench.runtime().outputs(bench.run) == calm.runtime().outputs(calm.run)


@pytest.mark.parametrize("scene", ["reads_and_a_write", "people_decide"])
def test_a_run_on_disk_killed_at_any_fifth_point_ends_the_same_way(scene: str, tmp_path: Path):
    calm = CrashAt(0)
    to_the_end(SCENES[scene](None), calm)
    store = sqlite(tmp_path)
    for n in range(1, len(calm.points) + 1, 5):
        bench = SCENES[scene](store)
        to_the_end(bench, CrashAt(n))
        check(bench)
        assert bench.status == "completed"
    store.close()


def test_a_run_that_crashes_again_and_again_still_ends():
    """Each drive gets a little further: no crash loses what was durable before it."""

    class Often(CrashAt):
        def __call__(self, where: str) -> None:
            self.points.append(where)
            if len(self.points) % 7 == 0:
                raise Crash(where)

    for make in SCENES.values():
        bench = make(None)
        assert to_the_end(bench, Often(0))
        check(bench)
        assert bench.state.terminal


def test_a_model_attempt_in_flight_at_a_crash_is_charged_its_reservation():
    def dies(request: Any) -> Any:
        if request.attempt == 1:
            raise Crash("in the request")
        return final()

    bench = Bench(dies)
    with pytest.raises(Crash):
        bench.drive()
    reserved = bench.state.attempt.reserved
    assert reserved.input_tokens > 0
    assert reserved.output_tokens > 0
    bench.drive()
    lost = bench.of_kind("ModelAttemptFailed")
    assert [(event.body.error, event.body.usage) for event in lost] == [("cut", None)]
    assert bench.state.spent.input_tokens >= reserved.input_tokens
    assert bench.state.spent.output_tokens >= reserved.output_tokens
    assert bench.status == "completed"


def test_an_effect_that_nobody_can_tell_of_is_named_and_never_sent_again():
    bench = nobody_can_tell(None)
    with pytest.raises(Crash):
        bench.drive(lambda where: crash(where))
    bench.drive()
    assert bench.outcomes(1) == ["unknown"]
    assert bench.shop.ledger == ["price 1=5"]
    assert bench.status == "awaiting_reconciliation"
    bench.cancel()
    bench.drive()
    assert bench.status == "cancelled"
    assert bench.log[-1].body.unknown_effects == ((1, 1),)


def crash(where: str) -> None:
    if where == "after effect":
        raise Crash(where)


def test_a_lost_compensation_that_deduplicates_is_sent_again():
    bench = holds_are_undone(None)
    seen: list[str] = []

    def point(where: str) -> None:
        if where == "after effect":
            seen.append(where)
            if len(seen) == 3:
                raise Crash(where)

    with pytest.raises(Crash):
        bench.drive(point)
    bench.drive()
    assert bench.status == "completed"
    assert bench.shop.ledger == ["hold 3", "hold 4", "release H4", "release H4", "release H3"]
    releases = [event.body for event in bench.of_kind("ExecutionStarted") if event.body.tool == "release"]
    assert releases[0].idempotency_key == releases[1].idempotency_key
    assert [call.status for call in bench.state.calls.values()].count(CallStatus.SETTLED) == 4


def test_the_tools_of_this_bench_say_what_they_are():
    assert TOOLS.count("kind: write") + TOOLS.count("kind: hybrid") == TOOLS.count("idempotency:")
