"""The read cache: an answer used again while nothing may have changed it, as a receipt of its own."""

from __future__ import annotations

from typing import Any

import pytest

from engine.adapters.function_tools import ToolContext
from engine.domain.messages import HostBlock
from engine.policy.compiler import compile_policy
from tests.facts.world import POLICY, TOOLS, Desk, DeskRun
from tests.runtime.bench import final, say

PRICE = ("get_price", {"sku": "tea-assam"})
OTHER = ("get_price", {"sku": "tea-sencha"})
RATE = ("get_rate", {})
SET = ("set_price", {"sku": "tea-assam", "price": 999})


def played(*turns: Any, **options: Any) -> DeskRun:
    bench = DeskRun(*turns, final(), **options)
    bench.drive()
    return bench


def later(bench_of: list[DeskRun], **delay: float) -> Any:
    def play(request: Any) -> Any:
        bench_of[0].clock.advance(**delay)
        return say(PRICE)

    return play


def after(**delay: float) -> DeskRun:
    """The same read twice, with time between."""
    held: list[DeskRun] = []
    bench = DeskRun(say(PRICE), later(held, **delay), final())
    held.append(bench)
    bench.drive()
    return bench


def lost(what: str) -> Desk:
    """A desk whose write is done, and whose answer is lost."""
    desk = Desk()

    def set_price(sku: str, price: int, context: ToolContext) -> object:
        desk.ledger.append(f"price {sku}={price}")
        raise TimeoutError("no answer")

    desk.special[what] = set_price
    return desk


def test_a_hit_is_a_receipt_of_its_own_that_names_call_and_age():
    bench = after(seconds=20)
    receipt = bench.call(2, 1).receipt
    assert bench.shop.reads == ["get_price tea-assam"]
    assert (receipt.settled_by, receipt.cached_from, receipt.detail) == (
        "cache",
        (1, 1),
        "from call 1.1, 20 s old",
    )
    assert receipt.obtained_at == bench.call(1, 1).receipt.at
    assert bench.call(2, 1).fields == {"price": 1290}


def test_the_model_is_told_which_call_an_answer_is_from():
    bench = after(seconds=20)
    (shown,) = bench.results(2)
    assert '"from_call":"1.1"' in shown.text
    assert '"price":1290' in shown.text


def test_a_hit_brings_the_evidence_of_the_first_answer():
    bench = after(seconds=20)
    assert bench.call(2, 1).receipt.evidence == bench.call(1, 1).receipt.evidence == ("E1",)
    assert bench.state.evidence["E1"].superseded == ""


@pytest.mark.parametrize(("seconds", "reads"), [(59, 1), (60, 1), (61, 2)])
def test_an_answer_lives_as_long_as_its_ttl(seconds, reads):
    assert len(after(seconds=seconds).shop.reads) == reads


def test_an_answer_lives_no_longer_than_its_source_may_be_old():
    policy = POLICY.replace(
        "permissions:", "sources: {prices: {usable_when: [available], max_age: 10s}}\npermissions:"
    )
    held: list[DeskRun] = []
    bench = DeskRun(say(PRICE), later(held, seconds=11), final(), policy=policy)
    held.append(bench)
    bench.drive()
    assert len(bench.shop.reads) == 2


def test_other_arguments_are_another_answer():
    assert len(played(say(PRICE), say(OTHER)).shop.reads) == 2


def test_a_hit_in_the_same_response_as_the_read():
    bench = played(say(PRICE, PRICE))
    assert bench.outcomes(1) == ["confirmed", "confirmed"]
    assert bench.shop.reads == ["get_price tea-assam"]
    assert bench.call(1, 2).receipt.cached_from == (1, 1)


def test_tools_without_a_cache_are_read_each_time():
    find = ("find_person", {"name": "ann"})
    assert len(played(say(find), say(find)).shop.reads) == 2


# --- invalidation ---------------------------------------------------------------------------------------------


def test_a_write_on_the_same_source_invalidates():
    bench = played(say(PRICE), say(SET), say(PRICE))
    assert bench.shop.reads == ["get_price tea-assam"] * 2
    assert '"price":999' in bench.results(3)[0].text


def test_a_write_in_the_same_response_invalidates_what_was_read_before_it():
    bench = played(say(PRICE, SET, PRICE))
    assert bench.shop.reads == ["get_price tea-assam"] * 2


def test_a_write_of_unknown_outcome_invalidates():
    bench = played(say(PRICE), say(SET), say(PRICE), shop=lost("set_price"))
    assert bench.outcomes(2) == ["unknown"]
    assert bench.shop.reads == ["get_price tea-assam"] * 2


