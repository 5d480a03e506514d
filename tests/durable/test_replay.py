"""Owns the promises of replay: an honest log is decided again as it was, a changed decision shows, nothing is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.domain import events as e
from engine.domain.ids import CallId
from engine.ports import AttemptFailed
from engine.runtime.approvals import Approval
from engine.runtime.library import PolicyLibrary
from engine.runtime.replay import Replay, replay
from tests.durable.conftest import Office
from tests.durable.shop import letter, letters, load
from tests.durable.test_capabilities_life import DENY_ROOMS, newer
from tests.runtime.bench import LEAD, ME, POLICY, Bench, Crash, CrashAt, final, say

READ = ("get_stock", {"sku": 1})
ROOM = ("book_room", {"room": 1})
LETTER = ("send_letter", {"to": "x"})
ASK = ("ask_user", {"question": "?"})
DOCS = ("request_capability", {"capability": "docs"})
OPS = ("request_capability", {"capability": "ops"})


def again(bench: Bench) -> Replay:
    return replay(bench.store, PolicyLibrary(bench.store), bench.run)


def same(bench: Bench) -> Replay:
    found = again(bench)
    assert found.differences == []
    assert found.events == len(bench.log)
    return found


# --- honest logs ------------------------------------------------------------------------------------------


def busy() -> Bench:
    """Reads, a denied call, a broken one, a grant, a held letter, a hold that is undone at the end."""
    bench = Bench(
        say(READ, ("get_stock", {"sku": "many"}), ("no_such_tool", {})),
        say(DOCS, ("search_docs", {"q": "x"})),
        say(("search_docs", {"q": "x"}), READ, READ),
        say(LETTER, ROOM, ("reserve", {"sku": 2})),
        say(ASK),
        say(OPS),
        say(("publish_letter", {"body": "done"})),
        final(),
    )
    bench.drive()
    bench.approve(4, 1)
    bench.drive()
    bench.reply("yes")
    bench.drive()
    bench.refuse(6, 1)
    bench.drive()
    return bench


def test_a_busy_run_is_decided_again_as_it_was():
    bench = busy()
    assert bench.status == "completed"
    found = same(bench)
    assert found.decisions > 30


def test_a_run_with_failed_attempts_is_decided_again_as_it_was():
    def fails(request: Any) -> Any:
        if request.attempt < 3:
            raise AttemptFailed("unavailable", "busy")
        return say(READ)

    bench = Bench(fails, final())
    bench.drive()
    same(bench)


def test_an_expired_approval_and_a_lapsed_hold_are_decided_again_as_they_were():
    bench = Bench(say(("reserve", {"sku": 1}), LETTER), say(ASK), final())
    bench.drive()
    bench.clock.advance(minutes=11)
    bench.drive()
    bench.reply("on")
    bench.drive()
    assert bench.of_kind("ApprovalExpired")
    assert bench.of_kind("HoldLapsed")
    same(bench)


def test_an_unknown_effect_with_its_probe_is_decided_again_as_it_was():
    bench = Bench(say(ROOM), final())

    async def dead(room: int, context: Any) -> object:
        bench.shop.effect(f"room {room}", context)
        raise ConnectionError

    bench.shop.special["book_room"] = dead
    bench.drive()
    assert bench.status == "completed"
    same(bench)


def test_loaded_versions_and_revocations_are_decided_again_as_they_were():
    bench = Bench(say(DOCS), say(READ, ROOM), say(("search_docs", {"q": "x"})), final())

    async def get_stock(sku: int) -> object:
        load(bench, newer(DENY_ROOMS))
        bench.runtime().revoke(bench.run, "G1", by=ME)
        return {"left": 1, "level": "L1"}

    bench.shop.special["get_stock"] = get_stock
    bench.drive()
    assert bench.outcomes(2) == ["confirmed", "fenced"]
    same(bench)


def test_standing_approvals_and_edits_are_decided_again_as_they_were():
    rules = "by: {roles: [lead]}, expires: 90s, standing: {max_calls: 2}, edit: [args.copies]"
    bench = letters(say(letter()), say(letter(copies=4)), final(), approval=rules)
    bench.drive()
    bench.runtime().approve(
        bench.run, CallId(1, 1), by=LEAD, decision=Approval(standing=True, edits={"copies": 4})
    )
    bench.drive()
    assert bench.status == "completed"
    same(bench)


def test_a_cancelled_run_is_decided_again_as_it_was():
    bench = Bench(say(("reserve", {"sku": 1}), LETTER))
    bench.drive()
    bench.cancel("enough")
    bench.drive()
    same(bench)


def test_a_run_that_died_at_any_point_is_decided_again_as_it_was():
    n = 1
    while True:
        bench = Bench(say(READ, ROOM), say(LETTER, DOCS), final())
        crash = CrashAt(n)
        try:
            bench.drive(crash)
        except Crash:
            bench.clock.advance(seconds=1)
            bench.drive()
        bench.refuse(2, 1)
        bench.drive()
        same(bench)
        if len(crash.points) < n:
            break
        n += 1
    assert n > 10


# --- changed logs -----------------------------------------------------------------------------------------


def rewritten(bench: Bench, change: Callable[[e.Body], e.Body | None]) -> Bench:
    """The same log with changed decisions, sealed anew: the chain holds, the decisions do not."""
    other = Bench(final())
    previous, events = e.GENESIS, []
    for event in bench.log:
        body = change(event.body)
        if body is None:
            continue
        sealed = e.seal(
            bench.run, len(events) + 1, event.recorded_at, event.actor, event.claim_epoch, body, previous
        )
        events.append(sealed)
        previous = sealed.hash
    fake = FakeStore(bench.store, events)
    other.store, other.run = fake, bench.run  # type: ignore[assignment]
    return other


class FakeStore:
    def __init__(self, store: Any, events: list[e.Event]) -> None:
        self._store, self._events = store, events

    def events(self, run: str, after: int = 0) -> list[e.Event]:
        return self._events[after:]

    def blob(self, digest: str) -> str | None:
        return self._store.blob(digest)


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("ExecutionStarted", "approved_by", "the boss"),
        ("ExecutionStarted", "idempotency_key", "0" * 64),
        ("ExecutionStarted", "args", {"sku": 7}),
        ("ContractCompiled", "digest", "0" * 64),
        ("CallRejected", "refusal", e.RefusalRecord(code="no_rule", message="so")),
        ("ApprovalRequested", "digest", "0" * 64),
        ("CallHeld", "waits_for", ()),
        ("ModelAttemptStarted", "contract", "0" * 64),
    ],
)
def test_a_decision_that_was_changed_in_the_log_shows(kind: str, field: str, value: Any):
    bench = busy()
    seen: list[int] = []

    def change(body: e.Body) -> e.Body:
        if body.kind == kind and not seen:
            seen.append(1)
            return body.model_copy(update={field: value})
        return body

    found = again(rewritten(bench, change))
    assert found.differences
    first = found.differences[0]
    assert (first.kind, first.fields) == (kind, (field,))


def test_a_start_without_the_hold_that_the_policy_asks_for_shows():
    bench = busy()
    held = {"CallHeld", "ApprovalRequested"}

    def change(body: e.Body) -> e.Body | None:
        return None if body.kind in held and getattr(body, "tool", "send_letter") == "send_letter" else body

    differences = again(rewritten(bench, change)).differences
    assert differences
    assert any(
        isinstance(each.decided, dict) and each.decided.get("event") == "CallHeld" for each in differences
    )


def test_a_finish_over_a_refusing_gate_shows():
    gate = POLICY.replace("gates: {finish: []}", "gates: {finish: [{output_committed: letter}]}")
    bench = Bench(final(), say(("publish_letter", {"body": "x"}), ("finish", {})), policy=gate)
    bench.drive()
    bundle = bench.state.bundle
    free = Bench(final(), store=bench.store)
    free.drive()

    def change(body: e.Body) -> e.Body:
        return body.model_copy(update={"bundle": bundle}) if isinstance(body, e.RunStarted) else body

    found = again(rewritten(free, change))
    assert any(each.kind == "SettlingStarted" for each in found.differences)


def test_the_price_of_the_day_is_no_difference():
    bench = busy()

    def change(body: e.Body) -> e.Body:
        if isinstance(body, e.ModelAttemptStarted):
            return body.model_copy(update={"reserved": e.Reservation(input_tokens=7)})
        return body

    assert again(rewritten(bench, change)).differences == []


# --- the commands -----------------------------------------------------------------------------------------

TURNS = """
  - calls: [{tool: look, args: {shelf: 3}}, {tool: post, args: {board: b1, text: hi}}]
  - calls: [{tool: send, args: {to: ann, weight: 2}}]
  - calls: [{tool: finish}]
