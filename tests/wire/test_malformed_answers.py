"""After every malformed answer the next request is one that a strict provider takes; nothing ran that should not."""

from __future__ import annotations

import asyncio
import json
import os
import random
from typing import Any

import pytest

from engine.adapters.litellm_gateway import LitellmGateway
from engine.domain import events as e
from engine.domain.policy import Kind
from tests.wire.bench import CLAUDE, CLERK, GPT, Bench, policy
from tests.wire.malformed import (
    ODD_ARGUMENTS,
    ODD_NAMES,
    THINKING,
    Bad,
    Malformed,
    Said,
    anthropic,
    at_random,
    malformed,
    openai,
)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
FINISH = Said(calls=[("finish", "{}", "f")])
UNREAD = {raw for raw in ODD_ARGUMENTS if raw.startswith("[[[") or "9" * 5000 in raw}
"""litellm reads the arguments of a whole OpenAI response itself and gives the response up where it cannot."""
MAKERS = {"openai": (GPT, "/v1", openai), "anthropic": (CLAUDE, "", anthropic)}


@pytest.fixture(params=list(MAKERS))
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def bench_at(at: Malformed, wire: str, **how: Any) -> Bench:
    model, path, _ = MAKERS[wire]
    gateway = LitellmGateway(options={"api_base": at.url + path, "api_key": "sk-loopback-0123456789"})
    bench = Bench(gateway, policy(model, **how))
    bench.start("Order two apples.")
    return bench


def drive(bench: Bench, streamed: bool) -> Any:
    assert bench.run is not None
    listen = (lambda text: None) if streamed else None
    return asyncio.run(bench.runtime.drive(bench.run, on_text=listen))


def after(wire: str, streamed: bool, *bad: Bad | Said) -> tuple[Bench, Malformed]:
    """A Run that gets these answers and then a finish; every request of it was valid."""
    made = MAKERS[wire][2]
    answers = [one if isinstance(one, Bad) else made(one, streamed) for one in (*bad, FINISH)]
    with malformed(lambda number, body: answers[min(number, len(answers)) - 1]) as at:
        bench = bench_at(at, wire)
        state = drive(bench, streamed).state
        assert at.faults == []
        assert state.status == "completed", (state.status, state.ending, state.last_failure)
        assert at.requests == len(answers), at.kinds
    return bench, at


def cut_points(wire: str, streamed: bool) -> list[Bad]:
    """A response with text and two calls, cut at every tenth of its body, and just before its end."""
    said = Said("I look.", [("order", '{"item":"apples","count":2}', "a"), ("list_items", "{}", "b")])
    return [MAKERS[wire][2](said, streamed, cut=cut) for cut in (0, 3, *range(10, 91, 10), 95)]


def test_a_body_cut_at_any_point_is_an_attempt_and_nothing_of_it_runs(wire: str, streamed: bool) -> None:
    """vercel/ai#10638: an aborted stream was saved as a finished message."""
    for bad in cut_points(wire, streamed):
        bench, _ = after(wire, streamed, bad)
        if streamed and bench.shop.ledger:
            assert bad.cut is not None
            assert bad.cut >= 70, "the response was not closed yet"
            continue
        assert bench.shop.ledger == []
        assert len(bench.bodies(e.ModelAttemptFailed)) == 1
        assert len(bench.bodies(e.ModelTurnRecorded)) == 1


@pytest.mark.parametrize("raw", ODD_ARGUMENTS, ids=lambda raw: ascii(raw[:24]))
def test_odd_arguments_hit_only_their_own_call(raw: str, wire: str, streamed: bool) -> None:
    """camel-ai/camel#4338, livekit/agents#5409, NousResearch/hermes-agent#102757, earendil-works/pi#8943."""
    said = Said(calls=[("list_items", "{}", "a"), ("order", raw, "b"), ("get_stock", '{"item":"x"}', "c")])
    bench, _ = after(wire, streamed, said)
    if (wire, streamed) == ("openai", False) and raw in UNREAD:
        assert [one.error for one in bench.bodies(e.ModelAttemptFailed)] == ["unavailable"]
        return
    calls = list(bench.state.calls.values())
    assert [call.tool for call in calls] == ["list_items", "order", "get_stock", "finish"]
    assert [calls[0].status.value, calls[2].status.value] == ["settled", "settled"]
    assert calls[1].status.value == "rejected"
    assert bench.shop.ledger == []


def test_odd_names_are_answered_one_by_one(wire: str, streamed: bool) -> None:
    """deepset-ai/haystack#11754."""
    said = Said(
        calls=[(name, "{}", f"i{n}") for n, name in enumerate(ODD_NAMES)] + [("list_items", "{}", "z")]
    )
    bench, _ = after(wire, streamed, said)
    refused = bench.bodies(e.CallRejected)
    assert {one.refusal.code for one in refused} == {"not_offered"}
    assert len(refused) == len(ODD_NAMES)


@pytest.mark.parametrize("ids", [("same", "same"), (None, None), ("", ""), ("a" * 300, "ü:/")])
def test_repeated_null_and_illegal_ids_are_data(
    ids: tuple[str | None, str | None], wire: str, streamed: bool
) -> None:
    order = '{"item":"apples","count":1}'
    bench, _ = after(wire, streamed, Said(calls=[("order", order, ids[0]), ("order", order, ids[1])]))
    assert len(bench.shop.ledger) == 2


