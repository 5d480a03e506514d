"""Owns the promises of forks and of heads kept outside: nothing is done twice, nothing is lost, nothing is hidden."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest

from engine.domain.errors import UsageError
from engine.domain.ids import CallId, RunId
from engine.runtime.audit import verify
from engine.runtime.forking import Fork, Forked
from tests.durable.conftest import Office
from tests.durable.shop import person
from tests.durable.test_capabilities_life import DENY_ROOMS, newer
from tests.runtime.bench import LEAD, Bench, final, one_result_per_proposal, say, with_lines

READ = ("get_stock", {"sku": 1})
ROOM = ("book_room", {"room": 1})
LETTER = ("send_letter", {"to": "x"})
ASK = ("ask_user", {"question": "?"})
OPERATOR = person("op")


def fork(bench: Bench, at: int, **more: Any) -> Forked:
    return bench.runtime().fork(bench.run, Fork(at, **more), by=OPERATOR)


def follow(bench: Bench, run: RunId) -> Bench:
    """The bench on the new Run; its first one stays in the store."""
    bench.run, bench._state = run, None
    bench._read.clear()
    return bench


def seq_of(bench: Bench, kind: str, nth: int = 0) -> int:
    return bench.of_kind(kind)[nth].seq


def test_a_fork_goes_on_from_the_prefix_and_repeats_no_effect():
    bench = Bench(say(ROOM), say(READ), final())
    bench.drive()
    assert bench.status == "completed"
    origin = bench.run
    forked = fork(bench, seq_of(bench, "ModelTurnRecorded", 1) - 2)
    follow(bench, forked.run).drive()
    assert bench.status == "completed"
    assert bench.shop.ledger == ["room 1"]
    assert bench.shop.reads.count("get_stock 1") == 2
    started = bench.of_kind("RunStarted")[0]
    assert (started.body.forked_from, started.actor) == (origin, OPERATOR)
    assert verify(bench.store, forked.run).holds
    assert verify(bench.store, origin).holds
    assert bench.outcome(1, 1) == "confirmed"


def test_a_fork_can_be_made_at_every_event_and_never_repeats_an_effect():
    bench = Bench(say(READ, ROOM), say(("reserve", {"sku": 2}), LETTER), final())
    bench.drive()
    bench.approve(2, 2)
    bench.drive()
    effects = list(bench.shop.ledger)
    last = seq_of(bench, "SettlingStarted") - 1
    origin = bench.run
    for at in range(2, last + 1):
        other = Bench(*[say(ASK)] * 4, store=bench.store)
        follow(other, other.runtime().fork(origin, Fork(at), by=OPERATOR).run)
        other.drive()
        assert other.status in ("awaiting_input", "awaiting_reconciliation"), at
        other.cancel()
        other.drive()
        again = [line for line in other.shop.ledger if not line.startswith("release")]
        assert again == [], f"event {at}"
        one_result_per_proposal(other.log)
        assert verify(other.store, other.run).holds
    assert bench.shop.ledger == effects
    with pytest.raises(UsageError, match="cannot be forked"):
        fork(bench, last + 1)
    with pytest.raises(UsageError, match="cannot be forked"):
        fork(bench, 1)


def test_a_write_under_way_is_known_in_the_fork_as_the_first_run_came_to_know_it():
    bench = Bench(say(ROOM), final())
    bench.drive()
    start = seq_of(bench, "ExecutionStarted")
    forked = fork(bench, start)
    assert bench.runtime().state(forked.run).calls[CallId(1, 1)].receipt.outcome == "confirmed"
    assert forked.later == ()


def test_a_write_under_way_whose_end_nobody_knows_is_unknown_in_the_fork():
    bench = Bench(say(("set_price", {"sku": 1, "price": 2})), final())

    async def dead(sku: int, price: int, context: Any) -> object:
        raise ConnectionError

    bench.shop.special["set_price"] = dead
    bench.drive()
    forked = fork(bench, seq_of(bench, "ExecutionStarted"))
    assert bench.runtime().state(forked.run).unknown_calls


def test_what_was_sent_after_the_fork_is_named():
    bench = Bench(say(READ), say(ROOM), final())
    bench.drive()
    forked = fork(bench, seq_of(bench, "ModelTurnRecorded"))
    assert forked.later == (CallId(2, 1),)
    alerts = [event.body for event in bench.store.events(forked.run) if event.kind == "OperatorAlerted"]
    assert "2.1" in alerts[0].message


def test_an_approval_of_the_prefix_is_not_spent_again():
    bench = Bench(say(LETTER), final())
    bench.drive()
    bench.approve(1, 1)
    at = seq_of(bench, "ApprovalGiven")
    bench.drive()
    forked = fork(bench, at)
    follow(bench, forked.run).drive()
    assert bench.shop.ledger == ["letter x"]
    assert bench.outcome(1, 1) == "fenced"


def test_a_hold_that_the_first_run_gave_back_is_not_given_back_again():
    bench = Bench(say(("reserve", {"sku": 1})), say(READ), final())
    bench.drive()
    assert bench.shop.ledger == ["hold 1", "release H1"]
    forked = fork(bench, seq_of(bench, "ModelTurnRecorded", 1))
    follow(bench, forked.run).drive()
    assert bench.shop.ledger == ["hold 1", "release H1"]


def test_a_skipped_call_is_not_executed_and_its_siblings_are_proposed_anew():
    bench = Bench(say(READ, ROOM), say(READ), final())
    bench.drive()
    forked = fork(bench, seq_of(bench, "ModelTurnRecorded"), skip=(CallId(1, 2),))
    assert forked.closed == (CallId(1, 1), CallId(1, 2))
    follow(bench, forked.run)
    assert bench.outcomes(1) == ["fenced", "not_executed"]
    assert bench.call(1, 2).receipt.detail == "skipped by op"


def test_a_replaced_read_has_the_given_answer():
    bench = Bench(say(READ, ROOM), final())
    bench.drive()
    at = seq_of(bench, "ModelTurnRecorded")
    forked = fork(bench, at, replace={CallId(1, 1): {"left": 99, "level": "L9"}})
    follow(bench, forked.run).drive()
    assert json.loads(bench.results(1)[0].text)["result"] == {"left": 99, "level": "L9"}
    receipt = bench.call(1, 1).receipt
    assert (receipt.settled_by, receipt.detail) == ("operator", "answered by op")
    assert bench.state.evidence["E1"].item.id == "L9"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"skip": (CallId(9, 1),)}, "not open"),
        ({"replace": {CallId(1, 2): {}}}, "is no read"),
        ({"replace": {CallId(7, 1): {}}}, "not open"),
    ],
)
def test_only_what_is_open_there_can_be_skipped_or_replaced(more: Any, why: str):
    bench = Bench(say(READ, ROOM), final())
    bench.drive()
    with pytest.raises(UsageError, match=why):
        fork(bench, seq_of(bench, "ModelTurnRecorded"), **more)
    with pytest.raises(UsageError, match="not open"):
        fork(bench, seq_of(bench, "ModelTurnRecorded", 1), skip=(CallId(1, 2),))


def test_a_fork_is_restricted_by_what_was_loaded_since():
    bench = Bench(say(READ), say(ROOM), final())
    bench.drive()
    bench.runtime().load_policy(newer(DENY_ROOMS), by=LEAD)
    forked = fork(bench, seq_of(bench, "ModelTurnRecorded"))
    bench.shop.ledger.clear()
    follow(bench, forked.run).drive()
    assert bench.outcomes(2) == ["rejected"]


# --- the commands -----------------------------------------------------------------------------------------

TURNS = """
  - calls: [{tool: look, args: {shelf: 3}}, {tool: post, args: {board: b1, text: hi}}]
  - calls: [{tool: finish}]
