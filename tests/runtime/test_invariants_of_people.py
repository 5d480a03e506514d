"""What always holds where people decide: quorums, edits, standing approvals, policy versions that come and go, clocks
that are set back, writes that deduplicate by their key, parameters that the Host binds."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from engine.adapters.function_tools import ToolContext
from engine.domain import events as e
from engine.domain.canonical import canonical
from engine.domain.errors import Refused, UsageError
from engine.domain.policy import Kind
from engine.lifecycle.recover import MAX_ATTEMPTS
from engine.policy.binding import call_digest
from engine.runtime.approvals import Approval
from tests.runtime.bench import LEAD, ME, OTHER_LEAD, TOOLS, Actor, Shop
from tests.runtime.test_invariants import BASE, INVARIANTS, QUIET, Lives, some_call

THIRD_LEAD = Actor(type="person", id="lead3", issuer="local", roles=("lead",))
CLERK_ELSEWHERE = Actor(type="person", id="u1", issuer="https://id.example.org", roles=("clerk",))
PEOPLE = (LEAD, OTHER_LEAD, THIRD_LEAD, ME, CLERK_ELSEWHERE)

_LETTERS = "approval: {by: {roles: [lead]}, expires: 90s}"
_QUORUM = (
    "approval: {by: {roles: [lead]}, expires: 90s, quorum: %d, edit: [args.copies], "
    "standing: {max_age: 1h, max_calls: 2}}"
)
assert _LETTERS in BASE
POLICY = BASE.replace(_LETTERS, _QUORUM % 2).replace(
    "tools: [book_room, reserve, set_price]", "tools: [book_room, reserve, set_price, pay]"
)
VERSIONS: dict[str, tuple[str, frozenset[str], int]] = {
    "as before": (POLICY, frozenset(), 2),
    "no rooms": (POLICY.replace("[book_room, reserve,", "[reserve,"), frozenset({"book_room"}), 2),
    "no letters": (
        POLICY.replace(
            "effect: ask, roles: [clerk], tools: [send_letter], " + _QUORUM % 2,
            "effect: deny, roles: [clerk], tools: [send_letter]",
        ),
        frozenset({"send_letter"}),
        2,
    ),
    "three for a letter": (POLICY.replace(_QUORUM % 2, _QUORUM % 3), frozenset(), 3),
}
"""Name -> the text, what it denies, how many people a letter needs."""
WITH_KEYS = TOOLS.replace(
    "params: {to: {type: id}}",
    "params: {to: {type: id}, copies: {type: int, min: 1, max: 9}, sender: {type: id, bind: principal.id}}",
).replace(
    "  reserve:\n    kind: hybrid",
    """  pay:
    kind: write
    handler: "python:shop:pay"
    description: "Pay once."
    params: {amount: {type: int, min: 0, max: 9}}
    effects: [money.pay]
    idempotency: {key: [call.id], window: 2h}
    retry: same_key
    reconcile: {manual: "Look at the account"}
  reserve:
    kind: hybrid""",
)

letter = st.tuples(
    st.just("send_letter"),
    st.fixed_dictionaries({"to": st.sampled_from(["a", "b"]), "copies": st.integers(1, 2)}),
)
payment = st.tuples(st.just("pay"), st.fixed_dictionaries({"amount": st.integers(0, 1)}))
forged = st.tuples(st.just("send_letter"), st.just({"to": "a", "copies": 1, "sender": "the boss"}))
proposals = st.lists(st.one_of(letter, payment, forged), min_size=1, max_size=3)


class PayingShop(Shop):
    """A shop whose payments deduplicate by their key."""

    async def send_letter(self, to: str, copies: int, sender: str, context: ToolContext) -> object:  # type: ignore[override]  # other arguments are its point
        assert sender == "u1"
        self.effect(f"letter {to} x{copies}", context)
        return {"sent": True}

    async def pay(self, amount: int, context: ToolContext) -> object:
        if context.idempotency_key not in self.keys:
            self.effect(f"pay {amount} for {context.call}", context)
        return {}

    def handlers(self) -> Any:
        return {**super().handlers(), "pay": self.special.get("pay", self.pay)}


class Decisions(Lives):
    """One Run with many people."""

    policy, tools, shop = POLICY, WITH_KEYS, PayingShop
    writes = (*Lives.writes, "pay")

    # --- what happens ---------------------------------------------------------------------------------------

    @rule(calls=proposals, crash=st.integers(0, 14))
    def letters_and_payments_are_proposed(self, calls: list[Any], crash: int) -> None:
        self.next.append(calls)
        self._drive(crash)

    @rule(
        which=st.integers(0, 3),
        by=st.sampled_from(PEOPLE),
        standing=st.booleans(),
        copies=st.sampled_from([None, None, 1, 3, 99]),
        stale=st.booleans(),
    )
    def a_person_says_yes(self, which: int, by: Any, standing: bool, copies: int | None, stale: bool) -> None:
        waiting = [id_ for id_ in self.bench.state.open_calls if self.bench.state.calls[id_].approval]
        if not waiting:
            return
        decision = Approval(
            digest="0" * 64 if stale else None,
            edits=None if copies is None else {"copies": copies},
            standing=standing,
        )
        try:
            self.bench.runtime().approve(
                self.bench.run, waiting[which % len(waiting)], by=by, decision=decision
            )
        except Refused:
            assert self.bench.kinds[-1] == "DecisionNotEligible"
        except UsageError:
            assert copies == 99

    @rule(name=st.sampled_from(["G1", "G2", "S1", "S2", "S3"]), by=st.sampled_from(PEOPLE))
    def something_is_taken_back(self, name: str, by: Any) -> None:
        try:
            self.bench.runtime().revoke(self.bench.run, name, by=by, because="not any more")
        except (Refused, UsageError):
            assert self.bench.state.grants.get(name) is None or self.bench.kinds[-1] == "DecisionNotEligible"

    @rule(name=st.sampled_from(sorted(VERSIONS)))
    def a_version_is_loaded(self, name: str) -> None:
        if not self.bench.state.terminal:
            version = len(self.bench.log) + 2
            self.bench.load(VERSIONS[name][0].replace("version: 1", f"version: {version}"), tools=WITH_KEYS)
            self.loaded[version] = name

    @property
    def loaded(self) -> dict[int, str]:
        """Version -> which of VERSIONS it is."""
        return self.__dict__.setdefault("_loaded", {})  # type: ignore[no-any-return]  # made at the first load

    @rule(tool=st.just(""))
    def a_stricter_policy_is_loaded(self, tool: str) -> None:
        """Here versions come and go: see `a_version_is_loaded`."""

    @rule(seconds=st.sampled_from([-3600, -91, -1, 30]))
    def the_clock_is_set(self, seconds: int) -> None:
        self.bench.clock.advance(seconds=seconds)

    # --- what always holds ----------------------------------------------------------------------------------

    @invariant()
    def no_effect_without_a_durable_start_and_none_twice(self) -> None:
        """A payment may be sent again with its key, and happens once; everything else is sent once."""
        paid = Counter(line for line in self.bench.shop.ledger if line.startswith("pay "))
        assert all(count == 1 for count in paid.values()), paid
        sent: dict[Any, list[e.ExecutionStarted]] = {}
        for event in self.bench.of_kind("ExecutionStarted"):
            sent.setdefault(event.body.call, []).append(event.body)
        for starts in sent.values():
            again = starts[0].tool in ("pay", "release")
            if starts[0].tool_kind is not Kind.READ:
                assert len(starts) <= (MAX_ATTEMPTS if again else 1)
            assert len({start.idempotency_key for start in starts}) == 1
        tools = {str(call): starts[0].tool for call, starts in sent.items()}
        assert all(count == 1 or tools[call] == "pay" for call, count in self.effects.items())

    @invariant()
    def nothing_runs_that_the_version_in_force_denies(self) -> None:
        denied: frozenset[str] = frozenset()
        for event in self.bench.log:
            if isinstance(event.body, e.PolicyLoaded):
                denied = VERSIONS[self.loaded[event.body.version]][1]
            elif isinstance(event.body, e.ExecutionStarted) and event.body.host is None:
                assert event.body.tool not in denied

    @invariant()
    def an_approval_is_used_once_for_the_call_that_was_shown(self) -> None:
        """Told from the events alone: the digest of what ran, who said yes to it, how many of them, and in time."""
        quorum, log = 2, self.bench.log
        for event in log:
            body = event.body
            if isinstance(body, e.PolicyLoaded):
                quorum = max(2, VERSIONS[self.loaded[body.version]][2])
            elif isinstance(body, e.ExecutionStarted) and body.tool == "send_letter":
                if body.standing:
                    self._stood(event, log)
                else:
                    self._decided(event, log, quorum)

    def _decided(self, start: e.Event, log: list[e.Event], quorum: int) -> None:
        body: Any = start.body
        policy = self.bench.policy
        wanted = call_digest(
            body.tool, policy.tools[body.tool].digest, body.args, self.bench.state.principal, policy.digest
        )
        digest, expires, people = "", None, set[str]()
        for event in log[: start.seq - 1]:
            fact: Any = event.body
            if getattr(fact, "call", None) != body.call:
                continue
            if isinstance(fact, e.ApprovalRequested):
                people = people if fact.digest == digest else set()
                digest, expires = fact.digest, max(need.expires_at for need in fact.requirements)
            elif isinstance(fact, e.ApprovalGiven):
                assert fact.digest == digest
                assert expires is not None
                assert event.recorded_at <= expires
                assert "lead" in event.actor.roles
                if fact.amendment is not None:
                    digest, people = fact.amendment.digest, set()
                people.add(event.actor.id)
            assert not isinstance(fact, e.ApprovalRefused | e.ApprovalExpired)
        assert digest == wanted
        assert len(people) >= quorum, (people, quorum)

    def _stood(self, start: e.Event, log: list[e.Event]) -> None:
        body: Any = start.body
        for name in body.standing:
            used, granted = 0, None
            for event in log[: start.seq - 1]:
                fact: Any = event.body
                if isinstance(fact, e.StandingGranted) and fact.grant == name:
                    granted = fact
                elif isinstance(fact, e.StandingEnded) and fact.grant == name:
                    raise AssertionError(f"{name} had ended")
                elif isinstance(fact, e.ExecutionStarted) and name in fact.standing:
                    used += fact.call != body.call
            assert granted is not None
            assert used < 2
            assert (granted.tool, canonical(granted.args)) == (body.tool, canonical(body.args))
            assert len(granted.by.split(", ")) >= 2

    @invariant()
    def what_the_host_binds_is_neither_offered_nor_taken(self) -> None:
        for event in self.bench.of_kind("ContractCompiled"):
            assert "sender" not in (self.bench.store.blob(event.body.digest) or "")
        for event in self.bench.of_kind("ExecutionStarted"):
            if event.body.tool == "send_letter":
                assert event.body.args["sender"] == "u1"


MORE = (
    Decisions.nothing_runs_that_the_version_in_force_denies,
    Decisions.what_the_host_binds_is_neither_offered_nor_taken,
)


def moment(life: Decisions, chance: Random) -> None:
    """Something that could happen now; people are asked often and answer mostly."""
    status, what = life.bench.status, chance.random()
    if status == "awaiting_approval" and what < 0.75:
        for _ in range(chance.randint(1, 3)):
            life.a_person_says_yes(
                chance.randint(0, 3), chance.choice([*PEOPLE[:3], *PEOPLE]), chance.random() < 0.5,
                chance.choice([None] * 6 + [1, 3, 99]), chance.random() < 0.1,
            )  # fmt: skip
        if chance.random() < 0.15:
            life.a_person_decides(0, LEAD, False)
        life.it_is_driven(chance.choice([0, 0, chance.randint(1, 8)]))
    elif status == "awaiting_input":
        life.the_user_speaks()
        life.it_is_driven(0)
    elif status == "awaiting_reconciliation":
        life.an_operator_reconciles(chance.choice(["confirmed", "not_executed"]))
        life.it_is_driven(0)
    elif what < 0.7:
        kinds = [
            ("send_letter", {"to": chance.choice(["a", "b"]), "copies": 1}),
            ("send_letter", {"to": "a", "copies": 1}),
            ("pay", {"amount": chance.randint(0, 1)}),
            some_call(chance),
        ]
        calls = [chance.choice(kinds) for _ in range(chance.randint(1, 3))]
        if chance.random() < 0.2:
            life.an_answer_is_lost(calls, chance.choice(["pay", "send_letter", "book_room"]))
        else:
            life.letters_and_payments_are_proposed(calls, chance.choice([0, chance.randint(1, 14)]))
    else:
        chance.choice(
            [
                lambda: life.a_version_is_loaded(chance.choice(sorted(VERSIONS))),
                lambda: life.the_clock_is_set(chance.choice([-3600, -91, -1, 30])),
                lambda: life.time_passes(chance.choice([1, 60, 91, 700, 4000])),
                lambda: life.something_is_taken_back(chance.choice(["G1", "S1", "S2"]), LEAD),
                lambda: life.a_source_changes("stock", chance.choice(["available", "unavailable"])),
            ]
        )()


def live(seed: int, steps: int = 25) -> Decisions:
    """One life by its seed: the same every time."""
    chance = Random(seed)
    life = Decisions()
    life.begin()
    for _ in range(steps):
        moment(life, chance)
        for check in (
            *(getattr(life, each.__name__) for each in INVARIANTS),
            *(each.__get__(life) for each in MORE),
        ):
            check()
    life.teardown()
    return life


def lives(seeds: range, steps: int = 25) -> Counter[str]:
    """Leads them all; returns the kinds of events that they brought."""
    kinds: Counter[str] = Counter()
    for seed in seeds:
        try:
            life = live(seed, steps)
        except BaseException as error:
            error.add_note(f"live({seed}, steps={steps})")
            raise
        kinds.update(life.bench.kinds)
        kinds["standing used"] += sum(
            bool(event.body.standing) for event in life.bench.of_kind("ExecutionStarted")
        )
        kinds["amended"] += sum(
            event.body.amendment is not None for event in life.bench.of_kind("ApprovalGiven")
        )
        kinds["sent again"] += sum(event.body.attempt > 1 for event in life.bench.of_kind("ExecutionStarted"))
    return kinds


def test_what_always_holds_where_people_decide():
    kinds = lives(range(10))
    expected = {
        "ApprovalGiven", "ApprovalRefused", "ApprovalExpired", "DecisionNotEligible", "StandingGranted",
        "StandingEnded", "PolicyLoaded", "CallFenced", "standing used", "amended", "sent again",
    }  # fmt: skip
    assert all(kinds[kind] for kind in expected), {kind for kind in expected if not kinds[kind]}


def test_what_always_holds_whatever_people_do():
    """Short lives by hypothesis, which makes a failing one small."""
    run_state_machine_as_test(
        Decisions,
        settings=settings(max_examples=8, stateful_step_count=12, deadline=None, suppress_health_check=QUIET),
    )


@pytest.mark.slow
def test_what_always_holds_over_many_lives_of_people():
    lives(range(1000, 1250), steps=35)


def test_the_versions_of_this_test_differ_as_they_say():
    assert len({text for text, *_ in VERSIONS.values()}) == len(VERSIONS)
