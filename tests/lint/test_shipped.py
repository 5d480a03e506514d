"""Our own policies are clean: lint of what we ship, and of the examples of the language."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from engine.domain.diagnostics import Severity
from engine.policy.linter import lint

ROOT = Path(__file__).parents[2]
SHIPPED = [
    "policies",
    "tool_specs",
    *(f"tests/policies/{name}" for name in ("fund", "mini", "ops", "org", "retail")),
]


@pytest.mark.parametrize("folder", SHIPPED)
def test_what_we_ship_is_clean(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes are allowed; nothing is silenced by a comment either."""
    monkeypatch.chdir(ROOT)
    report = lint([folder], today=date(2026, 6, 1))
    assert report.files
    assert [
        f"{each.code} {each.location} {each.message}"
        for each in report.diagnostics
        if each.severity is not Severity.NOTE
    ] == []
    assert report.silenced == ()
