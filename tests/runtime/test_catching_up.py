"""What others appended while a driver waited is folded onto its state: only that, and to what the whole log gives."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.adapters.memory_store import MemoryStore
from engine.domain import events as e
from engine.domain.actors import HOST, MODEL, Principal
from engine.domain.errors import ClaimLost
from engine.domain.events import GENESIS, Event, seal
from engine.domain.ids import CallId, RunId
from engine.domain.policy import Kind
from engine.lifecycle.fold import fold
from engine.ports import Append, AttemptFailed, ModelRequest, Owner
from engine.runtime.commit_queue import CommitQueue
from engine.runtime.journal import Journal
from engine.runtime.sent import sent
from tests.runtime.bench import ME, START, Bench, FakeClock, Turn, final, say

NEVER = float("inf")
STOCK = ("get_stock", {"sku": 1})
LETTER = ("send_letter", {"to": "a"})
RUN = RunId("r1")


class Counting(MemoryStore):
    """Remembers how many events each reading of the log gave."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[tuple[int, int]] = []
        """(after, how many)"""

    def events(self, run: RunId, after: int = 0) -> Iterator[Event]:
        found = list(super().events(run, after))
        self.read.append((after, len(found)))
        return iter(found)


# --- the journal --------------------------------------------------------------------------------------------------


def _turn(n: int) -> list[e.Body]:
    """A turn with a read and a write, as a driver would record it."""
    read, write = CallId(n, 1), CallId(n, 2)
    proposals = tuple(e.Proposal(ordinal=k, tool=f"t{k}", arguments="{}") for k in (1, 2))
    unknown = "unknown" if n % 3 == 0 else "confirmed"
    return [
        e.ModelAttemptStarted(turn=n, attempt=1, model="m", contract="c", epoch=0),
        e.ModelTurnRecorded(turn=n, attempt=1, model="m", contract="c", epoch=0, proposals=proposals),
        e.ExecutionStarted(call=read, tool="t1", tool_kind=Kind.READ, args={}, args_digest="d", policy_digest="p"),
        e.ReceiptRecorded(call=read, tool="t1", outcome="confirmed", settled_by="tool"),
        e.ExecutionStarted(
            call=write, tool="t2", tool_kind=Kind.WRITE, args={"n": n}, args_digest=f"d{n}", policy_digest="p",
            effects=("x",), idempotency_key=f"k{n}",
        ),
        e.ReceiptRecorded(call=write, tool="t2", outcome=unknown, settled_by="tool"),
    ]  # fmt: skip


def _said(n: int) -> list[e.Body]:
    """What people and applications say at any time."""
    return [
        e.InputReceived(text=f"word {n}"),
        e.StateUpdated(slice="cart", value={"n": n}, version=n + 1, by="app"),
        e.SourceStateChanged(source="stock", state="degraded" if n % 2 else "available"),
        e.CapabilityGranted(grant=f"G{n}", capability="docs", params={}, by="host"),
        e.PolicyLoaded(policy="p", digest="d", bundle=f"b{n}", version=n + 2),
        e.OperatorAlerted(code="x", message=str(n)),
    ]


def _born(store: MemoryStore) -> None:
    body = e.RunStarted(
        engine="", policy="p", policy_version=1, policy_digest="p", bundle="b", model="scripted/x",
        principal=Principal(id="u", roles=()), task={},
    )  # fmt: skip
    store.append(Append(RUN, 0, [seal(RUN, 1, START, HOST, 0, body, GENESIS)]))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("stage"), st.integers(1, 4)),
        st.tuples(st.sampled_from(["flush", "catch up"]), st.just(0)),
        st.tuples(st.just("person"), st.integers(0, 5)),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.booleans())
