"""Owns the regressions of the loop: each was a fault of decide, walk, held, recover, settle or the journal."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from engine.domain import events as e
from engine.domain.errors import ClaimHeld, ClaimLost, Refused, StoreError, UsageError
from engine.domain.events import Usage
from engine.lifecycle.steps import Wait
from engine.ports import AttemptFailed
from engine.runtime import signals
from engine.runtime.approvals import Approval
from tests.runtime.bench import (
    CLERK,
    LEAD,
    OTHER_LEAD,
    POLICY,
    TOOLS,
    Bench,
    Crash,
    final,
    one_result_per_proposal,
    say,
    with_lines,
)

READ = ("get_stock", {"sku": 1})
ROOM = ("book_room", {"room": 1})
LETTER = ("send_letter", {"to": "x"})
ASK = ("ask_user", {"question": "Which one?"})
DOCS = ("request_capability", {"capability": "docs"})
OPS = ("request_capability", {"capability": "ops"})


def crash_when(where: str, times: int = 1) -> Any:
    """A crash point that ends the process at the n-th point of that name."""
    seen = []

    def point(name: str) -> None:
        if name == where:
            seen.append(name)
            if len(seen) == times:
                raise Crash(name)

    return point


# --- questions --------------------------------------------------------------------------------------------


def test_two_questions_of_one_response_are_asked_one_after_the_other():
    bench = Bench(say(ASK, ("ask_user", {"question": "And which colour?"})), final())
    bench.drive()
    assert bench.status == "awaiting_input"
    bench.reply("the first")
    bench.drive()
    assert bench.status == "awaiting_input"
    bench.reply("blue")
    bench.drive()
    assert bench.status == "completed"
    assert [result.text for result in bench.results(1)] == ["the first", "blue"]


def test_a_question_behind_a_held_capability_waits_and_is_asked_if_it_is_refused():
    bench = Bench(say(OPS, ASK), final())
    bench.drive()
    assert bench.status == "awaiting_approval"
    assert not bench.of_kind("QuestionAsked")
    bench.refuse(1, 1)
    bench.drive()
    assert bench.status == "awaiting_input"
    assert bench.outcomes(1)[0] in ("not_executed", "rejected")


def test_a_question_behind_a_held_capability_is_fenced_if_it_is_granted():
    bench = Bench(say(OPS, ASK), final())
    bench.drive()
    bench.approve(1, 1)
    bench.drive()
    assert bench.outcomes(1) == ["granted", "fenced"]
    assert not bench.of_kind("QuestionAsked")
    assert bench.status == "completed"


# --- the end ----------------------------------------------------------------------------------------------


def test_a_cancel_while_a_completed_run_undoes_its_holds_ends_it_as_cancelled():
    bench = Bench(say(("reserve", {"sku": 1})), final())

    async def release(hold: str, context: Any) -> object:
        bench.cancel("changed my mind")
        return {}

    bench.shop.special["release"] = release
    bench.drive()
    assert bench.status == "cancelled"
    assert bench.outcome(2, 1) == "fenced"
    one_result_per_proposal(bench.log)


def test_a_drain_while_a_completed_run_undoes_its_holds_ends_it_as_expired():
    bench = Bench(say(("reserve", {"sku": 1})), final())

    async def release(hold: str, context: Any) -> object:
        bench.load(POLICY.replace("version: 1", "version: 2"), drain=True)
        return {}

    bench.shop.special["release"] = release
    bench.drive()
    assert (bench.status, bench.reason) == ("expired", "drain")


def test_a_completed_run_waits_for_an_undoing_whose_outcome_nobody_knows():
    bench = Bench(say(("reserve", {"sku": 1})), final())

    async def release(hold: str, context: Any) -> object:
        raise ConnectionError

    bench.shop.special["release"] = release
    bench.drive()
    assert bench.status == "awaiting_reconciliation"
    settled = e.ReceiptRecorded(call=(0, 1), tool="release", outcome="confirmed", settled_by="operator")
    signals.append(bench.store, bench.clock, bench.run, LEAD, lambda state: [settled])
    bench.drive()
    assert bench.status == "completed"
    assert not bench.state.open_holds


def test_a_hold_without_an_end_that_nobody_undoes_is_named():
    tools = TOOLS.replace("holds: {ttl: 10m, consumed_by: letter.send}", "holds: {}").replace(
        "on: [run_failed, run_cancelled, run_finished]", "on: [run_failed]"
    )
    bench = Bench(say(("reserve", {"sku": 1})), final(), tools=tools)
    bench.drive()
    assert bench.status == "completed"
    assert [tuple(call) for call in bench.log[-1].body.not_compensated] == [(1, 1)]


def test_a_capability_that_a_cancel_closes_is_named_by_its_own_name():
    bench = Bench(say(OPS))
    bench.drive()
    bench.cancel()
    bench.drive()
    assert [event.body.capability for event in bench.of_kind("CapabilityDenied")] == ["ops"]


def test_a_refused_capability_is_named_by_its_own_name():
    bench = Bench(say(OPS), final())
    bench.drive()
    bench.refuse(1, 1)
    assert [event.body.capability for event in bench.of_kind("CapabilityDenied")] == ["ops"]


# --- recovery under the facts of now ------------------------------------------------------------------------


def test_a_cancelled_run_sends_no_lost_read_again():
    bench = Bench(say(READ))
    with pytest.raises(Crash):
        bench.drive(crash_when("after effect"))
    bench.cancel()
    bench.drive()
    assert bench.shop.reads == ["get_stock 1"]
    assert bench.status == "cancelled"
    assert bench.outcomes(1) == ["failed"]


def test_a_lost_read_is_not_sent_again_to_a_source_that_was_shut_meanwhile():
    bench = Bench(say(READ), final())
    with pytest.raises(Crash):
        bench.drive(crash_when("before effect"))
    bench.load(
        POLICY.replace("tools: [get_stock, ping]", "tools: [ping]").replace("version: 1", "version: 2")
    )
    bench.drive()
    assert bench.shop.reads == []
    assert bench.outcomes(1) == ["failed"]


def test_a_lost_write_that_deduplicates_is_not_sent_again_against_a_newer_deny():
    tools = TOOLS.replace(
        "    idempotency: {key: [sku, price]}", "    idempotency: {key: [sku, price]}\n    retry: same_key"
    )
    bench = Bench(say(("set_price", {"sku": 1, "price": 2})), tools=tools)
    with pytest.raises(Crash):
        bench.drive(crash_when("before effect"))
    denied = POLICY.replace("tools: [book_room, reserve, set_price]", "tools: [book_room, reserve]")
    bench.load(denied.replace("version: 1", "version: 2"))
    bench.drive()
    assert bench.shop.ledger == []
    assert bench.outcomes(1) == ["unknown"]


def test_a_lost_write_that_deduplicates_is_sent_again_with_the_same_key():
    tools = TOOLS.replace(
        "    idempotency: {key: [sku, price]}", "    idempotency: {key: [sku, price]}\n    retry: same_key"
    )
    bench = Bench(say(("set_price", {"sku": 1, "price": 2})), final(), tools=tools)
    with pytest.raises(Crash):
        bench.drive(crash_when("after effect"))
    bench.drive()
    assert len(bench.shop.keys) == 1
    assert bench.outcomes(1) == ["confirmed"]
    assert [event.body.attempt for event in bench.of_kind("ExecutionStarted")] == [1, 2]
    assert bench.state.spent.unattended == {"rooms": 1, "tool set_price": 1}


def test_a_probe_lost_in_a_crash_is_made_again():
    bench = Bench(say(ROOM), final())
    with pytest.raises(Crash):
        bench.drive(crash_when("after effect"))
    with pytest.raises(Crash):
        bench.drive(crash_when("before effect"))
    bench.drive()
    bench.clock.advance(minutes=5)
    bench.drive()
    assert bench.outcomes(1) == ["confirmed"]
    assert bench.status == "completed"


def test_what_a_probe_found_survives_a_reply_that_came_meanwhile():
    bench = Bench(say(ROOM), final())
    with pytest.raises(Crash):
        bench.drive(crash_when("after effect"))

    async def find_booking(key: str) -> object:
        if not bench.state.inputs[1:]:
            bench.reply("hurry")
        return {"found": True}

    bench.shop.special["find_booking"] = find_booking
    bench.drive()
    assert bench.outcomes(1) == ["confirmed"]
    assert bench.status == "completed"


def test_a_probe_that_cannot_be_made_names_no_time_to_wake_up():
    tools = TOOLS.replace("args: {key: idempotency_key}", "args: {key: principal.nobody}")
    bench = Bench(say(ROOM), final(), tools=TOOLS)
    del tools
    shop = bench.shop

    async def book_room(room: int, context: Any) -> object:
        shop.effect(f"room {room}", context)
        raise ConnectionError

    async def find_booking(key: str) -> object:
        raise ConnectionError

    shop.special.update(book_room=book_room, find_booking=find_booking)
    driven = bench.drive()
    for _ in range(20):
        if not isinstance(driven.step, Wait) or driven.step.until is None:
            break
        assert driven.step.until > bench.clock.now(), "a waiting caller would spin"
        bench.clock.time = driven.step.until
        driven = bench.drive()
    assert isinstance(driven.step, Wait)
    assert driven.step.until is None
    assert bench.status == "awaiting_reconciliation"


def test_absence_proves_nothing_while_the_request_can_still_arrive():
    """A handler that was given up after its time-out still works on; the probe does not find its effect yet."""
    tools = TOOLS.replace(
        'description: "Book one room."',
        'description: "Book one room."\n    timeout: 20s\n    retry: known_not_executed',
    )
    bench = Bench(say(ROOM), final(), tools=tools)

    async def gives_up(room: int, context: Any) -> object:
        bench.clock.advance(seconds=20)
        raise TimeoutError

    bench.shop.special["book_room"] = gives_up
    driven = bench.drive()
    assert bench.outcomes(1) == ["unknown"]
    assert isinstance(driven.step, Wait)
    assert driven.step.until is not None
    assert driven.step.until - bench.clock.now() == timedelta(seconds=20)
    call = bench.of_kind("ExecutionStarted")[0].body
    bench.shop.keys[str(call.idempotency_key)] = "room 1"
    bench.clock.time = driven.step.until
    bench.drive()
    assert bench.outcomes(1) == ["confirmed"]
    assert [event.body.tool for event in bench.of_kind("ExecutionStarted")].count("book_room") == 1
    assert bench.status == "completed"


def test_absence_proves_that_nothing_happened_once_the_request_cannot_arrive():
    tools = TOOLS.replace('description: "Book one room."', 'description: "Book one room."\n    timeout: 20s')
    bench = Bench(say(ROOM), final(), tools=tools)
    with pytest.raises(Crash):
        bench.drive(crash_when("before effect"))
    bench.clock.advance(seconds=40)
    bench.drive()
    assert bench.outcomes(1) == ["not_executed"]
    assert bench.status == "completed"


def test_a_third_call_with_an_equal_key_waits_for_the_second():
    bench = Bench(say(*[("set_price", {"sku": 1, "price": 2})] * 3))
    sent: list[int] = []

    async def set_price(sku: int, price: int, context: Any) -> object:
        sent.append(price)
        raise ConnectionError

    bench.shop.special["set_price"] = set_price
    bench.drive()
    assert bench.outcomes(1) == ["unknown", "held", "held"]
    settled = e.ReceiptRecorded(call=(1, 1), tool="set_price", outcome="not_executed", settled_by="operator")
    signals.append(bench.store, bench.clock, bench.run, LEAD, lambda state: [settled])
    bench.drive()
    assert bench.outcomes(1) == ["not_executed", "unknown", "held"]
    assert len(sent) == 2


# --- admission of one response ------------------------------------------------------------------------------


def test_reads_of_one_response_cannot_overdraw_a_budget_per_tool():
    policy = with_lines(
        budgets='{turns: 30, cost_usd: "1.00", wall_time: 1h, calls: {total: 60, per_tool: {get_stock: 2}}}'
    )
    bench = Bench(say(READ, ("get_stock", {"sku": 2}), ("get_stock", {"sku": 3})), final(), policy=policy)
    bench.drive()
    assert bench.outcomes(1) == ["confirmed", "confirmed", "rejected"]
    assert len(bench.shop.reads) == 2


def test_reads_of_one_response_cannot_overdraw_a_grant():
    search = ("search_docs", {"q": "a"})
    bench = Bench(say(DOCS), say(search, search, search, search), final())
    bench.drive()
    assert len(bench.shop.reads) == 3
    assert bench.outcomes(2) == ["confirmed", "confirmed", "confirmed", "fenced"]


# --- approvals ----------------------------------------------------------------------------------------------


def test_a_refusal_before_the_call_starts_wins_over_an_approval():
    bench = Bench(say(LETTER), final())
    bench.drive()
    bench.approve(1, 1)
    bench.refuse(1, 1, by=OTHER_LEAD)
    bench.drive()
    assert bench.shop.ledger == []
    assert bench.outcomes(1) == ["not_executed"]
    assert "refused by lead2" in bench.call(1, 1).receipt.detail


TWO = POLICY.replace(
    "{by: {roles: [lead]}, expires: 90s}", "{by: {roles: [lead]}, quorum: 2, expires: 90s}"
).replace("version: 1", "version: 2")


def test_a_stricter_policy_keeps_the_approval_that_was_given():
    """A policy that asks for two people meets a call that one has approved: it waits for the other."""
    bench = Bench(say(LETTER), final())
    bench.drive()
    bench.approve(1, 1)
    bench.load(TWO)
    bench.drive()
    assert bench.status == "awaiting_approval"
    bench.approve(1, 1, by=OTHER_LEAD)
    bench.drive()
    assert bench.shop.ledger == ["letter x"]
    assert bench.status == "completed"


def test_an_approval_under_a_rule_with_other_roles_does_not_count():
    newer = POLICY.replace(
        "tools: [send_letter], approval: {by: {roles: [lead]}",
        "tools: [send_letter], approval: {by: {roles: [clerk]}",
    ).replace("version: 1", "version: 2")
    bench = Bench(say(LETTER), final())
    bench.drive()
    bench.approve(1, 1)
    bench.load(newer)
    bench.drive()
    assert bench.status == "awaiting_approval"
    assert bench.shop.ledger == []


def test_an_edit_that_the_policy_does_not_allow_is_refused():
    bench = Bench(say(LETTER), final())
    bench.drive()
    with pytest.raises(Refused, match="edit"):
        bench.runtime().approve(bench.run, "1.1", by=LEAD, decision=Approval(edits={"to": "somebody-else"}))
    assert bench.status == "awaiting_approval"


def test_a_capability_approved_after_it_was_taken_from_the_policy_is_denied():
    bench = Bench(say(OPS), final())
    bench.drive()
    newer = POLICY.replace(
        "  ops:\n    request: {roles: [clerk]}", "  ops:\n    request: {roles: [lead]}"
    ).replace("version: 1", "version: 2")
    bench.load(newer)
    bench.approve(1, 1)
    bench.drive()
    assert not bench.of_kind("CapabilityGranted")


# --- budgets and attempts -----------------------------------------------------------------------------------


def test_no_progress_turns_counts_the_turn_that_just_closed():
    policy = with_lines(
        budgets='{turns: 30, cost_usd: "1.00", wall_time: 1h, calls: {total: 60}, no_progress_turns: 3}'
    )
    bench = Bench(*[say(("nothing", {}))] * 10, policy=policy)
    bench.drive()
    assert (bench.status, bench.reason) == ("expired", "budget:no_progress_turns")
    assert bench.state.spent.turns == 3


def test_a_failed_attempt_without_tokens_does_not_make_the_cost_unknown():
    def fails(request: Any) -> Any:
        if request.attempt == 1:
            raise AttemptFailed("unavailable", "down", usage=Usage())
        return final()

    bench = Bench(fails)
    bench.drive()
    assert not bench.state.spent.cost_unknown


def test_an_attempt_is_not_counted_before_it_is_made():
    """Somebody appends just before each attempt: the model is asked as often as without."""
    asked = []

    def fails(request: Any) -> Any:
        asked.append(request.attempt)
        raise AttemptFailed("unavailable", "down")

    bench = Bench(fails)
    calm = Bench(fails)
    calm.drive()
    count, before = len(asked), []
    asked.clear()

    def disturb(where: str) -> None:
        if where == "before append" and len(before) < 4 and bench.status != "created":
            before.append(bench.source("papers", "degraded" if len(before) % 2 else "available"))

    bench.drive(disturb)
    assert len(asked) == count


def test_wall_time_counts_the_work_around_what_people_append():
    bench = Bench(say(READ), final())

    async def slow(sku: int) -> object:
        bench.clock.advance(seconds=30)
        bench.source("papers", "degraded")
        bench.clock.advance(seconds=30)
        return {"left": 1, "level": "L"}

    bench.shop.special["get_stock"] = slow
    bench.drive()
    assert bench.state.spent.wall_seconds == 60


def test_a_response_that_cannot_be_stored_is_a_failed_attempt():
    def odd(request: Any) -> Any:
        if request.attempt == 1:
            return replace(say(READ), parts=({"n": float("nan")},))
        return final()

    bench = Bench(odd)
    bench.drive()
    assert [event.body.error for event in bench.of_kind("ModelAttemptFailed")] == ["invalid_response"]
    assert bench.status == "completed"


# --- bad input ------------------------------------------------------------------------------------------------


def test_an_input_with_half_a_surrogate_is_one_clear_error():
    bench = Bench(say())
    with pytest.raises(UsageError, match="input"):
        bench.runtime().start("x\udcff", principal=CLERK)
    with pytest.raises(UsageError, match="reply"):
        bench.reply("x\ud800")
    with pytest.raises(UsageError):
        bench.reply("x" * 1_000_001)


# --- what the model was told --------------------------------------------------------------------------------


def test_a_result_that_was_shown_stays_as_it_was_shown_after_a_restart():
    bench = Bench(say(("send_letter", {"to": "x"}), READ), say(READ), say(READ), final())

    async def lost(to: str, context: Any) -> object:
        raise ConnectionError

    bench.shop.special["send_letter"] = lost
    bench.drive()
    bench.approve(1, 1)
    with pytest.raises(Crash):
        bench.drive(crash_when("after effect", 3))
    told = [result.outcome for result in bench.results(1)]
    assert told == ["unknown", "confirmed"]
    settled = e.ReceiptRecorded(call=(1, 1), tool="send_letter", outcome="confirmed", settled_by="operator")
    signals.append(bench.store, bench.clock, bench.run, LEAD, lambda state: [settled])
    bench.drive()
    assert [result.outcome for result in bench.results(1)] == told
    assert any(
        "now known: confirmed" in getattr(message, "text", "") for message in bench.requests[-1].messages
    )


def test_an_outcome_that_is_known_before_the_model_is_asked_is_simply_the_result():
    bench = Bench(say(ROOM), final())
    with pytest.raises(Crash):
        bench.drive(crash_when("after effect"))
    bench.drive()
    assert [result.outcome for result in bench.results(1)] == ["confirmed"]
    assert not bench.state.notices


# --- claims ---------------------------------------------------------------------------------------------------


async def test_a_second_drive_in_one_runtime_leaves_the_first_stoppable():
    bench = Bench(say(READ), final())
    runtime = bench.runtime()
    running, release = asyncio.Event(), asyncio.Event()

    async def slow(sku: int) -> object:
        running.set()
        await release.wait()
        return {}

    bench.shop.special["get_stock"] = slow
    runtime = bench.runtime()
    first = asyncio.create_task(runtime.drive(bench.run))
    await running.wait()
    with pytest.raises(ClaimHeld):
        await runtime.drive(bench.run)
    runtime.stop()
    release.set()
    driven = await asyncio.wait_for(first, 5)
    assert driven.interrupted
    assert bench.status == "executing"


async def test_a_store_that_is_busy_at_renewal_does_not_end_the_drive(monkeypatch: pytest.MonkeyPatch):
    bench = Bench(say(READ), final())
    monkeypatch.setattr("engine.runtime.claims.RENEW_EVERY", 0.001)
    failed = asyncio.Event()
    renew = bench.store.renew_all

    def busy(claims: Any, now: Any, ttl: timedelta) -> Any:
        if not failed.is_set():
            failed.set()
            raise StoreError("locked", remedy="wait")
        return renew(claims, now, ttl)

    monkeypatch.setattr(bench.store, "renew_all", busy)

    async def slow(sku: int) -> object:
        await failed.wait()
        await asyncio.sleep(0.01)
        return {}

    bench.shop.special["get_stock"] = slow
    await bench.adrive()
    assert bench.status == "completed"


async def test_a_driver_that_finds_its_claim_taken_at_renewal_stops_with_claim_lost(
    monkeypatch: pytest.MonkeyPatch,
):
    bench = Bench(say(READ), final())
    monkeypatch.setattr("engine.runtime.claims.RENEW_EVERY", 0.001)

    async def hangs(sku: int) -> object:
        bench.clock.advance(minutes=1)
        bench.store.claim(bench.run, bench.runtime()._parts.owner, bench.clock.now(), timedelta(hours=1))
        await asyncio.sleep(30)
        return {}

    bench.shop.special["get_stock"] = hangs
    monkeypatch.setattr("engine.runtime.sending.GRACE", 0.01)
    with pytest.raises(ClaimLost):
        await asyncio.wait_for(bench.adrive(), 5)
