"""Owns attacks on what always holds: restrictions that something could skip, effects that could happen twice."""

from __future__ import annotations

import asyncio
from typing import Any

from engine.adapters.memory_store import MemoryStore
from engine.domain import events as e
from engine.domain.actors import Actor
from engine.domain.calls import Failed, NotExecuted
from engine.domain.ids import CallId
from engine.runtime import loading, signals
from engine.runtime.approvals import Approval
from engine.runtime.forking import Fork
from engine.runtime.library import PolicyLibrary, bundle_text
from tests.runtime.bench import LEAD, ME, POLICY, TOOLS, Bench, Crash, compiled, final, say

READ = ("get_stock", {"sku": 1})
ROOM = ("book_room", {"room": 1})
LETTER = ("send_letter", {"to": "x"})
OPS = ("request_capability", {"capability": "ops"})
DOCS = ("request_capability", {"capability": "docs"})
WIPE = ("wipe_cache", {})
BOSS = Actor(type="person", id="boss1", issuer="local", roles=("boss",))
ROLES = POLICY.replace("roles: [clerk, lead],", "roles: [clerk, lead, boss],")
V2 = ROLES.replace("version: 1", "version: 2")
PUBLISH_BY_LEAD = (
    'about: "A plain text"\n    publish: {roles: [clerk], approval: {by: {roles: [lead]}, expires: 5m}}'
)


def publishing(text: str, by: str = "lead") -> str:
    return text.replace('about: "A plain text"', PUBLISH_BY_LEAD.replace("[lead]", f"[{by}]"))


def crash_at(where: str) -> Any:
    def point(name: str) -> None:
        if name == where:
            raise Crash(name)

    return point


def crashed(bench: Bench, where: str) -> None:
    try:
        asyncio.run(bench.runtime().drive(bench.run, crash_point=crash_at(where)))
    except Crash:
        bench.clock.advance(seconds=16)
        return
    raise AssertionError("it did not crash")


def load(bench: Bench, policy: str, tools: str) -> None:
    newer = compiled(policy, tools)
    bench.newer.append(newer)
    bundle = bench.store.put_blob(bundle_text(newer))
    body = e.PolicyLoaded(policy=newer.id, digest=newer.digest, bundle=bundle, version=newer.version)
    signals.append(bench.store, bench.clock, bench.run, ME, lambda state: [body])


# --- what a newer version asks of people -------------------------------------------------------------------


def test_a_publication_that_a_newer_version_wants_more_people_for_waits_for_them():
    bench = Bench(say(("publish_letter", {"body": "text"})), final(), policy=publishing(ROLES))
    bench.drive()
    bench.load(publishing(V2, "boss"))
    bench.approve(1, 1)
    bench.drive()
    assert bench.outcomes(1) == ["held"]
    bench.approve(1, 1, by=BOSS)
    bench.drive()
    assert bench.outcomes(1) == ["committed"]


def test_a_capability_that_a_newer_version_wants_other_people_for_waits_for_them():
    bench = Bench(say(OPS), final(), policy=ROLES)
    bench.drive()
    bench.load(V2.replace("approve: [{by: {roles: [lead]}", "approve: [{by: {roles: [boss]}"))
    bench.approve(1, 1)
    bench.drive()
    assert not bench.state.grants
    bench.approve(1, 1, by=BOSS)
    bench.drive()
    assert list(bench.state.grants) == ["G1"]


def test_what_stood_for_one_rule_does_not_stand_for_a_newer_one_when_a_call_is_sent_again():
    tools = TOOLS.replace(
        "params: {to: {type: id}}\n    effects: [letter.send]\n    idempotency: {key: [call.id]}",
        "params: {to: {type: id}}\n    effects: [letter.send]\n    retry: same_key\n    idempotency: {key: [call.id]}",
    )
    stands = ROLES.replace("expires: 90s}", "expires: 90s, standing: {max_calls: 5}}")
    bench = Bench(say(LETTER), say(LETTER), final(), policy=stands, tools=tools)
    bench.drive()
    bench.runtime().approve(bench.run, CallId(1, 1), by=LEAD, decision=Approval(standing=True))
    sent: list[str] = []

    async def letter(to: str, context: Any) -> object:
        sent.append(to)
        if len(sent) == 2:
            raise Crash("the process ends")
        return {}

    bench.shop.special["send_letter"] = letter
    try:
        bench.drive()
    except BaseException:  # noqa: BLE001 - Crash, however the loop wraps it
        bench.clock.advance(seconds=16)
    assert sent == ["x", "x"]
    boss = "{id: boss, effect: require, tools: [send_letter], approval: {by: {roles: [boss]}, expires: 90s}}"
    more = f"  - {boss}\noutputs:"
    newer = stands.replace("version: 1", "version: 2").replace("outputs:", more)
    load(bench, newer, tools)
    bench.drive()
    assert sent == ["x", "x"]
    assert bench.outcome(2, 1) == "unknown"