def test_the_state_at_hand_is_always_what_a_fold_of_the_whole_log_gives(steps: list[Any], queued: bool):
    """Whatever a driver and people do in whatever order, staged events included."""

    async def play() -> None:
        store = MemoryStore()
        _born(store)
        commits = CommitQueue(store) if queued else None
        journal = Journal(store, RUN, FakeClock(), commits=commits)
        await journal.open()
        to_come = [body for n in range(1, 30) for body in _turn(n)]
        staged: list[e.Body] = []
        said = 0
        for what, n in steps:
            if what == "stage":
                for body in to_come[len(staged) : len(staged) + n]:
                    journal.stage(body, actor=MODEL, fact=True)
                    staged.append(body)
            elif what == "person":
                said += 1
                other = Journal(store, RUN, FakeClock())
                other.load()
                other.say(_said(said)[n], ME)
                assert other.flush()
            elif what == "flush":
                while not await journal.commit():
                    pass
            elif journal.state.seq == journal._durable_seq:
                head, generation = store.head(RUN), journal.generation
                assert head is not None
                moved = head.seq > journal.state.seq
                assert await journal.catch_up() is moved
                assert journal.generation == generation
                assert journal.state == fold(RUN, store.events(RUN))
            pending = [each.event for each in journal._staged]
            seen = [event for event in store.events(RUN) if event.seq <= journal._durable_seq]
            assert journal.state == fold(RUN, [*seen, *pending])
        while not await journal.commit():
            pass
        await journal.catch_up()
        assert journal.state == fold(RUN, store.events(RUN))
        if commits is not None:
            await commits.close()

    asyncio.run(play())


def _journal(store: MemoryStore) -> Journal:
    journal = Journal(store, RUN, FakeClock())
    journal.load()
    return journal


def test_a_log_that_does_not_go_on_from_the_known_head_is_folded_anew():
    """A restored backup that others wrote on: nothing of it is laid over what was folded before."""
    store, other = MemoryStore(), MemoryStore()
    for each, words in ((store, ("a", "b")), (other, ("x", "y", "z"))):
        _born(each)
        for word in words:
            journal = _journal(each)
            journal.say(e.InputReceived(text=word), ME)
            assert journal.flush()
    journal = _journal(store)
    store._logs = other._logs
    assert asyncio.run(journal.catch_up())
    assert journal.generation == 2
    assert journal.state == fold(RUN, other.events(RUN))


# --- the driver ---------------------------------------------------------------------------------------------------


def _spoken_in_a_tool(bench: Bench) -> None:
    async def get_stock(sku: int) -> object:
        bench.reply("while it reads")
        bench.source("papers", "degraded")
        return {"left": 1, "level": "L"}

    bench.shop.special["get_stock"] = get_stock


def _nothing(bench: Bench) -> None:
    pass


def _fails_once(words: str) -> Turn:
    asked: list[int] = []

    def play(request: ModelRequest) -> Any:
        asked.append(1)
        if len(asked) == 1:
            raise AttemptFailed("unavailable", words)
        return say(STOCK)

    return play


SCENES: dict[str, tuple[Callable[[list[Bench]], list[Turn]], Callable[[Bench], None]]] = {
    "a reply during the model call": (lambda b: [_then(b, "reply", say(STOCK)), final()], _nothing),
    "a cancel during the model call": (lambda b: [_then(b, "cancel", say(STOCK)), final()], _nothing),
    "a source during the model call": (lambda b: [_then(b, "source", say(LETTER, STOCK)), final()], _nothing),
    "a reply before a failed attempt": (
        lambda b: [_then(b, "reply", AttemptFailed("unavailable", "x")), say(STOCK), final()], _nothing,
    ),
    "words while a tool runs": (lambda b: [say(STOCK), say(STOCK, ("ping", {})), final()], _spoken_in_a_tool),
}  # fmt: skip


def _then(benches: list[Bench], act: str, answer: Any) -> Turn:
    done: list[int] = []

    def play(request: ModelRequest) -> Any:
        if not done:
            done.append(1)
            bench = benches[0]
            {
                "reply": bench.reply,
                "cancel": bench.cancel,
                "source": lambda _: bench.source("papers", "degraded"),
            }[act]("meanwhile")
        if isinstance(answer, AttemptFailed):
            raise answer
        return answer

    return play


