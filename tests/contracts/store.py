"""Owns what every event store promises; each store's test class inherits these tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest

from engine.adapters.processes import this_process
from engine.domain.actors import HOST, Actor, Principal
from engine.domain.canonical import NotJson, digest
from engine.domain.errors import ClaimHeld, ClaimLost, Conflict, Fault, NewerLog, UsageError
from engine.domain.events import GENESIS, Body, Event, InputReceived, RunStarted, StateUpdated, seal
from engine.domain.ids import RunId
from engine.ports import Append, Claim, EventStore, Head, LoadedPolicy, Owner, RunSummary
from engine.runtime.audit import verify

NOW = datetime(2026, 6, 30, 12, 0, 0, 123456, tzinfo=UTC)
TTL = timedelta(seconds=15)
ELSEWHERE = Owner("another-host", 4242, 17.5, "agentctl resume")
PERSON = Actor(type="person", id="zoë", issuer="local", roles=("manager",))


def started(format: int = 1) -> RunStarted:  # noqa: A002 - the field's name
    return RunStarted(
        format=format,
        engine="0.1.0",
        policy="fund-research",
        policy_version=3,
        policy_digest="d" * 64,
        bundle="b" * 64,
        principal=Principal(id="ada", roles=("analyst",)),
        task={"fund": "Nordlys"},
        model="scripted/demo.yaml",
    )


def chain(
    run: str, *bodies: Body, after: Head | None = None, epoch: int = 0, actor: Actor = HOST
) -> list[Event]:
    """Sealed events that continue `after`, or start the Run."""
    seq, previous = (after.seq, after.hash) if after else (0, GENESIS)
    made: list[Event] = []
    for body in bodies:
        seq += 1
        made.append(seal(RunId(run), seq, NOW, actor, epoch, body, previous))
        previous = made[-1].hash
    return made


def texts(*words: str) -> list[Body]:
    return [InputReceived(text=word) for word in words]


def piece(store: EventStore, run: str, *bodies: Body, claim: Claim | None = None, **more: object) -> Append:
    """The append that fits what the store holds now."""
    head = store.head(RunId(run))
    found = chain(run, *bodies, after=head, epoch=claim.epoch if claim else 0)
    return Append(RunId(run), head.seq if head else 0, found, claim, **more)  # type: ignore[arg-type]


def summary(run: str, status: str = "proposing", policy: str = "fund-research", **more: object) -> RunSummary:
    row = RunSummary(RunId(run), policy, "d" * 64, status, 2, NOW, NOW, 1, "ada", "scripted/demo.yaml")
    return replace(row, **more)  # type: ignore[arg-type]


class StoreContract:
    """Needs a fixture `open_store`: opens the same log each time it is called."""

    @pytest.fixture
    def store(self, open_store: Callable[[], EventStore]) -> EventStore:
        return open_store()

    # --- appends

    def test_what_was_appended_is_read_back_equal(
        self, store: EventStore, open_store: Callable[[], EventStore]
    ):
        made = chain("r1", started(), *texts("a", "zoë \u0000 \U0001f600 \\ '"), actor=PERSON)
        store.append(Append(RunId("r1"), 0, made))
        assert list(store.events(RunId("r1"))) == made
        assert list(store.events(RunId("r1"), after=2)) == made[2:]
        assert store.head(RunId("r1")) == Head(3, made[-1].hash)
        assert list(open_store().events(RunId("r1"))) == made

    def test_a_long_log_is_read_in_order(self, store: EventStore):
        made = chain("r1", *texts(*map(str, range(600))))
        store.append(Append(RunId("r1"), 0, made))
        assert list(store.events(RunId("r1"))) == made
        assert [event.seq for event in store.events(RunId("r1"), after=511)] == list(range(512, 601))

    def test_an_unknown_run_has_no_head_and_no_events(self, store: EventStore):
        assert store.head(RunId("r1")) is None
        assert list(store.events(RunId("r1"))) == []

    def test_an_append_after_a_newer_log_is_a_conflict(self, store: EventStore):
        store.append(piece(store, "r1", started()))
        late = piece(store, "r1", *texts("late"))
        store.append(piece(store, "r1", *texts("first")))
        with pytest.raises(Conflict) as caught:
            store.append(late)
        assert "ends with event 2, not 1" in caught.value.message
        assert len(list(store.events(RunId("r1")))) == 2

    def test_an_append_to_a_run_that_does_not_exist_is_a_conflict(self, store: EventStore):
        first = chain("r1", started())
        with pytest.raises(Conflict):
            store.append(Append(RunId("r1"), 1, chain("r1", *texts("x"), after=Head(1, first[0].hash))))
        assert store.head(RunId("r1")) is None

    def test_a_run_is_created_once(self, store: EventStore):
        store.append(piece(store, "r1", started()))
        with pytest.raises(UsageError) as caught:
            store.append(Append(RunId("r1"), 0, chain("r1", started())))
        assert "agentctl resume r1" in caught.value.remedy

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda events: events[:1] + events[2:],
            lambda events: list(reversed(events)),
            lambda events: [replace(events[0], run=RunId("r2")), *events[1:]],
            lambda events: [events[0], replace(events[1], previous="0" * 64), events[2]],
            lambda events: [replace(events[0], previous="1" * 64), *events[1:]],
            lambda events: [],
        ],
        ids=["gap", "disorder", "another run", "broken link", "no genesis", "nothing"],
    )
    def test_events_that_are_no_gapless_chain_are_a_fault(self, store: EventStore, spoil):
        with pytest.raises(Fault):
            store.append(Append(RunId("r1"), 0, spoil(chain("r1", started(), *texts("a", "b")))))
        assert store.head(RunId("r1")) is None

    def test_an_append_that_does_not_follow_the_stored_hash_is_a_fault(self, store: EventStore):
        store.append(piece(store, "r1", started()))
        with pytest.raises(Fault):
            store.append(Append(RunId("r1"), 1, chain("r1", *texts("x"), after=Head(1, "f" * 64))))

    def test_several_runs_share_a_commit_and_fail_one_by_one(self, store: EventStore):
        store.append(piece(store, "r2", started()))
        items = [
            piece(store, "r3", started()),
            Append(RunId("r2"), 0, chain("r2", started())),
            Append(RunId("r4"), 3, chain("r4", *texts("x"), after=Head(3, "a" * 64))),
            Append(RunId("r5"), 0, []),
            piece(store, "r1", started(), *texts("a")),
        ]
        results = store.append_all(items)
        assert [type(result) for result in results] == [type(None), UsageError, Conflict, Fault, type(None)]
        assert [store.head(RunId(run)) is not None for run in ("r1", "r2", "r3", "r4", "r5")] == [
            True, True, True, False, False,
        ]  # fmt: skip

    def test_two_pieces_of_one_run_go_in_order(self, store: EventStore):
        made = chain("r1", started(), *texts("a"))
        results = store.append_all([Append(RunId("r1"), 0, made[:1]), Append(RunId("r1"), 1, made[1:])])
        assert results == [None, None]
        assert list(store.events(RunId("r1"))) == made

    def test_threads_may_share_a_store(self, store: EventStore):
        def work(run: str) -> None:
            for number in range(20):
                store.append(piece(store, run, *texts(str(number))))

        threads = [Thread(target=work, args=(f"r{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [store.head(RunId(f"r{n}")).seq for n in range(4)] == [20] * 4  # type: ignore[union-attr]

    def test_a_log_of_a_newer_format_is_refused(self, store: EventStore):
        store.append(piece(store, "r1", started(format=99)))
        with pytest.raises(NewerLog, match="format 99"):
            list(store.events(RunId("r1")))

    def test_the_same_facts_are_the_same_bytes_in_every_store(self, store: EventStore):
        # langflow-ai/langflow#11905: NaN went into one database and not into the other.
        value = {
            "tiny": 1e-7,
            "big": 12345678901234567890123,
            "neg": -0.0,
            "nul": "\u0000",
            "é": [None, True],
        }
        store.append(piece(store, "r1", StateUpdated(slice="cart", value=value, version=1)))
        (row,) = store.rows(RunId("r1"))
        assert row.payload == (
            '{"slice":"cart","value":{"big":12345678901234567890123,"neg":-0.0,"nul":"\\u0000",'
            '"tiny":1e-07,"é":[null,true]},"version":1}'
        )
        assert row.hash == "32fc79df175417cce67d64b317f4a24ec24289ce5499014b123c345c64048dd9"
        for bad in ({"x": float("nan")}, {"x": "\ud800"}, {"\ud800": 1}):
            with pytest.raises(NotJson):
                chain("r1", StateUpdated(slice="cart", value=bad, version=1))

    # --- claims

    def test_a_claim_keeps_others_out_until_released(self, store: EventStore):
        claim = store.claim(RunId("r1"), ELSEWHERE, NOW, TTL)
        assert (claim.epoch, claim.expires_at) == (1, NOW + TTL)
        with pytest.raises(ClaimHeld) as caught:
            store.claim(RunId("r1"), this_process(), NOW, TTL)
        assert "pid 4242 on `another-host`" in caught.value.message
        assert "2026-06-30T12:00:00.123456Z" in caught.value.message
        store.release(claim)
        assert store.claim(RunId("r1"), this_process(), NOW, TTL).epoch == 2

    def test_a_process_does_not_claim_twice(self, store: EventStore):
        # dbos-inc/dbos-transact-java#491: recovery adopted a run of its own process; ours goes by epoch.
        store.claim(RunId("r1"), this_process(), NOW, TTL)
        with pytest.raises(ClaimHeld):
            store.claim(RunId("r1"), this_process(), NOW, TTL)

    def test_a_claim_lapses_and_its_driver_can_no_longer_append(self, store: EventStore):
        # dbos-inc/dbos-transact-py#742, google/adk-python#4751: a paused driver went on after a takeover.
        store.append(piece(store, "r1", started()))
        old = store.claim(RunId("r1"), ELSEWHERE, NOW, TTL)
        with pytest.raises(ClaimHeld):
            store.claim(RunId("r1"), this_process(), NOW + TTL - timedelta(microseconds=1), TTL)
        new = store.claim(RunId("r1"), this_process(), NOW + TTL, TTL)
        with pytest.raises(ClaimLost) as caught:
            store.append(piece(store, "r1", *texts("stale"), claim=old))
        assert "its claim 2 is newer than 1" in caught.value.message
        with pytest.raises(ClaimLost):
            store.renew(old, NOW, TTL)
        store.release(old)
        store.append(piece(store, "r1", *texts("fresh"), claim=new))
        assert [event.claim_epoch for event in store.events(RunId("r1"))] == [0, 2]

    def test_a_lost_claim_is_told_before_a_newer_log(self, store: EventStore):
        store.append(piece(store, "r1", started()))
        old = store.claim(RunId("r1"), ELSEWHERE, NOW, TTL)
        stale = piece(store, "r1", *texts("stale"), claim=old)
        new = store.claim(RunId("r1"), this_process(), NOW + TTL, TTL)
        store.append(piece(store, "r1", *texts("fresh"), claim=new))
        with pytest.raises(ClaimLost):
            store.append(stale)

    def test_renewing_prolongs_a_claim(self, store: EventStore):
        claim = store.renew(store.claim(RunId("r1"), ELSEWHERE, NOW, TTL), NOW + timedelta(seconds=10), TTL)
        assert claim.expires_at == NOW + timedelta(seconds=25)
        with pytest.raises(ClaimHeld):
            store.claim(RunId("r1"), this_process(), NOW + timedelta(seconds=20), TTL)

    def test_a_released_claim_cannot_be_renewed(self, store: EventStore):
        claim = store.claim(RunId("r1"), ELSEWHERE, NOW, TTL)
        store.release(claim)
        store.release(claim)
        with pytest.raises(ClaimLost):
            store.renew(claim, NOW, TTL)

    def test_claims_of_several_runs_share_a_commit_and_are_taken_one_by_one(self, store: EventStore):
        runs = [RunId(run) for run in ("r3", "r1", "r2", "r1")]
        other = store.claim(RunId("r2"), ELSEWHERE, NOW, TTL)
        taken = store.claim_all(runs, this_process(), NOW, TTL)
        assert [type(each) for each in taken] == [Claim, Claim, ClaimHeld, ClaimHeld]
        assert "pid 4242 on `another-host`" in str(taken[2])
        mine = [each for each in taken if isinstance(each, Claim)]
        assert [(each.run, each.epoch, each.expires_at) for each in mine] == [
            ("r3", 1, NOW + TTL), ("r1", 1, NOW + TTL),
        ]  # fmt: skip
        late = NOW + timedelta(seconds=10)
        lost = replace(other, epoch=7)
        renewed = store.renew_all([mine[0], lost, mine[1]], late, TTL)
        assert [type(each) for each in renewed] == [Claim, ClaimLost, Claim]
        assert renewed[0] == replace(mine[0], expires_at=late + TTL)
        store.release_all([*mine, lost])
        store.release_all(mine)
        again = store.claim_all(runs[:3], ELSEWHERE, NOW, TTL)
        assert [type(each) for each in again] == [Claim, Claim, ClaimHeld]

    def test_nothing_to_claim_is_nothing_claimed(self, store: EventStore):
        assert store.claim_all([], ELSEWHERE, NOW, TTL) == []
        assert store.renew_all([], NOW, TTL) == []
        store.release_all([])

    def test_a_claim_is_given_to_one_of_many_that_ask_at_a_time(self, open_store: Callable[[], EventStore]):
        runs = [RunId(f"r{number}") for number in range(30)]
        results: list[list[Claim | ClaimHeld]] = []
        stores = [open_store() for _ in range(3)]

        def work(store: EventStore, order: int) -> None:
            asked = runs if order % 2 else list(reversed(runs))
            results.append(store.claim_all(asked, ELSEWHERE, NOW, TTL))

        threads = [Thread(target=work, args=(store, order)) for order, store in enumerate(stores)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        taken = [each.run for result in results for each in result if isinstance(each, Claim)]
        assert sorted(taken) == sorted(runs)
        assert len(results) == 3

    def test_a_claim_of_a_dead_process_on_this_host_is_void_at_once(self, store: EventStore):
        me = this_process()
        store.claim(RunId("r1"), replace(me, started=me.started + 1.0), NOW, TTL)  # the pid was given again
        assert store.claim(RunId("r1"), me, NOW, TTL).epoch == 2

    def test_people_append_while_a_driver_holds_the_claim(self, store: EventStore):
        store.append(piece(store, "r1", started()))
        claim = store.claim(RunId("r1"), ELSEWHERE, NOW, TTL)
        store.append(piece(store, "r1", *texts("hello")))
        store.append(piece(store, "r1", *texts("noted"), claim=claim))
        assert store.head(RunId("r1")).seq == 3  # type: ignore[union-attr]

    def test_a_run_can_be_claimed_before_its_first_event(self, store: EventStore):
        claim = store.claim(RunId("r1"), ELSEWHERE, NOW, TTL)
        assert store.head(RunId("r1")) is None
        assert store.resolve("r") == []
        assert store.runs() == []
        store.append(piece(store, "r1", started(), claim=claim, summary=summary("r1")))
        assert store.resolve("r") == ["r1"]

    def test_a_claim_outlives_the_events_of_its_run(self, store: EventStore):
        claim = store.claim(RunId("r1"), ELSEWHERE, NOW, TTL)
        store.append(piece(store, "r1", started(), summary=summary("r1")))
        store.append(piece(store, "r1", *texts("a"), claim=claim))
        with pytest.raises(ClaimHeld):
            store.claim(RunId("r1"), this_process(), NOW, TTL)

    def test_a_claim_that_was_never_given_appends_nothing(self, store: EventStore):
        forged = Claim(RunId("r1"), 1, ELSEWHERE, NOW)
        with pytest.raises(ClaimLost):
            store.append(piece(store, "r1", started(), claim=forged))
        assert store.head(RunId("r1")) is None

    # --- the run list

    def test_runs_are_listed_newest_first_and_filtered(self, store: EventStore):
        for run, status, policy in (
            ("r1", "completed", "p"),
            ("r3", "failed", "q"),
            ("r2", "completed", "q"),
        ):
            store.append(piece(store, run, started(), summary=summary(run, status, policy)))
        store.append(piece(store, "r4", started()))
        assert [row.run for row in store.runs()] == ["r3", "r2", "r1"]
        assert [row.run for row in store.runs(status="completed")] == ["r2", "r1"]
        assert [row.run for row in store.runs(policy="q", limit=1)] == ["r3"]
        assert store.runs(status="completed", policy="p") == [summary("r1", "completed", "p")]

    def test_a_summary_follows_its_run(self, store: EventStore, open_store: Callable[[], EventStore]):
        store.append(piece(store, "r1", started(), summary=summary("r1")))
        last = summary("r1", "awaiting_approval", seq=2, open_approvals=1, reason="approval of 1.1")
        store.append(piece(store, "r1", *texts("a"), summary=last))
        assert store.runs() == [last] == open_store().runs()
        store.append(piece(store, "r1", *texts("b")))
        assert store.runs() == [replace(last, seq=3)]

    def test_the_run_list_is_rebuilt_from_events(self, store: EventStore):
        store.append(piece(store, "r1", started(), *texts("a"), summary=summary("r1", "wrong")))

        def summarise(run: RunId, events: Iterator[Event]) -> RunSummary:
            return summary(run, f"{len(list(events))} events", seq=2)

        assert store.rebuild(summarise) == 1  # type: ignore[attr-defined]
        assert [row.status for row in store.runs()] == ["2 events"]

    def test_a_prefix_names_runs(self, store: EventStore):
        for run in ("rab1", "rab2", "rac1", *(f"rx{n:02}" for n in range(12))):
            store.append(piece(store, run, started()))
        assert store.resolve("rab") == ["rab1", "rab2"]
        assert store.resolve("rac1") == ["rac1"]
        assert len(store.resolve("rx")) == 10
        for odd in ("r%", "r_b1", "RAB", "\udcff", "é", "\0"):
            assert store.resolve(odd) == []

    # --- blobs

    def test_a_large_text_is_stored_once_by_its_digest(
        self, store: EventStore, open_store: Callable[[], EventStore]
    ):
        text = "x" * 200_000 + "\u0000é\U0001f600"
        name = store.put_blob(text)
        assert name == digest(text) == store.put_blob(text)
        store.append(piece(store, "r1", started(), blobs={name: text, digest("b"): "b"}))
        assert open_store().blob(name) == text
        assert store.blob(digest("b")) == "b"
        assert store.blob("0" * 64) is None

    def test_a_refused_append_stores_no_blob(self, store: EventStore):
        store.append(piece(store, "r1", started()))
        late = chain("r1", *texts("x"), after=Head(7, "a" * 64))
        with pytest.raises(Conflict):
            store.append(Append(RunId("r1"), 7, late, blobs={digest("b"): "b"}))
        assert store.blob(digest("b")) is None

    @pytest.mark.parametrize(
        "blobs", [{"0" * 64: "b"}, {"0" * 64: "\ud800"}], ids=["wrong digest", "surrogate"]
    )
    def test_a_text_that_is_not_what_its_digest_says_is_a_fault(
        self, store: EventStore, blobs: dict[str, str]
    ):
        with pytest.raises(Fault):
            store.append(piece(store, "r1", started(), blobs=blobs))
        with pytest.raises(Fault):
            store.put_blob("\ud800")
        assert store.head(RunId("r1")) is None

    # --- loaded policies

    def test_the_last_loaded_version_counts(self, store: EventStore, open_store: Callable[[], EventStore]):
        def loaded(policy: str, version: int, overlay: bool = False) -> LoadedPolicy:
            return LoadedPolicy(policy, version, f"{version}" * 64, "b" * 64, NOW, "ops", overlay)

        assert store.newest_policies("fund") == []
        for one in (
            loaded("fund", 2), loaded("fund", 1), loaded("shop", 9),
            loaded("org", 1, True), loaded("org", 2, True), loaded("fund", 5, True),
        ):  # fmt: skip
            store.load_policy(replace(one, drain=one.version == 1))
        expected = [replace(loaded("fund", 1), drain=True), loaded("fund", 5, True), loaded("org", 2, True)]
        assert store.newest_policies("fund") == expected == open_store().newest_policies("fund")

    # --- audit

    def test_an_untouched_log_verifies(self, store: EventStore):
        made = chain("r1", started(), *texts("a", "b"), actor=PERSON)
        store.append(Append(RunId("r1"), 0, made))
        report = verify(store, RunId("r1"), witness=Head(2, made[1].hash))
        assert (report.holds, report.head) == (True, Head(3, made[-1].hash))
        with pytest.raises(UsageError):
            verify(store, RunId("r2"))

    def test_a_log_written_anew_contradicts_a_witnessed_head(self, store: EventStore):
        store.append(piece(store, "r1", started(), *texts("a", "b")))
        for witness, seq in ((Head(2, "f" * 64), 2), (Head(9, "f" * 64), 4)):
            broken = verify(store, RunId("r1"), witness).broken
            assert broken is not None
            assert broken.seq == seq
