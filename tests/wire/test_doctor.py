"""What `doctor` finds, part by part."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.adapters.memory_store import MemoryStore
from engine.bootstrap import doctor
from engine.domain.policy import ModelUse
from engine.ports import AttemptFailed, ModelRequest, ModelResponse, ProposedCall
from engine.runtime.doctor import check_call, check_policy, check_price, check_store
from tests.wire.bench import Shop, policy

USE = ModelUse("anthropic/claude-x")


class Answers:
    def __init__(self, answer: Any, price: Decimal | None = Decimal(0)) -> None:
        self.answer = answer
        self._price = price

    async def propose(self, request: ModelRequest, on_text: Any = None) -> ModelResponse:
        if isinstance(self.answer, AttemptFailed):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]  # a ModelResponse of the test

    def price(self, model: ModelUse, input_tokens: int, output_tokens: int) -> Decimal | None:
        return self._price


def called(tool: str, arguments: str) -> ModelResponse:
    return ModelResponse("m", calls=(ProposedCall(tool, arguments),), finish="tool_calls")


async def test_a_model_that_calls_the_tool_as_asked_is_fine() -> None:
    check = await check_call(Answers(called("doctor_ping", '{"number": 7}')), USE)
    assert (check.verdict, check.remedy) == ("ok", "")


@pytest.mark.parametrize(
    ("answer", "said", "remedy"),
    [
        (ModelResponse("m", "seven"), "without a tool call", "native tool calls"),
        (called("other", "{}"), "`other`", "stronger"),
        (called("doctor_ping", "{"), "`doctor_ping`", "stronger"),
        (AttemptFailed("auth", "no key", remedy="export X=…"), "auth: no key", "export X=…"),
        (AttemptFailed("unavailable", "refused"), "unavailable", "network"),
        (AttemptFailed("fault", "odd"), "fault: odd", "see the message"),
    ],
)
async def test_whatever_is_wrong_with_a_model_has_a_remedy(answer: Any, said: str, remedy: str) -> None:
    check = await check_call(Answers(answer), USE)
    assert check.verdict == "failed"
    assert said in check.said
    assert remedy in check.remedy


def test_store_price_and_policy_are_looked_at_one_by_one() -> None:
    assert check_store(MemoryStore(), "here").verdict == "ok"
    assert check_price(Answers(None), USE).verdict == "ok"
    unpriced = check_price(Answers(None, None), USE)
    assert (unpriced.verdict, "agentctl.yaml" in unpriced.remedy) == ("failed", True)
    assert check_policy(policy(), Shop().tools()).verdict == "ok"


async def test_the_whole_doctor_looks_on_after_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.policy.yaml").write_text("agentctl: policy/v1\n")
    found = {check.name: check.verdict for check in await doctor(policy="bad.policy.yaml")}
    assert found == {
        "install": "ok",
        "secrets": "ok",
        "database": "ok",
        "policy": "failed",
        "model": "skipped",
    }


async def test_a_model_that_plays_back_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.script.yaml").write_text("agentctl: script/v1\nturns: []\n", encoding="utf-8")
    found = {check.name: check for check in await doctor("a.db", model="scripted/a.script.yaml")}
    assert (found["model"].verdict, "price" in found) == ("ok", False)
    assert "no provider is asked" in found["model"].said


@pytest.mark.parametrize("model", ["scripted/nowhere.yaml", "replay/r1", "a.script.yaml", "scripted"])
async def test_a_model_that_cannot_be_opened_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.script.yaml").write_text("agentctl: script/v1\nturns: []\n", encoding="utf-8")
    (check,) = [each for each in await doctor("a.db", model=model) if each.name == "model"]
    assert check.verdict == "failed"
    assert check.remedy
