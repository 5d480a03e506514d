"""Owns the promises about unknown effects: who may settle them, what is sent again, what waits until they are known."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from engine.domain.calls import Failed, NotExecuted, Outcome
from engine.domain.errors import Refused, UsageError
from engine.domain.ids import CallId
from engine.lifecycle.recover import PROBE_AFTER
from engine.runtime.reconcile import Finding
from tests.durable.conftest import Office
from tests.durable.shop import load, person
from tests.runtime.bench import LEAD, POLICY, TOOLS, Bench, Crash, compiled, final, say

FIRST = CallId(1, 1)
ROOM = ("book_room", {"room": 1})
PRICE = ("set_price", {"sku": 1, "price": 5})
OPERATOR = person("op", "oncall")
SAME_KEY = TOOLS.replace(
    "    idempotency: {key: [sku, price]}",
    "    retry: same_key\n    idempotency: {key: [sku, price], window: 1h}",
)
NOT_DONE = SAME_KEY.replace(
    "retry: same_key\n    idempotency: {key: [sku", "retry: known_not_executed\n    idempotency: {key: [sku"
)


def failing(bench: Bench, tool: str, times: int, error: Exception, *, done: bool = True) -> list[Any]:
    """The tool raises so many times, after its effect or instead of it; the keys it was sent are returned."""
    real, keys = getattr(bench.shop, tool), []

    async def handler(context: Any, **args: Any) -> object:
        keys.append(context.idempotency_key)
        if len(keys) > times:
            return await real(**args, context=context)
        if done:
            await real(**args, context=context)
        raise error

    import inspect

    signature = inspect.signature(real)
    handler.__signature__ = signature  # type: ignore[attr-defined]
    bench.shop.special[tool] = handler
    return keys


def settle(bench: Bench, outcome: Outcome, call: CallId = FIRST, **more: Any) -> None:
    finding = Finding(outcome, more.pop("because", "I looked"), more.pop("result", None))
    bench.runtime().reconcile(bench.run, call, by=more.pop("by", OPERATOR), finding=finding)


# --- the operator ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [Outcome.CONFIRMED, Outcome.NOT_EXECUTED, Outcome.FAILED])
def test_a_finish_held_by_an_unknown_effect_goes_on_when_an_operator_settles_it(outcome: Outcome):
    bench = Bench(say(PRICE), final())
    failing(bench, "set_price", 1, RuntimeError("line dead"))
    bench.drive()
    assert bench.status == "awaiting_reconciliation"
    settle(bench, outcome)
    receipt = bench.call(1, 1).receipt
    assert (receipt.outcome, receipt.settled_by, receipt.detail) == (outcome, "operator", "I looked")
    event = bench.of_kind("ReceiptRecorded")[-1]
    assert (event.actor, event.claim_epoch) == (OPERATOR, 0)
    bench.drive()
    assert bench.status == "completed"
    bench.verified()


def test_the_model_hears_what_the_operator_found():
    bench = Bench(say(PRICE), say(("ping", {})), final())
    failing(bench, "set_price", 1, RuntimeError("line dead"))

    async def ping() -> object:
        settle(bench, Outcome.NOT_EXECUTED, because="the list is as it was")
        return "pong"

    bench.shop.special["ping"] = ping
    bench.drive()
    assert bench.status == "completed"
    texts = [getattr(message, "text", "") for message in bench.requests[-1].messages]
    assert any("not_executed: the list is as it was" in text for text in texts)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("1.2", "known to be confirmed"),
        ("9.9", "has no call"),
        ("2.1", "not started"),
        ("x", "has no call"),
    ],
)
def test_only_an_unknown_outcome_can_be_reconciled(call: str, why: str):
    bench = Bench(say(PRICE, ROOM), final())
    failing(bench, "set_price", 1, RuntimeError("line dead"))
    bench.drive()
    with pytest.raises((Refused, UsageError), match=why):
        bench.runtime().reconcile(bench.run, call, by=OPERATOR, finding=Finding(Outcome.FAILED, "so"))
    tried = bench.of_kind("DecisionNotEligible")[-1]
    assert (tried.body.decision, tried.actor) == ("reconcile", OPERATOR)


def test_an_operator_says_who_they_are_and_how_they_know():
    bench = Bench(say(PRICE), final())
    failing(bench, "set_price", 1, RuntimeError("line dead"))
    bench.drive()
    for finding, by in [
        (Finding(Outcome.UNKNOWN, "who knows"), OPERATOR),
        (Finding(Outcome.CONFIRMED, "  "), OPERATOR),
        (Finding(Outcome.CONFIRMED, "I looked"), person("")),
    ]:
        with pytest.raises(UsageError):
            bench.runtime().reconcile(bench.run, FIRST, by=by, finding=finding)
    assert bench.status == "awaiting_reconciliation"


def test_an_unknown_effect_can_be_settled_after_the_run_is_over():
    bench = Bench(say(PRICE), final())
    failing(bench, "set_price", 1, RuntimeError("line dead"))
    bench.drive()
    bench.cancel()
    bench.drive()
    assert bench.of_kind("RunCancelled")[0].body.unknown_effects == (FIRST,)
    settle(bench, Outcome.CONFIRMED)
    assert not bench.state.unknown_calls
    assert bench.status == "cancelled"
    bench.verified()


def test_what_the_tool_would_have_answered_lets_its_compensation_run():
    bench = Bench(say(("reserve", {"sku": 1})), final())
    failing(bench, "reserve", 1, RuntimeError("line dead"))
    bench.drive()
    settle(bench, Outcome.CONFIRMED, result={"hold": "H1"})
    bench.drive()
    assert bench.shop.ledger == ["hold 1", "release H1"]


# --- late answers ---------------------------------------------------------------------------------------


def test_a_late_answer_settles_the_call_and_is_recorded_as_late():
    """intent-hq/intent#871: the time-out said nothing about the effect; the answer does when it comes."""
    bench = Bench(say(PRICE), say(PRICE), final())
    keys = failing(bench, "set_price", 1, TimeoutError())
    bench.drive()
    assert bench.outcome(1, 1) == "unknown"
    assert bench.call(2, 1).held == "equal_key", "the same operation waits for the first"
    bench.runtime().late_answer(bench.run, FIRST, {"ok": True}, key=keys[0], by=OPERATOR)
    assert bench.call(1, 1).receipt.late
    bench.drive()
    assert bench.status == "completed"
    assert bench.outcome(2, 1) == "not_executed"
    assert bench.shop.ledger == ["price 1=5"]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Failed("no"), "failed"),
        (NotExecuted("nothing"), "not_executed"),
        ({}, "confirmed"),
        (None, "confirmed"),
    ],
)
def test_a_late_answer_may_be_any_that_the_tool_could_give(answer: object, outcome: str):
    bench = Bench(say(PRICE), final())
    keys = failing(bench, "set_price", 1, TimeoutError())
    bench.drive()
    bench.runtime().late_answer(bench.run, FIRST, answer, key=keys[0], by=OPERATOR)
    assert bench.outcome(1, 1) == outcome


