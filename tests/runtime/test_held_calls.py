"""Calls that wait for people: what may happen to each kind while it waits, and what is decided again."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lifecycle.steps import Wait
from tests.runtime.bench import OTHER_LEAD, POLICY, START, Bench, Crash, final, say

LETTER = ("send_letter", {"to": "a"})
STOCK = ("get_stock", {"sku": 1})
ROOM = ("book_room", {"room": 1})
PUBLISH = ("publish_letter", {"body": "text"})
APPROVED = POLICY.replace(
    '  letter:\n    about: "A plain text"',
    '  letter:\n    about: "A plain text"\n    publish: {roles: [clerk], approval: {by: {roles: [lead]}, expires: 5m}}',
)
FORBIDDEN = APPROVED.replace("publish: {roles: [clerk]", "publish: {roles: [lead]").replace(
    "version: 1", "version: 2"
)


def test_a_publication_waits_for_people_and_is_committed_when_they_agree():
    bench = Bench(say(PUBLISH, ("finish", {})), final(), policy=APPROVED)
    bench.drive()
    assert bench.status == "awaiting_approval"
    assert "no_pending_approvals" in bench.call(1, 2).refusal.gates
    assert bench.runtime().outputs(bench.run) == {}
    bench.approve(1, 1)
    bench.drive()
    assert bench.outcomes(1)[0] == "committed"
    assert bench.runtime().outputs(bench.run)["letter"]["body"] == "text"
    assert bench.status == "completed"


def test_a_publication_that_people_refuse_is_not_executed():
    bench = Bench(say(PUBLISH), final(), policy=APPROVED)
    bench.drive()
    bench.refuse(1, 1, because="too short")
    bench.drive()
    assert bench.outcomes(1) == ["not_executed"]
    assert "too short" in bench.call(1, 1).receipt.detail
    assert bench.runtime().outputs(bench.run) == {}


def test_a_publication_that_a_newer_policy_forbids_is_not_committed_whoever_approved():
    bench = Bench(say(PUBLISH), final(), policy=APPROVED)
    bench.drive()
    bench.load(FORBIDDEN)
    bench.approve(1, 1)
    bench.drive()
    assert bench.outcomes(1) == ["not_executed"]
    assert bench.runtime().outputs(bench.run) == {}


def test_reads_go_on_beside_a_held_call_and_writes_wait():
    bench = Bench(say(LETTER, STOCK, ROOM, ("wipe_cache", {})), final())
    bench.drive()
    assert bench.outcomes(1) == ["held", "confirmed", "held", "rejected"]
    assert bench.call(1, 3).held == "queued"
    bench.approve(1, 1)
    bench.drive()
    assert bench.shop.ledger == ["letter a", "room 1"]
    assert bench.status == "completed"


def test_a_queued_write_goes_on_when_the_call_before_it_is_refused():
    bench = Bench(say(LETTER, ROOM), final())
    bench.drive()
    bench.refuse(1, 1)
    bench.drive()
    assert bench.shop.ledger == ["room 1"]


def test_a_later_call_that_was_approved_first_keeps_its_place():
    bench = Bench(say(LETTER, ("send_letter", {"to": "b"})), final())
    bench.drive()
    bench.approve(1, 2)
    bench.drive()
    assert bench.shop.ledger == []
    bench.approve(1, 1)
    bench.drive()
    assert bench.shop.ledger == ["letter a", "letter b"]


def test_the_model_is_not_asked_while_a_call_of_its_last_response_is_held():
    bench = Bench(say(LETTER), final())
    bench.drive()
    bench.reply("hurry up")
    bench.drive()
    assert len(bench.requests) == 1
    assert bench.status == "awaiting_approval"


def test_a_wait_says_when_it_ends_by_itself():
    bench = Bench(say(LETTER), final())
    driven = bench.drive()
    assert isinstance(driven.step, Wait)
    assert driven.step.until is not None
    assert (driven.step.until - START).total_seconds() == 90


def test_a_grant_that_expires_while_its_call_waits_takes_the_permission_away():
    tools_need_grant = (
        POLICY.replace(
            "{id: letters, effect: ask, roles: [clerk], tools: [send_letter]",
            "{id: letters, effect: ask, roles: [clerk], tools: [send_letter], needs: [docs]",
        )
        .replace("expires: 90s", "expires: 3h")
        .replace("wall_time: 1h", "wall_time: 9h")
    )
    bench = Bench(
        say(("request_capability", {"capability": "docs"})), say(LETTER), final(), policy=tools_need_grant
    )
    driven = bench.drive()
    assert bench.outcomes(2) == ["held"]
    assert isinstance(driven.step, Wait)
    assert driven.step.until is not None
    bench.clock.time = driven.step.until
    bench.drive()
    assert bench.of_kind("GrantExpired")
    bench.approve(2, 1)
    bench.drive()
    assert bench.shop.ledger == []
    assert bench.outcomes(2) == ["not_executed"]


def test_a_source_that_is_shut_while_its_call_waits_is_not_written_to():
    from tests.runtime.bench import TOOLS

    tools = TOOLS.replace(
        "  send_letter:\n    kind: write", "  send_letter:\n    kind: write\n    source: papers"
    )
    bench = Bench(say(LETTER), final(), tools=tools)
    bench.drive()
    bench.source("papers", "unauthorized")
    bench.approve(1, 1)
    bench.drive()
    assert bench.shop.ledger == []
    assert "papers" in bench.call(1, 1).receipt.detail


def test_an_approval_is_not_lost_in_a_crash_before_the_call_starts():
    bench = Bench(say(LETTER), final())
    bench.drive()
    bench.approve(1, 1)

    def point(where: str) -> None:
        raise Crash(where)

    with pytest.raises(Crash):
        bench.drive(point)
    bench.drive()
    assert bench.shop.ledger == ["letter a"]


def test_the_same_person_twice_is_one_person():
    two = POLICY.replace(
        "{by: {roles: [lead]}, expires: 90s}", "{by: {roles: [lead]}, quorum: 2, expires: 90s}"
    )
    bench = Bench(say(LETTER), final(), policy=two)
    bench.drive()
    bench.approve(1, 1)
    bench.approve(1, 1)
    bench.drive()
    assert bench.status == "awaiting_approval"
    bench.approve(1, 1, by=OTHER_LEAD)
    bench.drive()
    assert bench.shop.ledger == ["letter a"]


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_cancel_wins_over_an_approval_that_was_given(when: str):
    bench = Bench(say(LETTER, STOCK), final())
    if when == "during":

        async def get_stock(sku: int) -> object:
            bench.cancel()
            return {}

        bench.shop.special["get_stock"] = get_stock
    bench.drive()
    if when == "before":
        bench.approve(1, 1)
        bench.cancel()
        bench.drive()
    assert bench.shop.ledger == []
    assert bench.status == "cancelled"


def test_finish_held_by_an_unknown_effect_is_asked_again_with_all_its_gates():
    """The user spoke while it waited: the model hears that before the Run may end."""
    bench = Bench(say(("set_price", {"sku": 1, "price": 2})), final(), final())
    lost: list[Any] = []

    async def set_price(sku: int, price: int, context: Any) -> object:
        lost.append(context.call)
        raise ConnectionError

    bench.shop.special["set_price"] = set_price
    bench.drive()
    bench.reply("and one more thing")
    bench.drive()
    assert bench.status == "awaiting_reconciliation"
    from engine.domain import events as e
    from engine.runtime import signals

    settled = e.ReceiptRecorded(call=lost[0], tool="set_price", outcome="confirmed", settled_by="operator")
    signals.append(bench.store, bench.clock, bench.run, OTHER_LEAD, lambda _: [settled])
    bench.drive()
    assert bench.outcomes(2) == ["rejected"]
    assert bench.call(2, 1).refusal.gates == ("run_may_end",)
    assert bench.outcomes(3) == ["committed"]
    assert bench.status == "completed"


def test_a_finish_proposed_before_the_model_heard_the_user_is_refused():
    """The input came while the model was answering: it ends nothing that the user has just added to."""

    def asked(request: Any) -> Any:
        bench.reply("wait, also this")
        return final()

    bench = Bench(asked, say(ROOM), final())
    bench.drive()
    assert bench.call(1, 1).refusal.gates == ("run_may_end",)
    assert bench.shop.ledger == ["room 1"]
    assert bench.status == "completed"
