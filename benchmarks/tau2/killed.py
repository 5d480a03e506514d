"""Owns real deaths: a process that drives a task on SQLite is ended by SIGKILL at its n-th crash point.

The world stays alive in the process that watches, behind a socket, as a service would. Each kill is followed by a
new process on the same database. `python -m benchmarks.tau2.killed SOCKET DB DOMAIN TASK N SKIPPED` is that process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from threading import Thread
from typing import Any

from benchmarks.tau2.crashes import Walk, judge
from benchmarks.tau2.play import RESTART, Play, gold_of
from benchmarks.tau2.replays import suite_end
from benchmarks.tau2.world import World, same, tasks
from engine.adapters.sql_store import SqlStore
from engine.domain.errors import UsageError
from tau2.data_model.tasks import Task

ROOT = Path(__file__).parents[2]
RUN = "rkilled0000000000"


@dataclass
class Watched:
    """A world behind a socket: it answers calls until its process is told to go."""

    world: World
    listener: Listener

    def serve(self) -> None:
        while True:
            try:
                with self.listener.accept() as connection:
                    self._answer(connection)
            except (EOFError, ConnectionError):
                continue
            except OSError:
                return

    def _answer(self, connection: Connection) -> None:
        while True:
            what, given = connection.recv()
            if what == "happened":
                connection.send(given in self.world.keys)
            else:
                connection.send(self.world.call(*given))


def kill_and_compare(found: Walk, domain: str, task: Task, points: list[int]) -> None:
    """A fresh world and database for each point: killed there, resumed in a new process, compared with gold."""
    gold, reference = suite_end(domain, task), World.of(domain, task)
    calm = Play(domain, gold_of(task), reference.call, lambda key: key in reference.keys)
    calm.start()
    calm.to_the_end()
    for n in points:
        world = World.of(domain, task)
        with tempfile.TemporaryDirectory() as folder:
            _one(found, world, Path(folder), task, n)
            where = f"{domain} {task.id} killed at point {n}"
            play = Play(domain, gold_of(task), world.call, lambda key, keys=world.keys: key in keys)
            play.store, play.run = SqlStore.open(str(Path(folder) / "runs.db")), RUN
            judge(found, play, world, where)
            completed = play.runtime().state(play.run).status == "completed"
            play.store.close()
        found.matched += completed and same(world.made, gold)
        found.duplicates += bool(Counter(world.ledger) - Counter(reference.ledger))
        found.losses += bool(Counter(reference.ledger) - Counter(world.ledger))
        if not completed or not same(world.made, gold):
            found.faults.append(f"{where}: another end")


def _one(found: Walk, world: World, folder: Path, task: Task, n: int) -> None:
    socket = str(folder / "world.sock")
    with Listener(socket, "AF_UNIX") as listener:
        Thread(target=Watched(world, listener).serve, daemon=True).start()
        first = _process(socket, folder, world.domain, task, n, 0)
        if first != -signal.SIGKILL:
            found.faults.append(f"{world.domain} {task.id}: not killed at point {n} but {first}")
        second = _process(socket, folder, world.domain, task, 0, 1)
        if second != 0:
            found.faults.append(f"{world.domain} {task.id}: the process after the kill ended with {second}")
    found.points += 1


def _process(socket: str, folder: Path, domain: str, task: Task, n: int, skipped: int) -> int:
    arguments = [socket, str(folder / "runs.db"), domain, task.id, str(n), str(skipped)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tau2.killed", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode not in (0, -signal.SIGKILL):
        sys.stderr.write(done.stderr)
    return done.returncode


def sample(domain: str, kills: int) -> Walk:
    """`kills` deaths in different tasks, each around a write: by turns just before its effect and just after."""
    found = Walk(domain)
    for task in tasks(domain):
        edges = _edges(domain, task) if found.points < kills else []
        if edges:
            found.tasks += 1
            kill_and_compare(found, domain, task, [edges[0] - 1, edges[-1]][: kills - found.points])
    return found


def _edges(domain: str, task: Task) -> list[int]:
    """The crash points just after an effect; the one before each is just before it."""
    world, points = World.of(domain, task), 0
    edges: list[int] = []

    def point(_where: str) -> None:
        nonlocal points
        points += 1
        if len(world.ledger) > len(edges):
            edges.append(points)

    play = Play(domain, gold_of(task), world.call, lambda key: key in world.keys)
    play.start()
    play.to_the_end(point)
    return edges


class Remote:
    """The same world from the process that may die."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def call(self, tool: str, args: Mapping[str, Any], key: str | None, effect: bool) -> tuple[bool, Any]:
        self._connection.send(("call", (tool, dict(args), key, effect)))
        done, answer = self._connection.recv()
        return bool(done), answer

    def happened(self, key: str) -> bool:
        self._connection.send(("happened", key))
        return bool(self._connection.recv())


def main(socket: str, db: str, domain: str, task_id: str, n: int, skipped: int) -> None:
    """Starts the Run, or goes on with it, and dies at the n-th crash point (0: never)."""
    task = next(each for each in tasks(domain) if each.id == task_id)
    passed = 0

    def point(_where: str) -> None:
        nonlocal passed
        passed += 1
        if passed == n:
            os.kill(os.getpid(), signal.SIGKILL)

    with Client(socket, "AF_UNIX") as connection:
        remote = Remote(connection)
        play = Play(domain, gold_of(task), remote.call, remote.happened, store=SqlStore.open(db))
        play.clock.time += RESTART * skipped + timedelta(seconds=skipped)
        try:
            play.runtime().state(RUN)  # type: ignore[arg-type]  # a RunId is a string
            play.run = RUN
        except UsageError:
            play.start(RUN)
        play.to_the_end(point)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))