def test_a_stray_answer_is_attached_to_no_call():
    """zoedsoupe/anubis-mcp#143: an answer counts by run, call and key, not by when it comes."""
    bench = Bench(say(PRICE, ROOM), final())
    keys = failing(bench, "set_price", 1, TimeoutError())
    bench.drive()
    for call, key in [
        (FIRST, None), (FIRST, "0" * 64), (CallId(1, 2), keys[0]), (CallId(7, 1), keys[0]),
        (CallId(1, 2), bench.call(1, 2).idempotency_key),
    ]:  # fmt: skip
        with pytest.raises(Refused, match="stray"):
            bench.runtime().late_answer(bench.run, call, {}, key=key, by=OPERATOR)
    bench.runtime().late_answer(bench.run, FIRST, {}, key=keys[0], by=OPERATOR)
    with pytest.raises(Refused, match="stray"):
        bench.runtime().late_answer(bench.run, FIRST, {}, key=keys[0], by=OPERATOR)


# --- sent again -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failures", "outcome", "sent"), [(1, "confirmed", 2), (2, "confirmed", 3), (5, "unknown", 3)]
)
def test_same_key_sends_an_unknown_outcome_again_with_the_same_key(failures: int, outcome: str, sent: int):
    bench = Bench(say(PRICE), final(), tools=SAME_KEY)
    keys = failing(bench, "set_price", failures, RuntimeError("line dead"))
    bench.drive()
    assert bench.outcome(1, 1) == outcome
    assert len(keys) == sent
    assert len(set(keys)) == 1
    (result,) = bench.results(1)
    assert json.loads(result.text)["outcome"] == outcome, "the model hears one outcome"
    assert sum(bench.state.outcomes.values()) == 1


