"""Attempts, fallbacks, prices and budgets of one ModelTurn, as events; the gateway is a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from engine.domain import events as e
from engine.domain.errors import UsageError
from engine.domain.policy import ModelUse
from engine.lifecycle.steps import Stop
from engine.ports import AttemptFailed, Counted, ModelRequest, ModelResponse, ProposedCall
from tests.wire.bench import CLAUDE, GPT, Bench, policy

SPENT = e.Usage(input_tokens=10, output_tokens=5)
FINISH = (ProposedCall("finish", "{}"),)
LOOK = (ProposedCall("get_stock", '{"item":"apples"}'),)


class Played:
    """Answers in order; a price of one cent a token, or of nothing known."""

    def __init__(self, *answers: Any, prices: dict[str, Decimal | None] | None = None) -> None:
        self.answers = list(answers)
        self.prices = prices or {}
        self.requests: list[ModelRequest] = []

    async def propose(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelResponse:
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        if on_text is not None and answer.text:
            on_text(answer.text)
        return answer

    def price(self, model: ModelUse, input_tokens: int, output_tokens: int) -> Decimal | None:
        per_token = self.prices.get(model.id, Decimal("0.00001"))
        return None if per_token is None else per_token * (input_tokens + output_tokens)


def turn(*calls: ProposedCall, **more: Any) -> ModelResponse:
    return ModelResponse("m", calls=calls, finish="tool_calls" if calls else "stop", usage=SPENT, **more)


def failed(error: Any, **more: Any) -> AttemptFailed:
    return AttemptFailed(error, f"it was {error}", **more)


# --- attempts ---------------------------------------------------------------------------------------------


def test_every_attempt_its_error_class_its_usage_and_its_cost_is_an_event() -> None:
    gateway = Played(failed("unavailable"), failed("cut", usage=SPENT), turn(*FINISH))
    bench = Bench(gateway)
    assert bench.drive().state.status == "completed"
    started = bench.bodies(e.ModelAttemptStarted)
    assert [(one.turn, one.attempt, one.model) for one in started] == [
        (1, 1, GPT), (1, 2, GPT), (1, 3, GPT)
    ]  # fmt: skip
    lost, cut = bench.bodies(e.ModelAttemptFailed)
    assert (lost.error, lost.usage, lost.cost_usd) == ("unavailable", None, None)
    assert (cut.error, cut.usage, cut.cost_usd) == ("cut", SPENT, Decimal("0.00015"))
    closed = bench.bodies(e.ModelTurnRecorded)[0]
    assert (closed.attempt, closed.usage, closed.cost_usd) == (3, SPENT, Decimal("0.00015"))


def test_a_call_of_the_model_that_timed_out_is_charged_what_was_reserved() -> None:
    bench = Bench(Played(failed("timeout"), turn(*FINISH)))
    bench.drive()
    reserved = bench.bodies(e.ModelAttemptStarted)[0].reserved
    assert reserved.cost_usd is not None
    spent = bench.state.spent
    assert spent.cost_usd == reserved.cost_usd + Decimal("0.00015")
    assert spent.input_tokens == reserved.input_tokens + 10
    assert not spent.cost_unknown


def test_an_attempt_that_the_provider_refused_before_it_worked_costs_nothing() -> None:
    bench = Bench(Played(failed("rate_limited", usage=e.Usage()), turn(*FINISH)))
    bench.drive()
    assert bench.state.spent.cost_usd == Decimal("0.00015")


@pytest.mark.parametrize(
    ("budgets", "use", "asked"),
    [
        ("", "", 4096),
        ("", ", max_output_tokens: 77", 77),
        (", tokens: {output: 50}", ", max_output_tokens: 77", 50),
    ],
)
def test_the_model_is_asked_for_no_longer_answer_than_was_reserved(
    budgets: str, use: str, asked: int
) -> None:
    gateway = Played(turn(*FINISH))
    bench = Bench(gateway, policy(budgets=budgets, use=use))
    bench.drive()
    assert bench.bodies(e.ModelAttemptStarted)[0].reserved.output_tokens == asked
    assert gateway.requests[0].model.max_output_tokens == asked


@pytest.mark.parametrize(("retry_after", "slept"), [(7.0, 7.0), (None, 0.5), (0.0, 0.0)])
def test_the_next_attempt_waits_as_long_as_the_provider_asked(
    retry_after: float | None, slept: float
) -> None:
    bench = Bench(Played(failed("rate_limited", retry_after=retry_after), turn(*FINISH)))
    bench.drive()
    assert sum(bench.clock.slept) == pytest.approx(slept, abs=0.01)


def test_a_provider_that_asks_for_too_long_a_wait_leaves_the_run_resumable() -> None:
    bench = Bench(Played(failed("rate_limited", retry_after=3600.0), turn(*FINISH)))
    driven = bench.drive()
    assert isinstance(driven.step, Stop)
    assert driven.state.status == "proposing"
    assert bench.drive().state.status == "completed"


def test_patience_ends_after_four_attempts_and_the_run_goes_on_when_it_is_driven_again() -> None:
    gateway = Played(*[failed("unavailable")] * 4, turn(*FINISH))
    bench = Bench(gateway)
    assert isinstance(bench.drive().step, Stop)
    assert len(gateway.requests) == 4
    assert bench.drive().state.status == "completed"


def test_a_fallback_is_asked_within_the_same_turn_and_only_for_the_errors_that_the_policy_names() -> None:
    listed = policy(fallbacks=f"[{{id: {CLAUDE}, on: [rate_limited]}}]")
    gateway = Played(failed("unavailable"), failed("rate_limited"), turn(*FINISH))
    bench = Bench(gateway, listed)
    assert bench.drive().state.status == "completed"
    assert [one.model.id for one in gateway.requests] == [GPT, GPT, CLAUDE]
    assert {one.turn for one in bench.bodies(e.ModelAttemptStarted)} == {1}


def test_without_a_listed_fallback_no_other_model_is_ever_asked() -> None:
    """BerriAI/litellm#41344: a free model fell back to a paid one."""
    gateway = Played(*[failed("rate_limited")] * 6)
    bench = Bench(gateway)
    bench.drive()
    assert {one.model.id for one in gateway.requests} == {GPT}


