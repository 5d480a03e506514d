"""Owns the tests of stores that several processes use at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.adapters.processes import is_dead, this_process
from engine.adapters.sql_store import SqlStore
from engine.domain.ids import RunId
from engine.ports import Owner
from engine.runtime.audit import verify
from tests.contracts.store import ELSEWHERE, NOW, TTL

ROOT = Path(__file__).resolve().parents[2]


def start_writers(url: str, gate: Path, count: int, own: int, shared: int) -> list[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.stores.writer", url]
    writers = [
        subprocess.Popen(
            [*command, str(n), str(gate), str(own), str(shared)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for n in range(count)
    ]  # fmt: skip
    time.sleep(0.2)
    gate.touch()
    return writers


def finish(writers: list[subprocess.Popen[str]]) -> list[list[int]]:
    answers = [writer.communicate(timeout=300) for writer in writers]
    assert [(writer.returncode, errors) for writer, (_, errors) in zip(writers, answers, strict=True)] == [
        (0, "")
    ] * len(writers)
    return [json.loads(out)["won"] for out, _ in answers]


def check_outcome(store: SqlStore, won: list[list[int]], own: int, shared: int) -> None:
    for n in range(len(won)):
        events = list(store.events(RunId(f"r-{n}")))
        assert [event.body.text for event in events] == [f"{n} {i}" for i in range(own)]  # type: ignore[attr-defined]
        assert verify(store, RunId(f"r-{n}")).holds
    assert sorted(number for numbers in won for number in numbers) == list(range(shared))
    events = list(store.events(RunId("shared")))
    winner = {number: n for n, numbers in enumerate(won) for number in numbers}
    assert [event.body.text for event in events] == [f"{winner[i]} {i}" for i in range(shared)]  # type: ignore[attr-defined]
    assert verify(store, RunId("shared")).holds


@pytest.mark.parametrize(
    ("own", "shared"), [(25, 15), pytest.param(200, 100, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_eight_processes_start_on_a_fresh_file_and_lose_nothing(
    tmp_path: Path, opened: Callable[..., SqlStore], own: int, shared: int
):
    # xerrors/Yuxi#875, langchain-ai/langgraph#8136: "database is locked"; google/adk-python#4751: histories mixed.
    path = tmp_path / "runs.db"
    won = finish(start_writers(str(path), tmp_path / "go", 8, own, shared))
    check_outcome(opened(path), won, own, shared)


@pytest.mark.slow
def test_eight_processes_start_on_a_fresh_server_schema_and_lose_nothing(
    tmp_path: Path, postgres_url: str, opened: Callable[..., SqlStore]
):
    won = finish(start_writers(postgres_url, tmp_path / "go", 8, 100, 50))
    check_outcome(opened(postgres_url), won, 100, 50)


def test_a_killed_driver_leaves_its_run_free_at_once(tmp_path: Path, opened: Callable[..., SqlStore]):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    stat = Path(f"/proc/{child.pid}/stat")
    if not stat.exists():
        pytest.skip("no /proc here")
    ticks = int(stat.read_text().rpartition(")")[2].split()[19])
    owner = replace(this_process(), pid=child.pid, started=ticks / os.sysconf("SC_CLK_TCK"))
    store = opened(tmp_path / "runs.db")
    store.claim(RunId("r1"), owner, NOW, TTL)
    assert not is_dead(owner)
    child.kill()
    deadline = time.monotonic() + 5
    while not is_dead(owner) and time.monotonic() < deadline:
        time.sleep(0.005)  # dead, though nobody waited for it yet
    assert store.claim(RunId("r1"), this_process(), NOW, TTL).epoch == 2
    child.communicate()
    assert is_dead(owner)


def test_only_a_process_that_surely_ended_is_dead():
    me = this_process("tests")
    assert not is_dead(me)
    assert is_dead(replace(me, started=me.started - 1))
    assert not is_dead(replace(me, started=0.0))
    assert not is_dead(ELSEWHERE)
    assert not is_dead(Owner(me.host, 10**30, 1.0))
    assert not is_dead(replace(me, pid=1, started=0.0))


@pytest.mark.skipif(
    not Path("/proc/sys/kernel/random/boot_id").exists(), reason="no system that tells its boot"
)
def test_a_machine_of_the_same_name_is_another_host():
    """Machines of one image share their name and a database; there the pid belongs to nobody, or to another."""
    name, boot, *inside = this_process("test").host.split("/")
    twin = "/".join([name, "0" * len(boot), *inside])
    assert not is_dead(Owner(twin, 2**22 + 1, 1.0))
    assert is_dead(Owner("/".join([name, boot, *inside]), 2**22 + 1, 1.0))
