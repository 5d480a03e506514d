"""Owns `model.allowed` of overlays: no model that it does not name is ever asked."""

from __future__ import annotations

import pytest

from engine.adapters.scripted_gateway import ScriptedGateway
from engine.domain.errors import Refused
from engine.domain.policy import Policy
from engine.policy.compiler import load_policy
from engine.runtime.loading import read_overlay
from tests.runtime.bench import CLERK, POLICY, TOOLS, Bench, final

OVERLAY = """
agentctl: overlay/v1
id: house
version: 1
owner: security
model: {allowed: ["anthropic/*"]}
"""


def restricted() -> Policy:
    files = {"shop.policy.yaml": POLICY, "shop.tools.yaml": TOOLS, "house.overlay.yaml": OVERLAY}
    return load_policy("shop.policy.yaml", files, extra_overlays=["house.overlay.yaml"])


def test_a_run_whose_model_no_overlay_allows_is_not_started() -> None:
    bench = Bench(
        final(), gateway=ScriptedGateway.from_turns([final()]), model="openai/gpt-5-mini-2025-08-07"
    )
    with pytest.raises(Refused, match="overlay `house` does not allow model `openai/gpt-5-mini-2025-08-07`"):
        bench.runtime().start("go", principal=CLERK, policy=restricted())


def test_models_that_play_back_are_exempt() -> None:
    bench = Bench(final())
    assert bench.runtime().start("go", principal=CLERK, policy=restricted())


def test_an_overlay_loaded_later_ends_a_run_before_its_model_is_asked_again() -> None:
    asked: list[int] = []

    def play(request):  # type: ignore[no-untyped-def]
        asked.append(request.turn)
        return final()

    bench = Bench(gateway=ScriptedGateway.from_turns([play]), model="openai/gpt-5-mini-2025-08-07")
    bench.runtime().load_overlay(read_overlay("house.overlay.yaml", OVERLAY), by=CLERK.actor())
    bench.drive()
    assert asked == []
    assert (bench.status, bench.reason) == ("failed", "model:not_allowed")