# --- what else a newer version restricts ------------------------------------------------------------------


def test_a_held_call_whose_source_a_newer_version_does_not_use_is_not_executed():
    tools = TOOLS.replace(
        'kind: write\n    handler: "python:shop:send_letter"',
        'kind: write\n    source: papers\n    handler: "python:shop:send_letter"',
    )
    bench = Bench(say(LETTER), final(), tools=tools)
    bench.source("papers", "degraded")
    bench.drive()
    assert bench.outcomes(1) == ["held"]
    load(
        bench,
        POLICY.replace("version: 1", "version: 2").replace("[available, degraded]", "[available]"),
        tools,
    )
    bench.approve(1, 1)
    bench.drive()
    assert bench.outcomes(1) == ["not_executed"]
    assert bench.shop.ledger == []


def test_a_held_call_beyond_the_cap_of_a_newer_version_is_not_executed():
    bench = Bench(say(LETTER), final())
    bench.drive()
    bench.load(
        POLICY.replace("version: 1", "version: 2").replace(
            "calls: {total: 60}", "calls: {total: 60, per_tool: {send_letter: 0}}"
        )
    )
    bench.approve(1, 1)
    bench.drive()
    assert bench.outcomes(1) == ["not_executed"]
    assert bench.shop.ledger == []


def test_a_held_call_that_a_newer_version_hides_is_not_executed():
    bench = Bench(say(LETTER), final())
    bench.drive()
    bench.load(
        POLICY.replace("version: 1", "version: 2").replace(
            "outputs:", "visibility: {hide: [{id: no-letters, tools: [send_letter]}]}\noutputs:", 1
        )
    )
    bench.approve(1, 1)
    bench.drive()
    assert bench.outcomes(1) == ["not_executed"]
    assert bench.shop.ledger == []


def test_reads_of_one_response_are_counted_one_by_one_where_a_newer_version_counts_them():
    deny = "  - {id: two, effect: deny, tools: [get_stock], when: \"count('get_stock') >= 2\"}\noutputs:"
    bench = Bench(say(*[("get_stock", {"sku": n}) for n in range(5)]), final())
    bench.load(POLICY.replace("version: 1", "version: 2").replace("outputs:", deny, 1))
    bench.drive()
    assert bench.outcomes(1) == ["confirmed", "confirmed", "rejected", "rejected", "rejected"]


def test_a_tool_that_a_hide_takes_away_meanwhile_does_not_run_in_the_same_response():
    hidden = POLICY.replace(
        "outputs:",
        "visibility: {hide: [{id: once, tools: [book_room], when: \"count('book_room') >= 1\"}]}\noutputs:",
        1,
    )
    bench = Bench(say(ROOM, ("book_room", {"room": 2})), final(), policy=hidden)
    bench.drive()
    assert bench.shop.ledger == ["room 1"]


# --- approvals ---------------------------------------------------------------------------------------------


def test_an_approval_that_expired_before_its_call_was_sent_is_not_used():
    bench = Bench(say(LETTER), final())
    bench.drive()
    bench.approve(1, 1)
    bench.clock.advance(days=3)
    bench.drive()
    assert bench.shop.ledger == []


# --- forks ----------------------------------------------------------------------------------------------------


def fork_at(bench: Bench, at: int) -> None:
    forked = bench.runtime().fork(bench.run, Fork(at), by=ME)
    bench.run, bench._state = forked.run, None
    bench._read.clear()


def test_a_grant_that_was_revoked_after_the_fork_is_revoked_in_it():
    bench = Bench(say(DOCS), say(("ask_user", {"question": "?"})), final())
    bench.drive()
    at = bench.of_kind("ModelTurnRecorded")[1].seq - 2
    bench.runtime().revoke(bench.run, "G1", by=ME)
    fork_at(bench, at)
    assert bench.state.grants["G1"].ended == "revoked"


