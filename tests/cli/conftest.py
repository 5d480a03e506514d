"""A command line in a temporary folder with the fund agent or the agent of `init`."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli import main

ROOT = Path(__file__).parent.parent.parent
RUN = re.compile(r"\br[0-9a-hjkmnp-tv-z]{16}\b")
_CHANGING = (
    (RUN, "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}"), "TIME"),
    (re.compile(r"20[2-9]\d-\d\d-\d\d \d\d:\d\d:\d\d UTC"), "TIME"),
    (re.compile(r"20[2-9]\d-\d\d-\d\d \d\d:\d\d$", re.MULTILINE), "TIME"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"(digest|head) [0-9a-f]{16}\b"), r"\1 HASH"),
    (re.compile(r"\b(\d+h\d\d)?(\d+m)\d\ds$", re.MULTILINE), "SPAN"),
    (re.compile(r"\b\d+s of (\d)"), r"SPAN of \1"),
)


def normal(text: str) -> str:
    """Without what differs from one Run to the next: ids, times, digests."""
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    return text


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def run(self) -> str:
        found = RUN.search(self.out + self.err)
        assert found is not None, self.out + self.err
        return found[0]

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Ask = Callable[..., Said]


@pytest.fixture
def agentctl(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Runs a command line in this process: exit code, stdout, stderr. No exception ever gets out."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def ask(*words: str, input: str | bytes | None = None) -> Said:  # noqa: A002 - the word of click
        result = CliRunner().invoke(main, list(words), input=input)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return Said(result.exit_code, result.stdout, result.stderr)

    return ask


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agentctl: Ask) -> Path:
    """The folder that `agentctl init` writes, as the working directory."""
    folder = tmp_path / "notes"
    assert agentctl("init", str(folder)).code == 0
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def fund(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the fund agent, as the working directory."""
    for name in ("policies", "tool_specs", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "agentctl.yaml", tmp_path)
    (tmp_path / "tests/policies").mkdir(parents=True)
    shutil.copy(ROOT / "tests/policies/fund-research.test.yaml", tmp_path / "tests/policies")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def script(folder: Path, turns: str) -> str:
    """Writes a script; returns the model that plays it."""
    (folder / "played.script.yaml").write_text(f"agentctl: script/v1\nturns:\n{turns}", encoding="utf-8")
    return "scripted/played.script.yaml"
