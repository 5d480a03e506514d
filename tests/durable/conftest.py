"""A small office on disk, as the working directory: its tools write one line per effect beside the database."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Ask, Said, agentctl, script

__all__ = ["Ask", "agentctl"]

OFFICE = Path(__file__).parent / "office"


class Office:
    """The folder, its ledger of effects, and the command line in it."""

    def __init__(self, folder: Path, ask: Ask) -> None:
        self.folder = folder
        self.ask = ask

    @property
    def ledger(self) -> list[str]:
        """Effects without their keys."""
        file = self.folder / "ledger.txt"
        lines = file.read_text().splitlines() if file.exists() else []
        return [" ".join(word for word in line.split() if len(word) < 40) for line in lines]

    def mode(self, *tools: str) -> None:
        (self.folder / "mode.txt").write_text(" ".join(tools))

    def blind(self) -> None:
        (self.folder / "blind.txt").write_text("")

    def changed(self, *changes: tuple[str, str]) -> str:
        """A copy of the policy with texts replaced; returns its path."""
        text = (OFFICE / "office.policy.yaml").read_text()
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (self.folder / "changed.policy.yaml").write_text(text)
        return "changed.policy.yaml"

    def run(self, turns: str, *words: str) -> Said:
        return self.ask("run", "office.policy.yaml", "please", "--model", script(self.folder, turns), *words)

    def log(self, run: str, *words: str) -> list[dict[str, object]]:
        return self.ask("log", run, "--json", *words).lines


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agentctl: Ask) -> Office:
    folder = tmp_path / "office"
    shutil.copytree(OFFICE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(folder)
    return Office(folder, agentctl)
