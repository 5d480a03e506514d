"""Reports from the field about the life of a Run: retries, waits, cancels, restarts, citations."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from engine.domain.actors import Actor
from engine.domain.errors import ClaimHeld, Refused, UsageError
from engine.domain.messages import Instructions, UserInput
from engine.ports import AttemptFailed
from engine.runtime.approvals import Approval
from tests.runtime.bench import CLERK, LEAD, Bench, Crash, CrashAt, final, say, sqlite, with_lines

STOCK = ("get_stock", {"sku": 1})
LETTER = ("send_letter", {"to": "P1"})
ROOM = ("book_room", {"room": 1})


def test_only_the_model_request_is_tried_again():
    """agno-agi/agno#10366: the letter of turn 1 is sent once; the failed attempts are events of their own."""

    def fails_twice(request: Any) -> Any:
        if request.attempt <= 2:
            raise AttemptFailed("unavailable", "HTTP 500")
        return final()

    bench = Bench(say(LETTER), fails_twice)
    bench.drive()
    bench.approve(1, 1)
    bench.drive()
    assert bench.shop.ledger == ["letter P1"]
    assert len(bench.of_kind("ModelAttemptFailed")) == 2
    assert len(bench.of_kind("ModelTurnRecorded")) == 2
    shown = [[repr(message) for message in request.messages] for request in bench.requests[1:]]
    assert shown[0] == shown[1] == shown[2]
    assert bench.status == "completed"


@pytest.mark.parametrize(
    "result", ["x" * (9 * 1024 * 1024), object(), "x" * 100_000], ids=["huge", "odd", "large"]
)
def test_a_result_that_cannot_be_kept_is_no_reason_to_run_again(result: Any):
    """pydantic/pydantic-ai#7157, get-convex/workflow#241: one export, confirmed; the fault is the result's."""
    bench = Bench(say(ROOM), final())

    async def book_room(room: int, context: Any) -> object:
        bench.shop.effect("room", context)
        return {"all": result}

    bench.shop.special["book_room"] = book_room
    bench.drive()
    assert bench.shop.ledger == ["room"]
    assert bench.outcomes(1) == ["confirmed"]
    stored = bench.call(1, 1).receipt.result
    assert (stored.fault is None) == (result == "x" * 100_000)
    assert len(bench.results(1)[0].text) < 100_000
    assert bench.status == "completed"


# --- stop, cancel, time-out ---------------------------------------------------------------------------------


async def test_a_worker_that_is_shut_down_leaves_the_run_resumable():
    """dust-tt/dust#30742: a stop is no end; the read that was under way is made again."""
    bench = Bench(say(STOCK), final())
    running = asyncio.Event()

    async def slow(sku: int) -> object:
        running.set()
        await asyncio.sleep(30)
        return {}

    bench.shop.special["get_stock"] = slow
    runtime = bench.runtime()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, runtime.stop)
    try:
        import engine.runtime.sending as sending

        driven = asyncio.create_task(runtime.drive(bench.run))
        await running.wait()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sending, "GRACE", 0.01)
            signal.raise_signal(signal.SIGTERM)
            ended = await asyncio.wait_for(driven, 5)
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
    assert ended.interrupted
    assert not bench.state.terminal
    del bench.shop.special["get_stock"]
    await bench.adrive()
    assert bench.outcomes(1) == ["confirmed"]
    assert bench.status == "completed"


def test_a_cancel_ends_the_run_and_settles_what_was_open():
    """dust-tt/dust#30742: it is `cancelled`, never `completed`."""
    bench = Bench(say(STOCK, LETTER), final())
    bench.drive()
    bench.cancel("not needed")
    bench.drive()
    assert bench.status == "cancelled"
    assert bench.outcomes(1) == ["confirmed", "not_executed"]