def test_a_request_that_the_provider_refuses_for_good_fails_the_run_and_names_why() -> None:
    bench = Bench(Played(failed("bad_request")))
    assert bench.drive().state.status == "failed"
    end = bench.bodies(e.RunFailed)[0]
    assert (end.reason, end.message) == ("model:bad_request", "it was bad_request")


def test_a_wrong_key_leaves_the_run_as_it_is() -> None:
    bench = Bench(Played(failed("auth"), turn(*FINISH)))
    driven = bench.drive()
    assert isinstance(driven.step, Stop)
    assert "auth" in driven.step.error
    assert not driven.state.terminal


# --- prices ---------------------------------------------------------------------------------------------


def test_an_unpriced_model_is_refused_before_a_run_exists_and_the_remedy_names_the_file() -> None:
    """BerriAI/litellm#25874: a model missing from the price map was free."""
    bench = Bench(Played(turn(*FINISH), prices={GPT: None}))
    with pytest.raises(UsageError, match="no known price") as refused:
        bench.start()
    assert "agentctl.yaml" in refused.value.remedy
    assert "prices" in refused.value.remedy
    assert bench.runtime.runs() == []


def test_a_fallback_without_a_price_is_refused_as_well() -> None:
    listed = policy(fallbacks=f"[{{id: {CLAUDE}, on: [timeout]}}]")
    with pytest.raises(UsageError, match="claude"):
        Bench(Played(turn(*FINISH), prices={CLAUDE: None}), listed).start()


def test_a_price_that_was_lost_after_the_start_ends_the_run_and_says_so() -> None:
    gateway = Played(turn(*FINISH))
    bench = Bench(gateway)
    bench.start()
    gateway.prices[GPT] = None
    assert bench.drive().state.ending[:2] == ("expired", "budget:cost_usd")  # type: ignore[index]
    assert "agentctl.yaml" in bench.bodies(e.OperatorAlerted)[0].message
    assert gateway.requests == []


def test_a_response_without_a_cost_is_charged_at_the_price_of_the_model_that_was_asked() -> None:
    bench = Bench(Played(turn(*LOOK), turn(*FINISH)))
    bench.drive()
    assert bench.state.spent.cost_usd == Decimal("0.0003")


# --- budgets --------------------------------------------------------------------------------------------


def test_money_is_reserved_before_the_request_so_the_cap_is_never_passed() -> None:
    dear = turn(*LOOK, cost_usd=Decimal("0.40"))
    bench = Bench(Played(dear), policy(money="1.00", use=", max_output_tokens: 100"))
    bench.drive()
    assert bench.state.ending[:2] == ("expired", "budget:cost_usd")  # type: ignore[index]
    assert bench.state.spent.cost_usd == Decimal(
        "1.20"
    )  # one attempt may cost more than its reservation said
    assert len(bench.state.turns) == 3


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (", tokens: {input: 1}", "budget:tokens.input"),
        (", tokens: {output: 1}", "budget:tokens.output"),
        (", no_progress_turns: 1", "budget:no_progress_turns"),
        (", invalid_calls_in_a_row: 1", "budget:invalid_calls_in_a_row"),
    ],
)
def test_a_budget_that_ends_a_run_is_named(extra: str, reason: str) -> None:
    bench = Bench(Played(turn(ProposedCall("get_stock", "3"))), policy(budgets=extra))
    bench.drive()
    assert bench.state.ending[:2] == ("expired", reason)  # type: ignore[index]