def test_a_write_that_is_under_way_again_is_not_sent_by_a_fork():
    tools = TOOLS.replace(
        "effects: [room.book]\n    idempotency",
        "effects: [room.book]\n    retry: known_not_executed\n    idempotency",
    )
    bench = Bench(say(ROOM), final(), tools=tools)
    sent: list[int] = []

    async def book(room: int, context: Any) -> object:
        sent.append(room)
        if len(sent) == 1:
            raise NotExecuted("busy")
        raise Crash("the process ends")

    bench.shop.special["book_room"] = book
    try:
        bench.drive()
    except BaseException:  # noqa: BLE001
        bench.clock.advance(seconds=16)
    assert len(sent) == 2
    at = bench.of_kind("ReceiptRecorded")[0].seq
    fork_at(bench, at)
    bench.shop.special.pop("book_room")
    bench.drive()
    assert bench.shop.ledger == []


def test_a_hold_that_two_runs_share_is_given_back_under_one_key():
    bench = Bench(say(("reserve", {"sku": 1})), say(("ask_user", {"question": "?"})), final())
    bench.drive()
    keys: list[str] = []

    async def release(hold: str, context: Any) -> object:
        keys.append(context.idempotency_key)
        return {}

    bench.shop.special["release"] = release
    origin = bench.run
    fork_at(bench, bench.of_kind("ModelTurnRecorded")[1].seq - 2)
    bench.cancel()
    bench.drive()
    bench.run, bench._state = origin, None
    bench._read.clear()
    bench.cancel()
    bench.drive()
    assert len(keys) == 2
    assert len(set(keys)) == 1


# --- sending again -----------------------------------------------------------------------------------------


STATE = """state:
  cart: {owner: app, fields: {id: {type: id}}}
"""


def test_a_write_is_not_sent_again_on_other_state_than_the_model_saw():
    tools = TOOLS.replace(
        "effects: [room.book]\n    idempotency",
        "effects: [room.book]\n    retry: known_not_executed\n    idempotency",
    )
    policy = POLICY.replace("outputs:", STATE + "outputs:", 1).replace(
        "tools: [book_room, reserve, set_price]",
        "tools: [book_room, reserve, set_price]\n    fresh: [{state: cart, same_version_as: proposal}]",
    )
    bench = Bench(say(ROOM), final(), policy=policy, tools=tools)
    bench.runtime().update_state(bench.run, "cart", {"id": "a"}, by=ME)
    sent: list[int] = []

    async def book(room: int, context: Any) -> object:
        sent.append(room)
        if len(sent) == 1:
            bench.runtime().update_state(bench.run, "cart", {"id": "b"}, by=ME)
            raise NotExecuted("busy")
        return {}

    bench.shop.special["book_room"] = book
    bench.drive()
    assert sent == [1]
    assert bench.outcome(1, 1) == "not_executed"


# --- stuck for ever ----------------------------------------------------------------------------------------


def test_a_read_that_ends_the_process_each_time_is_given_up():
    bench = Bench(say(READ), final())
    for _ in range(3):
        crashed(bench, "before effect")
    bench.drive()
    assert bench.outcome(1, 1) == "failed"
    assert bench.status == "completed"


def test_an_error_whose_words_cannot_be_stored_is_recorded_all_the_same():
    bench = Bench(say(READ), say(ROOM), final())

    async def stock(sku: int) -> object:
        raise Failed("broken \ud800")

    async def book(room: int, context: Any) -> object:
        raise Failed("broken \ud800")

    bench.shop.special.update(get_stock=stock, book_room=book)
    bench.drive()
    assert bench.outcome(1, 1) == "failed"
    assert bench.outcome(2, 1) == "failed"


def test_a_response_that_a_content_filter_cut_executes_no_write():
    bench = Bench(say(ROOM, finish="filter"), final())
    bench.drive()
    assert bench.shop.ledger == []


# --- versions loaded meanwhile -----------------------------------------------------------------------------


class StartsWhileLoading:
    """A store in which somebody starts and drives a Run between the look at the open Runs and the load."""

    def __init__(self, store: Any, start: Any) -> None:
        self._store, self._start = store, start

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def runs(self, *args: Any, **more: Any) -> Any:
        found = self._store.runs(*args, **more)
        start, self._start = self._start, None
        if start is not None:
            start()
        return found


def test_a_run_that_starts_just_while_a_version_is_loaded_is_restricted_by_it():
    store = MemoryStore()
    late: list[Bench] = []

    def start() -> None:
        late.append(Bench(say(("ask_user", {"question": "?"})), store=store))
        late[0].drive()

    bench = Bench(say(("ask_user", {"question": "?"})), store=store)
    newer = compiled(POLICY.replace("version: 1", "version: 2"))
    loading.load_policy(StartsWhileLoading(store, start), PolicyLibrary(store), bench.clock, newer, ME)
    assert late[0].state.restricted_by