def test_a_time_out_is_neither_a_stop_nor_a_cancel():
    """dust-tt/dust#30742: a read that does not answer failed, and the Run goes on."""
    tools = bench_tools_with_timeout()
    bench = Bench(say(STOCK), final(), tools=tools)

    async def hangs(sku: int) -> object:
        await asyncio.sleep(30)
        return {}

    bench.shop.special["get_stock"] = hangs
    bench.drive()
    assert bench.outcomes(1) == ["failed"]
    assert bench.status == "completed"


def bench_tools_with_timeout() -> str:
    from tests.runtime.bench import TOOLS

    return TOOLS.replace('"How many are there."', '"How many are there."\n    timeout: 1s')


def test_a_cancel_from_elsewhere_stops_what_has_not_started():
    """Agenta-AI/agenta#5160, archestra-ai/archestra#2641: the running read ends, the order never starts."""
    bench = Bench(say(STOCK, ROOM, LETTER), final())

    async def slow(sku: int) -> object:
        bench.cancel("stop")
        return {"left": 1, "level": "L"}

    bench.shop.special["get_stock"] = slow
    bench.drive()
    assert bench.shop.ledger == []
    assert bench.outcomes(1)[0] == "confirmed"
    assert bench.status == "cancelled"
    with pytest.raises(Refused, match="cancelled"):
        bench.approve(1, 3)
    assert bench.shop.ledger == []


def test_a_cancel_closes_what_waits_for_people():
    """letta-ai/letta#3176, letta-ai/lettabot#479: no orphan is left, and nothing else is blocked."""
    bench = Bench(say(LETTER))
    bench.drive()
    bench.cancel()
    bench.drive()
    assert bench.outcomes(1) == ["not_executed"]
    before = bench.state.seq
    with pytest.raises(Refused, match="cancelled"):
        bench.approve(1, 1)
    assert bench.log[before].kind == "DecisionNotEligible"
    fresh = Bench(say(LETTER), store=bench.store)
    fresh.drive()
    assert fresh.status == "awaiting_approval"
    with pytest.raises(UsageError, match="has no call"):
        fresh.runtime().refuse(fresh.run, "9.9", by=LEAD)


def test_a_refusal_said_twice_is_one_refusal():
    """letta-ai/letta#3176: idempotent."""
    bench = Bench(say(LETTER), final())
    bench.drive()
    bench.refuse(1, 1)
    seq = bench.state.seq
    bench.refuse(1, 1)
    assert bench.state.seq == seq


# --- approvals ----------------------------------------------------------------------------------------------


def test_two_calls_with_one_provider_id_are_two_pending_items():
    """pydantic/pydantic-ai#5761: approving the first leaves the second pending."""
    from dataclasses import replace

    response = say(("send_letter", {"to": "A"}), ("send_letter", {"to": "B"}))
    response = replace(response, calls=tuple(replace(call, provider_id="x") for call in response.calls))
    bench = Bench(response, final())
    bench.drive()
    shown = bench.call(1, 1).approval.digest
    assert shown != bench.call(1, 2).approval.digest
    bench.runtime().approve(bench.run, "1.1", by=LEAD, decision=Approval(digest=shown))
    bench.drive()
    assert bench.shop.ledger == ["letter A"]
    assert bench.outcomes(1) == ["confirmed", "held"]
    with pytest.raises(Refused, match="another one than was shown"):
        bench.runtime().approve(bench.run, "1.2", by=LEAD, decision=Approval(digest=shown))
    assert bench.shop.ledger == ["letter A"]


def test_an_approval_is_a_durable_wait(tmp_path: Path):
    """qf-studio/pilot#4411, NeoLabs-Systems/NeoAgent#86: decided from another store object, while nobody works."""
    bench = Bench(say(LETTER), final(), store=sqlite(tmp_path))
    bench.drive()
    bench.store.close()
    bench.store = sqlite(tmp_path)
    summary = bench.store.runs()[0]
    assert (summary.status, summary.open_approvals, summary.reason) == ("awaiting_approval", 1, "approval")
    assert bench.call(1, 1).args == {"to": "P1"}
    bench.approve(1, 1)
    bench.store.close()
    bench.store = sqlite(tmp_path)
    bench.drive()
    bench.drive()
    assert bench.shop.ledger == ["letter P1"]
    assert bench.status == "completed"
    bench.store.close()