def test_calls_that_share_an_index_do_not_melt(streamed: bool) -> None:
    """BerriAI/litellm#33678."""
    said = Said(
        calls=[("order", '{"item":"a","count":1}', "a"), ("order", '{"item":"b","count":2}', "b")], melt=True
    )
    bench, _ = after("openai", streamed, said)
    assert [args["item"] for _, args in bench.shop.ledger] == ["a", "b"]


@pytest.mark.parametrize("finish", ["length", "content_filter"])
@pytest.mark.parametrize("raw", ['{"item":"apples","count":2}', '{"item":"apples","cou'])
def test_a_response_that_is_cut_executes_no_write_and_no_hybrid(
    raw: str, finish: str, wire: str, streamed: bool
) -> None:
    """ahwurm/localharness#77: the half call was repaired and run."""
    said = Said(
        calls=[("get_stock", '{"item":"x"}', "a"), ("order", '{"item":"apples","count":2}', "b"),
               ("reserve", '{"item":"apples"}', "c"), ("order", raw, "d")],
        finish=finish,
    )  # fmt: skip
    bench, _ = after(wire, streamed, said)
    assert bench.shop.ledger == []
    started = bench.bodies(e.ExecutionStarted)
    assert {one.tool_kind for one in started} <= {Kind.READ}
    codes = [one.refusal.code for one in bench.bodies(e.CallRejected)]
    assert codes[:3] == ["truncated"] * 3


@pytest.mark.parametrize("said", [Said(None, finish="stop"), Said("", finish="stop"), Said(" \n", finish="stop"),
                                  Said(thinking=True, finish="stop"), Said("text", finish="stop")])  # fmt: skip
def test_an_answer_without_calls_is_a_turn_or_an_attempt_and_the_run_goes_on(
    said: Said, wire: str, streamed: bool
) -> None:
    after(wire, streamed, said)


@pytest.mark.parametrize("finish", ["content_filter", "length"])
def test_filter_and_length_markers_are_read_by_type(finish: str, wire: str, streamed: bool) -> None:
    bench, _ = after(wire, streamed, Said("I cannot", finish=finish))
    expected = {("openai", "content_filter"): "filter", ("anthropic", "content_filter"): "refusal"}
    assert bench.bodies(e.ModelTurnRecorded)[0].finish == expected.get((wire, finish), finish)


def test_a_refusal_in_words_is_only_text(wire: str, streamed: bool) -> None:
    bench, _ = after(wire, streamed, Said("I am sorry, I refuse.", finish="stop"))
    assert bench.bodies(e.ModelTurnRecorded)[0].finish == "stop"


@pytest.mark.parametrize("finish", [None, "something_new"])
def test_a_finish_reason_that_is_missing_or_unknown_runs_no_write_by_accident(
    finish: str | None, wire: str, streamed: bool
) -> None:
    """A stream without one is never a response; litellm fills a missing one in where the body is whole."""
    said = Said(calls=[("order", '{"item":"apples","count":2}', "a")], finish=finish)
    bench, _ = after(wire, streamed, said)
    if streamed and finish is None:
        assert bench.shop.ledger == []
        assert len(bench.bodies(e.ModelAttemptFailed)) == 1


def test_signed_reasoning_goes_back_byte_for_byte_unless_the_host_changed_the_message(
    streamed: bool,
) -> None:
    """openclaw/openclaw#94228: a replayed block that differed by a byte bricked the thread."""
    good = Said(calls=[("list_items", "{}", "a")], thinking=True)
    _, at = after("anthropic", streamed, good)
    assert at.last["messages"][1]["content"][0] == THINKING
    odd = Said(calls=[("get_stock", "[3", "a")], thinking=True)
    if streamed:
        _, at = after("anthropic", streamed, odd)
        assert [block["type"] for block in at.last["messages"][1]["content"]] == ["tool_use"]


def test_after_ten_thousand_malformed_answers_no_request_was_one_that_a_strict_provider_refuses() -> None:
    """Sixteen Runs at once on each wire, streaming and not, until 10,000 answers were given."""
    total = int(os.environ.get("AGENTCTL_FUZZ", "10000"))
    for number, (wire, streamed) in enumerate((w, s) for w in MAKERS for s in (True, False)):
        draw = random.Random(number)
        with malformed(lambda _, body, d=draw, w=wire: at_random(d, w, bool(body.get("stream")))) as at:
            asyncio.run(_flood(at, wire, streamed, total // 4))
            assert at.faults == []
            assert at.requests >= total // 4


async def _flood(at: Malformed, wire: str, streamed: bool, total: int) -> None:
    async def one() -> None:
        while at.requests < total:
            bench = bench_at(at, wire, turns=12)
            assert bench.run is not None
            while at.requests < total:
                listen = (lambda text: None) if streamed else None
                driven = await bench.runtime.drive(bench.run, on_text=listen)
                if driven.state.terminal:
                    break
                if driven.state.status == "awaiting_input":
                    bench.runtime.reply(bench.run, "go on", by=CLERK.actor())
            _sound(bench)

    await asyncio.gather(*(one() for _ in range(16)))


def _sound(bench: Bench) -> None:
    """Each effect that really happened was started by an admitted call; none of a response cut by length."""
    started = [one for one in bench.bodies(e.ExecutionStarted) if one.tool_kind is not Kind.READ]
    assert len(started) == len(bench.shop.ledger)
    cut = {turn.turn for turn in bench.bodies(e.ModelTurnRecorded) if turn.finish == "length"}
    assert not [one for one in started if one.call.turn in cut]
    for turn in bench.bodies(e.ModelTurnRecorded):
        assert json.dumps(turn.model_dump(mode="json"))
