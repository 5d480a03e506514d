"""Owns the case of a policy version that is loaded just when a Run starts: its next drive tells the Run of it."""

from __future__ import annotations

import asyncio

from engine.domain.ids import CallId
from engine.ports import LoadedPolicy
from engine.runtime.forking import Fork
from engine.runtime.library import bundle_text
from tests.durable.shop import COPIES, asking, letter, letters
from tests.runtime.bench import LEAD, POLICY, TOOLS, Bench, compiled, final, say

STRICTER = POLICY.replace("tools: [get_stock, ping]", "tools: [ping]").replace("version: 1", "version: 2")


def test_a_version_that_no_run_was_told_of_restricts_at_the_next_drive() -> None:
    bench = Bench(say(("get_stock", {"sku": 1})), final())
    stricter = compiled(STRICTER)
    bundle = bench.store.put_blob(bundle_text(stricter))
    bench.store.load_policy(LoadedPolicy("shop", 2, stricter.digest, bundle, bench.clock.now(), "ops"))
    bench.drive()
    kinds = [event.kind for event in bench.log]
    assert kinds.index("PolicyLoaded") < kinds.index("ModelAttemptStarted")
    assert bench.outcome(1, 1) == "rejected"
    assert not bench.shop.reads


def draining(bench: Bench) -> None:
    """As `policy load --drain` that was killed before it told a single Run."""
    stricter = compiled(STRICTER)
    bundle = bench.store.put_blob(bundle_text(stricter))
    now = bench.clock.now()
    bench.store.load_policy(LoadedPolicy("shop", 2, stricter.digest, bundle, now, "ops", drain=True))


def test_a_version_that_ends_open_runs_ends_those_that_it_could_not_tell() -> None:
    bench = Bench(say(("ping", {})), final())
    draining(bench)
    bench.drive()
    assert bench.state.ending is not None
    assert bench.state.ending[:2] == ("expired", "drain")


def test_a_version_ends_no_run_that_is_started_or_forked_in_spite_of_it() -> None:
    bench = Bench(say(("ping", {})), final())
    draining(bench)
    bench.drive()
    bench.clock.advance(seconds=1)
    forked = bench.runtime().fork(bench.run, Fork(2), by=LEAD).run
    later = Bench(say(("ping", {})), final(), store=bench.store, clock=bench.clock)
    for run in (forked, later.run):
        bench.run, bench._state = run, None
        bench._read.clear()
        bench.gateway = later.gateway
        assert not bench.state.draining
        asyncio.run(bench.runtime().drive(run, crash_point=None))
        assert not bench.runtime().state(run).draining


def test_a_run_is_told_once() -> None:
    bench = Bench(say(("ping", {})), final())
    bench.load(STRICTER)
    bench.drive()
    assert len(bench.of_kind("PolicyLoaded")) == 1


def test_a_yes_lasts_no_longer_than_the_newest_version_lets_it():
    """Given under a day, loaded is five minutes: what restricts holds at once."""
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 1d")
    bench.drive()
    bench.runtime().approve(bench.run, CallId(1, 1), by=LEAD)
    bench.clock.advance(hours=2)
    shorter = asking("by: {roles: [lead]}, expires: 5m").replace("version: 1", "version: 2")
    bench.load(shorter, tools=COPIES)
    bench.drive()
    receipt = bench.call(1, 1).receipt
    assert receipt is not None
    assert (receipt.outcome, receipt.denial, bench.shop.ledger) == ("not_executed", "expired", [])


RENAMED = POLICY.replace("version: 1", "version: 2").replace(
    "id: rooms\n    effect: allow\n    roles: [clerk]\n    tools: [book_room, reserve, set_price]\n"
    '    unattended: {because: "test", max_per_run: 50}',
    "id: fewer\n    effect: allow\n    roles: [clerk]\n    tools: [book_room, reserve, set_price]\n"
    '    unattended: {because: "test", max_per_run: 2}',
)


def rooms(*numbers: int) -> list[tuple[str, dict[str, int]]]:
    return [("book_room", {"room": number}) for number in numbers]


def test_the_cap_of_a_rule_counts_under_whatever_name_the_rule_had_before():
    """One room under `rooms`, then a version in which the rule is `fewer` and permits two in a Run."""
    assert "id: fewer" in RENAMED
    bench = Bench(say(*rooms(1)), say(("ping", {})), say(*rooms(2)), say(*rooms(3)), final())

    async def ping() -> object:
        bench.load(RENAMED)
        return "pong"

    bench.shop.special["ping"] = ping
    bench.drive()
    assert bench.shop.ledger == ["room 1", "room 2"]
    assert bench.outcomes(4) == ["rejected"]
    assert "book_room" not in {tool.name for tool in bench.requests[-1].tools}, "nor is it offered"


def test_writes_that_overlap_stay_within_the_cap_of_the_newest_version():
    tools = TOOLS.replace(
        "    effects: [room.book]\n", "    effects: [room.book]\n    serialize_by: [room]\n"
    )
    bench = Bench(say(*rooms(1, 2, 3)), final(), tools=tools)
    bench.load(
        POLICY.replace("version: 1", "version: 2").replace("max_per_run: 50", "max_per_run: 1"), tools=tools
    )
    bench.drive()
    assert bench.shop.ledger == ["room 1"]