def test_a_late_yes_is_refused_and_not_spent_by_the_next_call():
    """artokun/comfyui-mcp#2440, ChronoAIProject/NyxID#152: inclusive to the deadline, refused after it."""
    bench = Bench(say(LETTER), say(LETTER), final())
    bench.drive()
    bench.clock.advance(seconds=90)
    bench.drive()
    assert bench.outcomes(1) == ["held"]
    bench.clock.advance(milliseconds=1)
    with pytest.raises(Refused, match="expired"):
        bench.approve(1, 1)
    bench.drive()
    assert bench.outcomes(1) == ["not_executed"]
    assert bench.outcomes(2) == ["held"]
    assert bench.shop.ledger == []


# --- start and resume ---------------------------------------------------------------------------------------


def test_start_with_an_existing_id_is_refused():
    """Certora/AutoProver#192: with the same input, with another, on a waiting and on a finished Run."""
    bench = Bench(say(text="?"), final())
    bench.drive()
    for text in ("please", "something else"):
        with pytest.raises(UsageError, match="exists"):
            bench.runtime().start(text, principal=CLERK, run=bench.run)
    bench.reply("go on")
    bench.drive()
    assert bench.status == "completed"
    with pytest.raises(UsageError, match="exists"):
        bench.runtime().start("please", principal=CLERK, run=bench.run)


def test_a_resumed_run_has_one_system_part_and_its_inputs_once(tmp_path: Path):
    """Certora/AutoProver#192: exactly one, at the head."""
    policy = with_lines(model="{primary: {id: openai/gpt-5-mini-2025-08-07}}")
    bench = Bench(say(STOCK), say(text="?"), final(), policy=policy)
    crash = CrashAt(7)
    with pytest.raises(Crash):
        bench.drive(crash)
    bench.drive()
    bench.reply("and now?")
    bench.drive()
    shown = bench.requests[-1].messages
    assert [message.text for message in shown if isinstance(message, UserInput)] == ["please", "and now?"]
    assert sum(isinstance(message, Instructions) for message in shown) <= 1


async def test_two_starts_of_the_driver_at_once_are_one_drive():
    """Certora/AutoProver#192: the second is told who works on it."""
    bench = Bench(say(STOCK), final())
    gate = asyncio.Event()

    async def slow(sku: int) -> object:
        await gate.wait()
        return {"left": 1, "level": "L"}

    bench.shop.special["get_stock"] = slow
    first = asyncio.create_task(bench.runtime().drive(bench.run))
    await asyncio.sleep(0.01)
    with pytest.raises(ClaimHeld):
        await bench.runtime().drive(bench.run)
    gate.set()
    await first
    assert bench.status == "completed"


def test_events_from_elsewhere_wait_for_their_turn():
    """fgmacedo/python-statemachine#503: cancel, reply and source states arrive while a tool is awaited."""
    bench = Bench(say(STOCK), say(STOCK), final())

    async def busy(sku: int) -> object:
        if len(bench.shop.reads) == 0:
            bench.shop.reads.append("x")
            bench.reply("faster")
            bench.source("papers", "degraded")
            with pytest.raises(Refused):
                bench.approve(1, 1)
        return {"left": 1, "level": "L"}

    bench.shop.special["get_stock"] = busy
    bench.drive()
    assert bench.status == "completed"
    kinds = bench.kinds
    started, receipt = kinds.index("ExecutionStarted"), kinds.index("ReceiptRecorded")
    between = kinds[started + 1 : receipt]
    assert between == ["InputReceived", "SourceStateChanged", "DecisionNotEligible"]