def test_same_key_sends_nothing_again_outside_its_window():
    bench = Bench(say(PRICE), final(), tools=SAME_KEY)

    async def slow(sku: int, price: int, context: Any) -> object:
        bench.shop.effect(f"price {sku}={price}", context)
        bench.clock.advance(hours=2)
        raise TimeoutError

    bench.shop.special["set_price"] = slow
    bench.drive()
    assert bench.outcome(1, 1) == "unknown"
    assert len(bench.shop.ledger) == 1


def test_same_key_sends_nothing_that_is_forbidden_by_now():
    bench = Bench(say(PRICE), final(), tools=SAME_KEY)
    deny = "permissions:\n  - {id: stop, effect: deny, tools: [set_price]}"
    newer = POLICY.replace("version: 1", "version: 2").replace("permissions:", deny)

    async def dead(sku: int, price: int, context: Any) -> object:
        bench.shop.effect(f"price {sku}={price}", context)
        load(bench, compiled(newer, SAME_KEY))
        raise RuntimeError("line dead")

    bench.shop.special["set_price"] = dead
    bench.drive()
    assert bench.outcome(1, 1) == "unknown"
    assert len(bench.shop.ledger) == 1


@pytest.mark.parametrize(
    ("tools", "error", "sent"),
    [
        (TOOLS, RuntimeError("dead"), 1), (TOOLS, NotExecuted("busy"), 1), (NOT_DONE, NotExecuted("busy"), 3),
        (NOT_DONE, RuntimeError("dead"), 1), (NOT_DONE, Failed("no"), 1), (SAME_KEY, Failed("no"), 1),
        (SAME_KEY, NotExecuted("busy"), 1),
    ],
)  # fmt: skip
def test_a_write_is_sent_again_only_where_its_spec_says_so(tools: str, error: Exception, sent: int):
    bench = Bench(say(PRICE), final(), tools=tools)
    keys = failing(bench, "set_price", 9, error, done=False)
    bench.drive()
    assert len(keys) == sent


def test_known_not_executed_goes_on_with_the_answer_of_the_second_try():
    bench = Bench(say(PRICE, ROOM), final(), tools=NOT_DONE)
    failing(bench, "set_price", 1, NotExecuted("busy"), done=False)
    bench.drive()
    assert bench.outcomes(1) == ["confirmed", "confirmed"]
    assert bench.shop.ledger == ["price 1=5", "room 1"]
    assert bench.state.spent.per_tool == {"set_price": 1, "book_room": 1}
    assert bench.state.spent.unattended == {"rooms": 2, "tool set_price": 1, "tool book_room": 1}


def test_a_call_that_died_under_a_standing_approval_may_be_sent_again():
    from tests.durable.shop import asking

    standing = "by: {roles: [lead]}, expires: 90s, standing: {max_calls: 1}"
    tools = TOOLS.replace(
        'reconcile: {manual: "Ask the post room"}', "retry: same_key\n    reconcile: {manual: x}"
    )
    bench = Bench(*[say(("send_letter", {"to": "x"}))] * 2, final(), policy=asking(standing), tools=tools)
    from engine.runtime.approvals import Approval

    bench.drive()
    bench.runtime().approve(bench.run, FIRST, by=LEAD, decision=Approval(standing=True))

    def crash(where: str) -> None:
        if where == "after effect" and len(bench.shop.ledger) == 2:
            raise Crash(where)

    with pytest.raises(Crash):
        bench.drive(crash)
    bench.drive()
    assert bench.outcome(2, 1) == "confirmed"
    assert len(bench.shop.keys) == 2, "the third line has the key of the second"


# --- probes -----------------------------------------------------------------------------------------------