"""


def test_replay_says_that_nothing_differs_and_sends_nothing(office: Office):
    run = office.run(TURNS).run
    office.ask("approve", run, "2.1", "--as", "lea", "--role", "lead")
    before = office.ledger
    said = office.ask("replay", run)
    assert said.code == 0, said.out
    assert "each is as it was recorded" in said.out
    assert office.ask("replay", run, "--json").json["differences"] == []
    assert office.ledger == before


def test_replay_loads_no_model_library(office: Office):
    import subprocess
    import sys

    run = office.run(TURNS).run
    code = (
        "import sys\nfrom cli import main\n"
        f"try: main(['replay', '{run}'])\nexcept SystemExit as end: assert not end.code\n"
        "print(sorted({'litellm', 'anthropic', 'openai'} & set(sys.modules)))"
    )
    from tests.cli.conftest import ROOT

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={"PYTHONPATH": str(ROOT)},
        cwd=office.folder, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("[]\n"), done.stdout + done.stderr


def test_the_recorded_responses_can_be_played_in_a_new_run(office: Office):
    first = office.run(TURNS).run
    said = office.ask("run", "office.policy.yaml", "please", "--model", f"replay/{first}")
    assert said.code == 5
    assert office.ledger == ["post b1", "post b1"]
    proposals = [
        [each for turn in office.log(run, "--kind", "ModelTurnRecorded") for each in turn["proposals"]]
        for run in (first, said.run)
    ]
    assert proposals[0] == proposals[1]
    assert office.ask("run", "office.policy.yaml", "x", "--model", "replay/nothing").code == 2
