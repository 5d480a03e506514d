"""The main job, killed with SIGKILL at an append and resumed by another process, ends as if nothing had happened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.lifecycle.fold import fold
from engine.runtime.audit import verify
from tests.runtime.killed import ROOT, RUN, opened


def killed(db: Path, n: int) -> int:
    """Runs the demo in a process of its own; returns its exit status."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.killed", str(db), str(n)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in (0, -9), done.stderr
    return done.returncode


def resumed(db: Path) -> Any:
    runtime = opened(str(db))
    runtime.drive_sync(RUN)
    assert verify(runtime.store, RUN).holds
    return runtime


def what_happened(runtime: Any) -> Any:
    """What a person sees of the Run: its end, its note, and what became of every call."""
    state = fold(RUN, runtime.events(RUN))
    calls = {
        id_: (call.tool, call.status.value, call.receipt.outcome.value if call.receipt else "")
        for id_, call in state.calls.items()
    }
    published = {name: (each.fields, each.citations) for name, each in state.publications.items()}
    return state.status, published, calls


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, int]:
    db = tmp_path_factory.mktemp("calm") / "runs.db"
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.killed", str(db), "0"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    runtime = opened(str(db))
    happened = what_happened(runtime)
    runtime.close()
    assert happened[0] == "completed"
    return happened, int(done.stdout)


def kill_and_compare(n: int, calm: tuple[Any, int], tmp_path: Path) -> None:
    db = tmp_path / "runs.db"
    assert killed(db, n) == -9
    runtime = resumed(db)
    assert what_happened(runtime) == calm[0]
    runtime.close()


@pytest.mark.parametrize("share", [0.1, 0.4, 0.8])
def test_a_killed_main_job_ends_the_same_way(share: float, calm: tuple[Any, int], tmp_path: Path):
    """A small sample; the whole walk is `pytest -m slow`."""
    kill_and_compare(max(1, round(calm[1] * share)), calm, tmp_path)


@pytest.mark.slow
def test_the_main_job_killed_at_every_append_ends_the_same_way(calm: tuple[Any, int], tmp_path: Path):
    """Before and after each append, in a real process each time."""
    points = calm[1]
    for n in range(1, points + 1):
        folder = tmp_path / str(n)
        folder.mkdir()
        kill_and_compare(n, calm, folder)
    print(f"{points} points: every Run ended the same way")
