"""The same Runs over real HTTP against simulators that others wrote, on both wires, streaming and not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.adapters.litellm_gateway import LitellmGateway
from engine.domain import events as e
from engine.lifecycle.steps import Stop
from tests.wire.bench import CLAUDE, GPT, Bench, policy
from tests.wire.simulators import SIMULATORS, Say, Simulator

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
TASK = "Order two apples if there are any."
FINISH = Say(calls=[("finish", {})])
LOOK = Say("I look.", [("get_stock", {"item": "apples"}), ("list_items", {})])
ORDER = Say(calls=[("order", {"item": "apples", "count": 2})])


@pytest.fixture(params=list(SIMULATORS))
def simulator(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[GPT, CLAUDE])
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@contextmanager
def shop(
    simulator: str, folder: Path, model: str, says: Sequence[Say], **how: Any
) -> Iterator[tuple[Bench, Simulator]]:
    with SIMULATORS[simulator](folder, says) as at:
        base = at.url + ("/v1" if model == GPT else "")
        gateway = LitellmGateway(options={"api_base": base, "api_key": "sk-loopback-0123456789"})
        bench = Bench(gateway, policy(model, **how))
        bench.start(TASK)
        yield bench, at


def _needs_typed_errors(simulator: str, streamed: bool) -> None:
    if simulator == "fakellm" and streamed:
        pytest.skip("fakellm answers a streamed request with 200, whatever status its rule names")


def drive(bench: Bench, streamed: bool) -> Any:
    assert bench.run is not None
    heard: list[str] = []
    listen = heard.append if streamed else None
    driven = asyncio.run(bench.runtime.drive(bench.run, on_text=listen))
    return driven, "".join(heard)


def test_a_task_with_parallel_reads_a_write_and_a_finish(
    simulator: str, model: str, streamed: bool, tmp_path: Path
) -> None:
    with shop(simulator, tmp_path, model, [LOOK, ORDER, FINISH]) as (bench, at):
        driven, heard = drive(bench, streamed)
        assert driven.state.status == "completed"
        assert at.requests() == 3
    assert bench.shop.ledger == [("order", {"item": "apples", "count": 2})]
    assert [call.status.value for call in bench.state.calls.values()] == ["settled"] * 3 + ["committed"]
    turns = bench.bodies(e.ModelTurnRecorded)
    assert [turn.finish for turn in turns] == ["tool_calls"] * 3
    assert all(turn.cost_usd is not None for turn in turns)
    if streamed:
        assert heard.startswith(turns[0].text)


def test_a_tool_that_does_not_exist_and_wrong_arguments_are_answered_and_the_run_goes_on(
    simulator: str, model: str, streamed: bool, tmp_path: Path
) -> None:
    odd = Say(calls=[("drop_all", {}), ("order", {"item": "apples", "count": "two"}), ("list_items", {})])
    with shop(simulator, tmp_path, model, [odd, FINISH]) as (bench, at):
        driven, _ = drive(bench, streamed)
        assert driven.state.status == "completed"
        assert at.requests() == 2
    assert bench.shop.ledger == []
    refused = [(one.tool, one.refusal.code) for one in bench.bodies(e.CallRejected)]
    assert refused == [("drop_all", "not_offered"), ("order", "invalid_arguments")]


def test_an_error_of_the_provider_is_one_attempt_and_the_next_is_the_hosts(
    simulator: str, model: str, streamed: bool, tmp_path: Path
) -> None:
    _needs_typed_errors(simulator, streamed)
    with shop(simulator, tmp_path, model, [Say(status=503), Say(status=429), ORDER, FINISH]) as (bench, at):
        driven, _ = drive(bench, streamed)
        assert at.requests() == 4
        assert driven.state.status == "completed"
    assert [one.error for one in bench.bodies(e.ModelAttemptFailed)] == ["unavailable", "rate_limited"]
    assert len(bench.shop.ledger) == 1


def test_a_refused_key_stops_without_another_request(
    simulator: str, model: str, streamed: bool, tmp_path: Path
) -> None:
    _needs_typed_errors(simulator, streamed)
    with shop(simulator, tmp_path, model, [Say(status=401)]) as (bench, at):
        driven, _ = drive(bench, streamed)
        assert isinstance(driven.step, Stop)
        assert at.requests() == 1
    assert bench.bodies(e.ModelAttemptFailed)[0].error == "auth"


def test_text_without_calls_waits_for_the_user(
    simulator: str, model: str, streamed: bool, tmp_path: Path
) -> None:
    says = [Say("Which apples?")] * 4 + [FINISH]
    with shop(simulator, tmp_path, model, says) as (bench, at):
        driven, heard = drive(bench, streamed)
        assert driven.state.status == "awaiting_input"
        assert at.requests() == 4
        if streamed:
            assert heard.startswith("Which apples?")
