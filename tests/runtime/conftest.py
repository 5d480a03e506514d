"""Owns how a driver of these tests hears of news: it looks after each wait, or meets it at its commit."""

from __future__ import annotations

import pytest


@pytest.fixture(params=[0.0, float("inf")], ids=["looked", "met"])
def look_after(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """Both ways of hearing of what others appended."""
    monkeypatch.setattr("engine.runtime.driver.LOOK_AFTER", request.param)
    return float(request.param)