# --- citations ----------------------------------------------------------------------------------------------

DOCS = ("request_capability", {"capability": "docs"})
SEARCH = ("search_docs", {"q": "a"})


def note(body: str) -> tuple[str, Any]:
    return ("publish_note", {"body": body})


def test_a_citation_that_does_not_resolve_refuses_the_whole_and_names_each():
    """miurla/morphic#1007: short handles of the Host; nothing is dropped in silence, no text is altered."""
    bad = "One [[E1]], nine [[E9]], twice [[E1]]."
    bench = Bench(say(DOCS), say(SEARCH), say(note(bad)), say(note("One [[E1]] and [[E1]].")), final())
    bench.drive()
    assert bench.outcomes(3) == ["rejected"]
    assert "E9" in bench.call(3, 1).refusal.message
    assert bench.outcomes(4) == ["committed"]
    assert bench.state.publications["note"].fields["body"] == "One [[E1]] and [[E1]]."


@pytest.mark.parametrize(
    "mark", ["[[e1]]", "[[E 1]]", "[[https://archive.example.test/x]]", "[[E1#nowhere]]"]
)
def test_a_mark_that_is_no_handle_of_this_run_is_not_a_citation(mark: str):
    """miurla/morphic#1007, SiderealPress/Lobster#2102: case, space, links and spans are as written."""
    bench = Bench(say(DOCS), say(SEARCH), say(note(f"It says so {mark}.")), say(text="?"))
    bench.drive()
    assert bench.outcomes(3) == ["rejected"]
    assert "note" not in bench.state.publications


def test_a_link_in_free_text_is_not_judged():
    """SiderealPress/Lobster#2102: the Host does not say whether the text is supported."""
    body = "See https://archive.example.test/x [[E1#s1]]."
    bench = Bench(say(DOCS), say(SEARCH), say(note(body)), final())
    bench.drive()
    assert bench.state.publications["note"].fields["body"] == body


def test_chat_text_is_no_publication():
    """CherryHQ/cherry-studio#18787: without the formal output, finish is refused; plain text stays plain text."""
    policy = with_lines(gates="{finish: [{output_committed: note}]}")
    bench = Bench(say(("finish", {}), text="It is 5 [cite:E1]."), say(text="?"), policy=policy)
    bench.drive()
    assert bench.call(1, 1).refusal.gates == ("output_committed note",)
    assert bench.runtime().outputs(bench.run) == {}


@pytest.mark.parametrize("n", range(1, 30))
def test_a_crash_around_a_publication_gives_one_publication(n: int):
    """CherryHQ/cherry-studio#18787: never twice, never lost once committed."""
    bench = Bench(say(STOCK), say(note("It is {{fig:E1/left}} [[E1]].")), final())
    try:
        bench.drive(CrashAt(n))
    except Crash:
        bench.drive()
    assert len(bench.of_kind("OutputPublished")) == 1
    assert "10" in str(bench.runtime().outputs(bench.run)["note"]["body"])
    assert bench.status == "completed"


def test_a_second_publication_of_one_output_is_an_attributable_error():
    """CherryHQ/cherry-studio#18787: a correction is a new Run."""
    letter = ("publish_letter", {"body": "one"})
    bench = Bench(say(letter), say(letter), final())
    bench.drive()
    assert [bench.outcomes(1), bench.outcomes(2)] == [["committed"], ["rejected"]]


def test_nobody_without_an_identity_decides():
    """Aventerica89/vaporforge#93: the attempt is recorded and changes nothing."""
    bench = Bench(say(LETTER))
    bench.drive()
    with pytest.raises(Refused):
        bench.approve(1, 1, by=Actor(type="person", roles=("lead",)))
    assert bench.of_kind("DecisionNotEligible")
    assert bench.status == "awaiting_approval"
