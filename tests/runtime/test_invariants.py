"""What always holds, over random responses, people, clocks, policies and crashes."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from engine.domain import events as e
from engine.domain.calls import Outcome
from engine.domain.canonical import canonical
from engine.domain.errors import Refused
from engine.domain.policy import Kind
from engine.lifecycle.fold import fold
from engine.ports import AttemptFailed
from engine.runtime import signals
from tests.runtime.bench import (
    LEAD,
    OTHER_LEAD,
    POLICY,
    TOOLS,
    Bench,
    Crash,
    CrashAt,
    Shop,
    say,
    with_lines,
)

BUDGETS = (
    '{turns: 40, cost_usd: "1.00", wall_time: 9h, calls: {total: 90, per_tool: {get_stock: 6, book_room: 5}},'
    " questions_to_user: 4}"
)
BASE = POLICY.replace(
    next(line for line in POLICY.splitlines() if line.startswith("budgets:")), f"budgets: {BUDGETS}"
)
TIGHTER = {
    "book_room": BASE.replace("tools: [book_room, reserve, set_price]", "tools: [reserve, set_price]"),
    "send_letter": BASE.replace("{id: letters, effect: ask", "{id: letters, effect: deny").replace(
        ", approval: {by: {roles: [lead]}, expires: 90s}}", "}"
    ),
    "get_stock": BASE.replace("tools: [get_stock, ping]", "tools: [ping]"),
}
HOST_TOOLS = {"find_booking", "release"}

call = st.one_of(
    st.tuples(st.just("get_stock"), st.fixed_dictionaries({"sku": st.integers(0, 3)})),
    st.tuples(st.just("get_stock"), st.sampled_from(["", "[]", '{"sku": "x"}', '{"sku": NaN}', "null"])),
    st.tuples(st.just("ping"), st.just("")),
    st.tuples(st.just("book_room"), st.fixed_dictionaries({"room": st.integers(0, 3)})),
    st.tuples(st.just("set_price"), st.fixed_dictionaries({"sku": st.integers(0, 1), "price": st.integers(0, 1)})),
    st.tuples(st.just("reserve"), st.fixed_dictionaries({"sku": st.integers(0, 3)})),
    st.tuples(st.just("send_letter"), st.fixed_dictionaries({"to": st.sampled_from(["a", "b"])})),
    st.tuples(st.just("search_docs"), st.fixed_dictionaries({"q": st.just("x")})),
    st.tuples(st.just("wipe_cache"), st.just({})),
    st.tuples(st.just("request_capability"), st.fixed_dictionaries({"capability": st.sampled_from(["docs", "ops"])})),
    st.tuples(st.just("ask_user"), st.just({"question": "Well?"})),
    st.tuples(st.just("publish_letter"), st.just({"body": "text"})),
    st.tuples(st.just("publish_note"), st.fixed_dictionaries({"body": st.sampled_from(["no", "It is [[E1]]."])})),
    st.tuples(st.just("finish"), st.just({})),
    st.tuples(st.sampled_from(["nothing", "release", "find_booking", "", "Get_Stock"]), st.just({})),
)  # fmt: skip
response = st.lists(call, max_size=4)


class Lives(RuleBasedStateMachine):
    """One Run, whatever happens to it."""

    policy, tools, shop = BASE, TOOLS, Shop
    writes: tuple[str, ...] = ("book_room", "set_price", "reserve", "send_letter", "wipe_cache")

    @initialize()
    def begin(self) -> None:
        self.next: list[list[Any]] = []
        self.effects: Counter[str] = Counter()
        self.denied: dict[str, int] = {}
        self.final: dict[Any, str] = {}
        self.failing: set[str] = set()
        self.bench = Bench(
            *[self._answer] * 60, policy=self.policy, tools=self.tools, shop=self.shop(), check_fold=False
        )
        for tool in self.writes:
            self.bench.shop.special[tool] = self._counted(tool)

    def _answer(self, request: Any) -> Any:
        if not self.next:
            raise AttemptFailed("auth", "nothing to say for now")
        return say(*self.next.pop(0))

    def _counted(self, tool: str) -> Any:
        usual = getattr(self.bench.shop, tool)

        async def counted(context: Any, **args: Any) -> object:
            self.effects[str(context.call)] += 1
            answer: object = await usual(**args, context=context)
            if tool in self.failing:
                self.failing.discard(tool)
                raise ConnectionError
            return answer

        return counted

    def _drive(self, crash: int = 0) -> None:
        try:
            self.bench.drive(CrashAt(crash))
        except Crash:
            self.bench.drive()

    # --- what happens ---------------------------------------------------------------------------------------

    @rule(calls=response, crash=st.integers(0, 14))
    def the_model_proposes(self, calls: list[Any], crash: int) -> None:
        self.next.append(calls)
        self._drive(crash)

    @rule(calls=response, tool=st.sampled_from(["book_room", "set_price", "reserve", "send_letter"]))
    def an_answer_is_lost(self, calls: list[Any], tool: str) -> None:
        self.failing.add(tool)
        self.next.append(calls)
        self._drive()

    @rule(crash=st.integers(0, 5))
    def it_is_driven(self, crash: int) -> None:
        self._drive(crash)

    @rule()
    def the_user_speaks(self) -> None:
        if not self.bench.state.terminal:
            self.bench.reply("go on")

    @rule(which=st.integers(0, 3), by=st.sampled_from([LEAD, OTHER_LEAD]), yes=st.booleans())
    def a_person_decides(self, which: int, by: Any, yes: bool) -> None:
        waiting = [id_ for id_ in self.bench.state.open_calls if self.bench.state.calls[id_].approval]
        if not waiting:
            return
        id_ = waiting[which % len(waiting)]
        decide = self.bench.approve if yes else self.bench.refuse
        try:
            decide(id_.turn, id_.ordinal, by)
        except Refused:
            assert self.bench.kinds[-1] == "DecisionNotEligible"

    @rule(
        source=st.sampled_from(["stock", "papers"]),
        name=st.sampled_from(["available", "degraded", "unavailable"]),
    )
    def a_source_changes(self, source: str, name: str) -> None:
        if not self.bench.state.terminal:
            self.bench.source(source, name)

    @rule(seconds=st.sampled_from([1, 60, 91, 700, 4000]))
    def time_passes(self, seconds: int) -> None:
        self.bench.clock.advance(seconds=seconds)

    @rule(tool=st.sampled_from(sorted(TIGHTER)))
    def a_stricter_policy_is_loaded(self, tool: str) -> None:
        if not self.bench.state.terminal and not self.denied:
            version = len(self.bench.log) + 2
            self.bench.load(TIGHTER[tool].replace("version: 1", f"version: {version}"))
            self.denied[tool] = self.bench.state.seq

    @rule(outcome=st.sampled_from(["confirmed", "not_executed", "failed"]))
    def an_operator_reconciles(self, outcome: Any) -> None:
        state = self.bench.state
        if state.unknown_calls and not state.terminal:
            known = next(iter(state.unknown_calls))
            if not self.effects[str(known)]:
                outcome = "not_executed"
            body = e.ReceiptRecorded(
                call=known, tool=state.calls[known].tool, outcome=outcome, settled_by="operator"
            )
            signals.append(self.bench.store, self.bench.clock, self.bench.run, LEAD, lambda _: [body])

    @rule(sure=st.integers(0, 9))
    def somebody_cancels(self, sure: int) -> None:
        if sure == 0 and not self.bench.state.terminal:
            self.bench.cancel()

    # --- what always holds ----------------------------------------------------------------------------------

    @invariant()
    def state_is_the_fold_of_the_log(self) -> None:
        self.bench.verified()
        assert fold(self.bench.run, self.bench.log) == self.bench.state

    @invariant()
    def no_effect_without_a_durable_start_and_none_twice(self) -> None:
        assert all(count == 1 for count in self.effects.values()), self.effects
        started = {str(event.body.call) for event in self.bench.of_kind("ExecutionStarted")}
        assert set(self.effects) <= started

    @invariant()
    def every_proposal_comes_to_one_end_and_stays_there(self) -> None:
        state = self.bench.state
        for id_, call in state.calls.items():
            if not call.status.final:
                continue
            said = call.receipt.outcome.value if call.receipt else call.status.value
            before = self.final.get(id_)
            assert before in (None, said, "unknown"), (id_, before, said)
            self.final[id_] = said
        turn = state.turn
        if turn is not None:
            assert len(turn.calls) == len(turn.recorded.proposals)
        for earlier in state.turns[:-1]:
            assert all(not state.calls[id_].open for id_ in earlier.calls)

    @invariant()
    def nothing_runs_that_was_not_offered_and_permitted(self) -> None:
        state = self.bench.state
        for event in self.bench.of_kind("ExecutionStarted"):
            body = event.body
            if body.host is not None:
                continue
            assert body.tool in state.turns[body.call.turn - 1].offered
            assert body.tool not in HOST_TOOLS
            assert event.seq < self.denied.get(body.tool, event.seq + 1), body.tool
        for event in self.bench.of_kind("ContractCompiled"):
            assert not HOST_TOOLS & set(event.body.tools)

    @invariant()
    def the_model_authors_turns_and_nothing_else(self) -> None:
        for event in self.bench.log:
            assert (event.actor.type == "model") == (event.kind == "ModelTurnRecorded")
            if event.kind in ("ApprovalGiven", "ApprovalRefused", "CancelRequested"):
                assert event.actor.type == "person"

    @invariant()
    def budgets_and_grants_are_never_overdrawn(self) -> None:
        spent = self.bench.state.spent
        assert spent.per_tool.get("get_stock", 0) <= 6
        assert spent.per_tool.get("book_room", 0) <= 5
        assert spent.questions <= 4
        assert all(
            grant.calls_left is None or grant.calls_left >= 0 for grant in self.bench.state.grants.values()
        )

    @invariant()
    def an_approval_is_used_once_for_the_call_that_was_shown(self) -> None:
        for event in self.bench.of_kind("ExecutionStarted"):
            call = self.bench.state.calls[event.body.call]
            if call.tool == "send_letter":
                assert call.approval is not None
                assert call.approval.decided == "approved"
                named = {argument["name"]: argument["value"] for argument in call.approval.shown["arguments"]}
                assert canonical(named) == canonical(event.body.args)

    @invariant()
    def a_terminal_run_leaves_nothing_open_or_unnamed(self) -> None:
        state = self.bench.state
        if not state.terminal:
            return
        end = next(event for event in reversed(self.bench.log) if isinstance(event.body, e.Ending)).body
        assert not state.open_calls
        assert set(end.unknown_effects) == set(state.unknown_calls)
        if isinstance(end, e.RunCompleted):
            assert not state.unknown_calls
        for id_ in state.open_holds:
            ends: datetime | None = state.calls[id_].hold_ends
            assert (
                id_ in end.not_compensated
                or id_ in end.lapsed
                or ends is None
                or ends <= self.bench.clock.now()
            )
        for call in state.calls.values():
            if call.kind is Kind.HYBRID and call.receipt and call.receipt.outcome is Outcome.CONFIRMED:
                undone = call.compensated_by is not None or call.id not in state.open_holds
                assert undone or call.id in end.not_compensated or call.id in end.lapsed

    def teardown(self) -> None:
        """Whatever happened, a cancel ends it."""
        if not hasattr(self, "bench"):
            return
        if not self.bench.state.terminal:
            self.bench.cancel()
            self._drive()
        assert self.bench.state.terminal
        self.a_terminal_run_leaves_nothing_open_or_unnamed()
        self.every_proposal_comes_to_one_end_and_stays_there()
        self.no_effect_without_a_durable_start_and_none_twice()


QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def some_call(chance: Random) -> tuple[str, Any]:
    """A call as models make them: mostly valid, sometimes not."""
    return chance.choice(
        [
            ("get_stock", {"sku": chance.randint(0, 3)}),
            ("get_stock", chance.choice(["", "[]", '{"sku": "x"}', '{"sku": NaN}'])),
            ("ping", ""),
            ("book_room", {"room": chance.randint(0, 3)}),
            ("set_price", {"sku": chance.randint(0, 1), "price": 1}),
            ("reserve", {"sku": chance.randint(0, 3)}),
            ("send_letter", {"to": chance.choice(["a", "b"])}),
            ("search_docs", {"q": "x"}),
            ("wipe_cache", {}),
            ("request_capability", {"capability": chance.choice(["docs", "ops"])}),
            ("ask_user", {"question": "Well?"}),
            ("publish_letter", {"body": "text"}),
            ("publish_note", {"body": chance.choice(["no", "It is [[E1]]."])}),
            ("finish", {}),
            (chance.choice(["nothing", "release", "", "Get_Stock"]), {}),
        ]
    )


def step(life: Lives, chance: Random) -> None:
    """Something that could happen now; a waiting Run is mostly answered, a working one mostly goes on."""
    status = life.bench.status
    what = chance.random()
    if status == "awaiting_approval" and what < 0.7:
        life.a_person_decides(chance.randint(0, 3), chance.choice([LEAD, OTHER_LEAD]), chance.random() < 0.8)
        life.it_is_driven(chance.randint(0, 8))
    elif status == "awaiting_input" and what < 0.7:
        life.the_user_speaks()
        life.it_is_driven(chance.randint(0, 8))
    elif status == "awaiting_reconciliation" and what < 0.7:
        life.an_operator_reconciles(chance.choice(["confirmed", "not_executed", "failed"]))
        life.it_is_driven(chance.randint(0, 8))
    elif what < 0.75:
        calls = [some_call(chance) for _ in range(chance.randint(0, 5) or 1)]
        if chance.random() < 0.2:
            life.an_answer_is_lost(calls, chance.choice(["book_room", "set_price", "reserve", "send_letter"]))
        else:
            life.the_model_proposes(calls, chance.choice([0, chance.randint(1, 14)]))
    else:
        chance.choice(
            [
                lambda: life.a_source_changes(
                    chance.choice(["stock", "papers"]),
                    chance.choice(["available", "degraded", "unavailable"]),
                ),
                lambda: life.time_passes(chance.choice([1, 60, 91, 700, 4000])),
                lambda: life.a_stricter_policy_is_loaded(chance.choice(sorted(TIGHTER))),
                lambda: life.an_operator_reconciles(chance.choice(["confirmed", "not_executed"])),
                life.the_user_speaks,
                lambda: life.somebody_cancels(chance.randint(0, 9)),
            ]
        )()


def live(seed: int, steps: int = 20) -> Lives:
    """One life by its seed: the same every time."""
    chance = Random(seed)
    life = Lives()
    life.begin()
    for _ in range(steps):
        step(life, chance)
        for check in INVARIANTS:
            check(life)
    life.teardown()
    return life


INVARIANTS = (
    Lives.state_is_the_fold_of_the_log,
    Lives.no_effect_without_a_durable_start_and_none_twice,
    Lives.every_proposal_comes_to_one_end_and_stays_there,
    Lives.nothing_runs_that_was_not_offered_and_permitted,
    Lives.the_model_authors_turns_and_nothing_else,
    Lives.budgets_and_grants_are_never_overdrawn,
    Lives.an_approval_is_used_once_for_the_call_that_was_shown,
    Lives.a_terminal_run_leaves_nothing_open_or_unnamed,
)


def test_what_always_holds_in_busy_lives():
    """Seeds of lives in which most things happen: the kinds of events that they bring are counted below."""
    kinds: Counter[str] = Counter()
    for seed in range(30):
        try:
            kinds.update(live(seed).bench.kinds)
        except BaseException as error:
            error.add_note(f"live({seed})")
            raise
    expected = {
        "CallFenced", "CallHeld", "ApprovalRefused", "ApprovalExpired", "CapabilityGranted", "GrantExpired",
        "QuestionAsked", "ReconcileTried", "OutputPublished", "PolicyLoaded", "RunCompleted", "RunCancelled",
    }  # fmt: skip
    assert expected <= set(kinds), expected - set(kinds)


def test_what_always_holds_whatever_comes():
    """Short lives by hypothesis, which makes a failing one small."""
    run_state_machine_as_test(
        Lives,
        settings=settings(
            max_examples=10, stateful_step_count=12, deadline=None, suppress_health_check=QUIET
        ),
    )


@pytest.mark.slow
def test_what_always_holds_over_many_lives():
    for seed in range(1000, 1300):
        try:
            live(seed, steps=30)
        except BaseException as error:
            error.add_note(f"live({seed}, steps=30)")
            raise


def test_the_policies_of_this_test_differ_as_they_say():
    assert len({BASE, *TIGHTER.values(), with_lines()}) == 5
