"""`agentctl init`: what it writes lints clean and runs at once."""

from __future__ import annotations

import compileall
import shlex
from pathlib import Path

import pytest

from engine.commands.init import FILES
from tests.cli.conftest import ROOT, Ask


def test_what_init_writes_runs_at_once(notes: Path, agentctl: Ask) -> None:
    said = agentctl("run", "policies/notes.policy.yaml", "When was the lighthouse built?",
                    "--model", "scripted/scripts/notes.script.yaml")  # fmt: skip
    assert said.code == 0
    assert "built in 1871" in said.out


def test_init_writes_only_what_it_says(notes: Path, agentctl: Ask) -> None:
    written = {path.relative_to(notes).as_posix() for path in notes.rglob("*") if path.is_file()}
    assert written == set(FILES)
    assert compileall.compile_dir(notes / "tools", quiet=1)


def test_every_template_is_used(agentctl: Ask) -> None:
    assert {path.name for path in (ROOT / "engine/scaffold").iterdir()} == set(FILES.values())


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, agentctl: Ask) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    assert agentctl("init", str(tmp_path)).code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_commands_that_init_prints_work_as_they_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agentctl: Ask
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = agentctl("init", "mine").out.partition("\n\n")[2].splitlines()
    assert printed[0] == "cd mine"
    monkeypatch.chdir(tmp_path / "mine")
    for line in printed[1:]:
        program, *words = shlex.split(line)
        assert (program, agentctl(*words).code) == ("agentctl", 0), line