"""


def test_fork_and_resume(office: Office):
    run = office.run(TURNS).run
    (turn, _) = office.log(run, "--kind", "ModelTurnRecorded")
    (office.folder / "answer.json").write_text('{"papers": 7}')
    said = office.ask("fork", run, "--at", str(turn["seq"]), "--replace", "1.1=answer.json", "--as", "op")
    assert said.code == 0, said.err
    assert "sent after that event, unknown to the new Run: 1.2" in said.out
    (new,) = {word for word in said.out.split() if word.startswith("r") and len(word) == 17} - {run}
    done = office.ask("resume", new)
    assert done.code == 0, done.out
    assert office.ledger == ["post b1"]
    assert office.ask("fork", run, "--at", "99", "--as", "op").code == 2
    assert office.ask("fork", run, "--at", "4", "--replace", "1.1=none.json", "--as", "op").code == 2


def test_a_head_kept_outside_shows_a_log_that_was_cut(office: Office):
    run = office.run(TURNS).run
    assert office.ask("verify", run, "--head", "heads.txt").code == 0
    kept = (office.folder / "heads.txt").read_text()
    assert kept.startswith(run)
    assert office.ask("verify", run, "--head", "heads.txt").code == 0
    assert (office.folder / "heads.txt").read_text() == kept
    with sqlite3.connect(office.folder / "office.db") as database:
        for (name,) in database.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            database.execute(f"drop trigger {name}")
        (last,) = database.execute("select max(seq) from events").fetchone()
        database.execute("delete from events where seq > ?", (last - 2,))
        for (table,) in database.execute("select name from sqlite_master where type = 'table'").fetchall():
            columns = [row[1] for row in database.execute(f"pragma table_info({table})")]
            if table != "events" and {"seq", "hash"} <= set(columns):
                (hash_,) = database.execute("select hash from events where seq = ?", (last - 2,)).fetchone()
                database.execute(f"update {table} set seq = ?, hash = ?", (last - 2, hash_))
    cut = office.ask("verify", run, "--head", "heads.txt")
    assert cut.code == 1, cut.out
    assert "the witnessed head is event" in cut.out
    assert (office.folder / "heads.txt").read_text() == kept


def test_a_fork_goes_on_with_the_wall_time_that_is_left():
    """A budget is not made anew by forking."""
    bench = Bench(say(READ), say(READ), final())

    async def slow(sku: int) -> object:
        bench.clock.advance(minutes=25)
        return {"left": 1, "level": "L1"}

    bench.shop.special["get_stock"] = slow
    bench.drive()
    assert bench.state.spent.wall_seconds == 3000
    at = seq_of(bench, "ReceiptRecorded", 0)
    forked = fork(bench, at)
    assert bench.runtime().state(forked.run).spent.wall_seconds == 1500
    again = bench.runtime().fork(forked.run, Fork(at), by=OPERATOR)
    assert bench.runtime().state(again.run).spent.wall_seconds == 1500
    other = Bench(say(READ), say(READ), say(READ), store=bench.store, shop=bench.shop, clock=bench.clock)
    follow(other, forked.run).drive()
    assert other.state.ending == ("expired", "budget:wall_time", "")


def test_what_was_held_at_the_fork_may_be_proposed_again_also_where_its_tool_may_be_called_once():
    policy = with_lines(
        budgets='{turns: 30, cost_usd: "1.00", wall_time: 1h, calls: {total: 60, per_tool: {send_letter: 1}}}'
    )
    bench = Bench(say(LETTER), final(), policy=policy)
    bench.drive()
    assert bench.status == "awaiting_approval"
    forked = fork(bench, len(bench.log))
    other = Bench(say(ASK), say(LETTER), final(), store=bench.store, shop=bench.shop, policy=policy)
    follow(other, forked.run).drive()
    assert other.outcomes(1) == ["fenced"]
    assert other.call(2, 1).held == "approval"
