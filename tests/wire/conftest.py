"""Leaves nothing of litellm's HTTP clients to the garbage collector of a later test."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _no_real_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _sockets_of_closed_loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """litellm keeps a client per event loop and closes none; what is left is collected under this test's filter."""
    yield
    if request.node.get_closest_marker("slow") is not None:
        gc.collect()