def test_while_an_outcome_is_unknown_nothing_is_answered_from_the_cache():
    """The write may still arrive after the read that came after it."""
    bench = played(say(PRICE), say(SET), say(PRICE), say(PRICE), shop=lost("set_price"))
    assert bench.shop.reads == ["get_price tea-assam"] * 3


def test_a_write_that_was_not_executed_invalidates_nothing():
    from engine import NotExecuted

    desk = Desk()

    def set_price(sku: str, price: int) -> object:
        raise NotExecuted("closed")

    desk.special["set_price"] = set_price
    assert len(played(say(PRICE), say(SET), say(PRICE), shop=desk).shop.reads) == 1


def test_a_declared_effect_invalidates_across_sources_and_other_writes_do_not():
    bench = played(say(RATE), say(SET), say(RATE), say(("set_rate", {})), say(RATE))
    assert bench.shop.reads == ["get_rate", "get_rate"]
    assert [bench.call(turn, 1).receipt.settled_by for turn in (1, 3, 5)] == ["tool", "cache", "tool"]


def test_a_read_that_was_sent_before_a_write_can_never_put_the_old_value_back():
    """The read is sent again after a crash: its answer counts from when it was sent last, not from its receipt."""
    bench = played(say(PRICE, SET), say(PRICE))
    first, write, second = bench.call(1, 1), bench.call(1, 2), bench.call(2, 1)
    assert first.started_seq < write.started_seq < second.started_seq
    assert second.receipt.cached_from is None
    assert bench.state.written["source:prices"] > first.started_seq


def test_a_write_and_the_same_write_again_are_two_effects():
    bench = played(say(SET), say(SET), say(PRICE), say(PRICE))
    assert bench.shop.ledger == ["price tea-assam=999"] * 2
    assert bench.shop.reads == ["get_price tea-assam"]


@pytest.mark.parametrize("kind", ["write", "hybrid"])
def test_a_cache_on_what_changes_something_is_a_fault_of_the_file(kind):
    tools = TOOLS.replace(
        "effects: [rate.set]", "effects: [rate.set]\n    cache: {ttl: 5s, key: []}"
    ).replace("set_rate:\n    kind: write", f"set_rate:\n    kind: {kind}")
    found = compile_policy("desk.policy.yaml", {"shop.tools.yaml": tools, "desk.policy.yaml": POLICY})
    assert found.policy is None
    assert any("cache" in each.message for each in found.diagnostics)


# --- permission -----------------------------------------------------------------------------------------------


def test_a_hit_never_skips_permission():
    def closed(request: Any) -> Any:
        bench.source("prices", "unauthorized")
        return say(PRICE)

    bench = DeskRun(say(PRICE), closed, say(PRICE), final())
    bench.drive()
    assert bench.outcomes(2) == ["fenced"]
    assert bench.outcomes(3) == ["rejected"]
    assert bench.shop.reads == ["get_price tea-assam"]


def test_a_rule_that_closes_a_read_closes_its_cached_answer_too():
    policy = POLICY.replace(
        "state:\n",
        "  - {id: once, effect: deny, tools: [get_price], when: \"count('get_price') >= 1\"}\nstate:\n",
        1,
    )
    bench = played(say(PRICE), say(PRICE), policy=policy)
    assert bench.outcomes(2) == ["rejected"]


# --- what the model hears -------------------------------------------------------------------------------------


def heard(bench: DeskRun, number: int) -> list[str]:
    return [
        each.text
        for each in bench.requests[number].messages
        if isinstance(each, HostBlock) and each.text.startswith("Host record")
    ]


def test_the_next_request_marks_reads_that_a_write_made_out_of_date():
    bench = played(say(PRICE), say(SET), say(RATE))
    said = "Host record: call 2.1 may have made these earlier results out of date: 1.1 (get_price)"
    assert heard(bench, 1) == []
    assert heard(bench, 2) == [said]
    assert heard(bench, 3) == [said]


def test_a_mark_follows_the_declared_effects():
    bench = played(say(RATE, PRICE), say(SET), say(("set_rate", {})))
    assert heard(bench, 2) == [
        "Host record: call 2.1 may have made these earlier results out of date: 1.2 (get_price)"
    ]
    assert heard(bench, 3)[1:] == [
        "Host record: call 3.1 may have made these earlier results out of date: 1.1 (get_rate)"
    ]


def test_a_read_is_marked_once():
    bench = played(say(PRICE), say(SET), say(SET))
    assert len(heard(bench, 3)) == 1


def test_evidence_of_a_read_that_is_out_of_date_may_not_be_cited():
    publish = ("publish_note", {"body": "It is so [[E1]]."})
    bench = played(say(PRICE), say(SET), say(publish))
    assert bench.outcomes(3) == ["rejected"]
    assert "out of scope (made out of date by call 2.1)" in bench.call(3, 1).refusal.message