@pytest.mark.parametrize("scene", SCENES)
def test_the_log_is_the_same_whether_news_was_looked_for_or_met(scene: str, monkeypatch: pytest.MonkeyPatch):
    logs = []
    for look in (0.0, NEVER):
        monkeypatch.setattr("engine.runtime.driver.LOOK_AFTER", look)
        benches: list[Bench] = []
        turns, prepare = SCENES[scene]
        bench = Bench(*turns(benches), run="r1")
        benches.append(bench)
        prepare(bench)
        bench.drive()
        bench.verified()
        logs.append(
            [
                (event.kind, event.actor, event.payload)
                for event in bench.log
                if event.kind != "ReceiptRecorded"
            ]
        )
        for turn in range(1, len(bench.state.turns) + 1):
            attempt = bench.state.turns[turn - 1].recorded.attempt
            shown = [each for each in bench.requests if each.turn == turn][-1].messages
            assert tuple(sent(bench.store, bench.run, turn, attempt).messages) == tuple(shown)
    assert logs[0] == logs[1]


def test_a_persons_word_in_a_long_run_is_read_alone(monkeypatch: pytest.MonkeyPatch):
    """The log is read once, when the drive begins; then only what is new."""
    monkeypatch.setattr("engine.runtime.driver.LOOK_AFTER", 0.0)
    store = Counting()
    turns: list[Turn] = [say(STOCK) for _ in range(20)]

    def asked(request: ModelRequest) -> Any:
        bench.reply("also this")
        store.read.clear()
        return say(("ping", {}))

    bench = Bench(*turns, asked, final(), store=store, check_fold=False)
    bench.drive()
    read = list(store.read)
    assert bench.status == "completed"
    assert all(after for after, _ in read)
    assert sorted(how_many for _, how_many in read)[-2:] == [0, 1]


@pytest.mark.usefixtures("look_after")
def test_what_another_driver_appended_is_not_folded():
    """It took the Run over while the model was asked: this driver stops, and lays nothing over the other's state."""

    def asked(request: ModelRequest) -> Any:
        bench.clock.advance(seconds=60)
        claim = bench.store.claim(
            bench.run, Owner("elsewhere", 1, 0.0, "x"), bench.clock.now(), timedelta(15)
        )
        journal = Journal(bench.store, bench.run, bench.clock, claim=claim)
        journal.load()
        journal.stage(
            e.ModelTurnRecorded(turn=1, attempt=1, model="m", contract=request.contract, epoch=0), fact=True
        )
        assert journal.flush()
        return say(STOCK)

    bench = Bench(asked, final(), check_fold=False)
    with pytest.raises(ClaimLost):
        bench.drive()
    assert len(bench.of_kind("ModelTurnRecorded")) == 1


async def test_a_response_that_came_is_kept_where_the_drive_is_cancelled_while_it_looks(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("engine.runtime.driver.LOOK_AFTER", 0.0)
    looking, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    class Slow(MemoryStore):
        def events(self, run: RunId, after: int = 0) -> Iterator[Event]:
            if after and not go_on.is_set():
                loop.call_soon_threadsafe(looking.set)
                go_on.wait(5)
            return super().events(run, after)

    bench = Bench(say(STOCK), final(), store=Slow(), check_fold=False)
    driven = asyncio.create_task(bench.runtime().drive_all([bench.run]))
    await looking.wait()
    driven.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await driven
    assert bench.kinds.count("ModelTurnRecorded") == 1
    await bench.adrive()
    assert bench.status == "completed"


def test_news_is_not_laid_over_what_is_staged():
    store = MemoryStore()
    _born(store)
    journal = _journal(store)
    journal.stage(e.OperatorAlerted(code="x", message="y"))
    with pytest.raises(AssertionError):
        asyncio.run(journal.catch_up())