def test_what_was_done_before_a_budget_ended_the_run_stays() -> None:
    order = ProposedCall("order", '{"item":"apples","count":2}')
    bench = Bench(Played(turn(order)), policy(budgets=", tokens: {output: 6}", use=", max_output_tokens: 6"))
    bench.drive()
    assert bench.state.ending[0] == "expired"  # type: ignore[index]
    assert bench.shop.ledger == [("order", {"item": "apples", "count": 2})] * len(bench.shop.ledger)
    assert [call.id for call in bench.state.effects()] != []


def test_the_calls_of_one_response_cannot_pass_the_total_together() -> None:
    """use-agent-os/agent-os#823: concurrent work all passed the same check. keurcien/auxilia#97: the limit fell
    between the proposal and its result."""
    reads = [ProposedCall("get_stock", f'{{"item":"i{n}"}}') for n in range(4)]
    bench = Bench(Played(turn(*reads), turn(*FINISH)), policy(calls=3))
    bench.drive()
    outcomes = [call.status.value for call in bench.state.calls.values()]
    assert outcomes.count("settled") == 3
    assert outcomes[3] == "rejected"
    assert bench.state.ending[:2] == ("expired", "budget:calls.total")  # type: ignore[index]


def test_a_denied_call_that_comes_again_and_again_ends_by_lack_of_progress() -> None:
    """Kilo-Org/kilocode#13772."""
    bench = Bench(Played(turn(ProposedCall("drop_all", "{}"))), policy(budgets=", no_progress_turns: 5"))
    bench.drive()
    assert bench.state.ending[:2] == ("expired", "budget:no_progress_turns")  # type: ignore[index]
    assert len(bench.state.turns) == 5


def test_a_policy_changes_the_contract_when_little_is_left() -> None:
    near_end = """
visibility:
  hide: [{id: near_the_end, tools: [order, reserve], when: "run.budget_left.turns <= 98"}]
"""
    gateway = Played(turn(*LOOK), turn(*LOOK), turn(*FINISH))
    bench = Bench(gateway, policy(more=near_end))
    assert bench.drive().state.status == "completed"
    offered = ["order" in {tool.name for tool in one.tools} for one in gateway.requests]
    assert offered == [True, True, False]


# --- the size of a request ------------------------------------------------------------------------------


class Meter:
    def __init__(self, counted: Counted | None) -> None:
        self.counted = counted
        self.asked = 0

    async def count(self, request: ModelRequest) -> Counted | None:
        self.asked += 1
        return self.counted


def test_far_from_a_budget_nobody_is_asked_how_large_the_request_is() -> None:
    meter = Meter(Counted(1, True))
    bench = Bench(Played(turn(*LOOK), turn(*FINISH)), meter=meter)
    bench.drive()
    assert meter.asked == 0
    assert not bench.bodies(e.ModelAttemptStarted)[0].reserved.exact


def test_near_a_budget_the_exact_size_decides_and_is_marked() -> None:
    meter = Meter(Counted(42, True))
    bench = Bench(Played(turn(*FINISH)), policy(budgets=", tokens: {input: 60}"), meter=meter)
    assert bench.drive().state.status == "completed"
    reserved = bench.bodies(e.ModelAttemptStarted)[0].reserved
    assert (meter.asked, reserved.input_tokens, reserved.exact) == (1, 42, True)


def test_a_size_that_cannot_be_counted_stays_an_estimate_and_is_asked_for_once() -> None:
    meter = Meter(None)
    bench = Bench(Played(turn(*FINISH)), policy(budgets=", tokens: {input: 60}"), meter=meter)
    bench.drive()
    assert meter.asked == 1
    assert bench.state.ending[:2] == ("expired", "budget:tokens.input")  # type: ignore[index]


# --- streaming --------------------------------------------------------------------------------------------


def test_working_text_is_heard_as_it_comes() -> None:
    heard: list[str] = []
    bench = Bench(Played(turn(*FINISH, text="I am done.")))
    asyncio.run(bench.runtime.drive(bench.start(), on_text=heard.append))
    assert heard == ["I am done."]