def test_a_probe_that_cannot_tell_is_asked_again_later_and_later_and_then_no_more():
    bench = Bench(say(ROOM), final())
    failing(bench, "book_room", 1, RuntimeError("line dead"))

    async def blind(key: str) -> object:
        bench.shop.reads.append("find_booking")
        raise ConnectionError

    bench.shop.special["find_booking"] = blind
    bench.drive()
    asked = 1
    for seconds in PROBE_AFTER[1:]:
        assert bench.shop.reads.count("find_booking") == asked
        bench.clock.time += timedelta(seconds=seconds, milliseconds=-1)
        bench.drive()
        assert bench.shop.reads.count("find_booking") == asked, f"too early: {seconds}"
        bench.clock.time += timedelta(milliseconds=1)
        bench.drive()
        asked += 1
    assert bench.shop.reads.count("find_booking") == asked
    bench.clock.advance(days=1)
    bench.drive()
    assert bench.shop.reads.count("find_booking") == asked
    assert bench.status == "awaiting_reconciliation"


def test_a_probe_whose_answer_lacks_what_it_is_asked_for_confirms_nothing():
    bench = Bench(say(ROOM), final())
    failing(bench, "book_room", 1, RuntimeError("line dead"))

    async def vague(key: str) -> object:
        return {}

    bench.shop.special["find_booking"] = vague
    bench.drive()
    assert bench.outcome(1, 1) == "unknown"
    assert bench.status == "awaiting_reconciliation"


def test_an_operator_wins_over_a_probe_that_is_under_way():
    bench = Bench(say(ROOM), final())
    failing(bench, "book_room", 1, RuntimeError("line dead"))

    async def slow_probe(key: str) -> object:
        settle(bench, Outcome.FAILED, because="half a booking, removed by hand")
        return {"found": True}

    bench.shop.special["find_booking"] = slow_probe
    bench.drive()
    assert bench.outcome(1, 1) == "failed"
    assert bench.call(1, 1).receipt.settled_by == "operator"
    assert bench.status == "completed"


# --- the second call with the same key ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "ledger"),
    [
        (Outcome.CONFIRMED, "not_executed", 1),
        (Outcome.NOT_EXECUTED, "confirmed", 2),
        (Outcome.FAILED, "confirmed", 2),
    ],
)
def test_a_second_call_with_the_same_key_waits_for_the_first(first: Outcome, second: str, ledger: int):
    """Lexus2016/hermes-agent-evolution#1953: the Host holds it; no advice to the model is needed."""
    bench = Bench(say(PRICE), say(PRICE), final())
    failing(bench, "set_price", 1, RuntimeError("line dead"))
    bench.drive()
    assert bench.outcomes(2) == ["held"]
    assert len(bench.shop.ledger) == 1
    settle(bench, first)
    bench.drive()
    assert bench.outcomes(2) == [second]
    assert len(bench.shop.ledger) == ledger


# --- the command ------------------------------------------------------------------------------------------

POST = "  - calls: [{tool: post, args: {board: b1, text: hello}}]\n  - calls: [{tool: finish}]\n"


def test_reconcile_records_the_operator_and_drives_on(office: Office):
    office.mode("post")
    said = office.run(POST)
    assert said.code == 5
    assert office.ask("reconcile", said.run, "1.1", "--outcome", "confirmed").code == 2, "how do you know?"
    told = office.ask(
        "reconcile", said.run, "1.1", "--outcome", "confirmed", "--because", "I saw it", "--as", "op"
    )
    assert told.code == 0
    assert "recorded that 1.1 is confirmed, says op" in told.out
    receipts = office.log(said.run, "--kind", "ReceiptRecorded")
    assert receipts[-1]["settled_by"] == "operator"
    assert receipts[-1]["actor"] == {"type": "person", "id": "op", "issuer": "local"}
    assert office.ledger == ["post b1"]
    again = office.ask("reconcile", said.run, "1.1", "--outcome", "failed", "--because", "no", "--as", "op")
    assert again.code == 4
    assert "known to be confirmed" in again.err


def test_reconcile_takes_only_json_as_the_result(office: Office):
    office.mode("post")
    run = office.run(POST).run
    said = office.ask(
        "reconcile", run, "1.1", "--outcome", "confirmed", "--because", "x", "--as", "op", "--result", "{"
    )
    assert said.code == 2
