"""Owns the processes of a crash test: one that is killed, one that drives the Run on and counts effects."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.domain.policy import Policy
    from engine.policy.documents.project import Project
    from engine.runtime.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Order:
    """What a child is to do; passed as JSON."""

    work: str
    """`drive` or `go on`."""
    policy: str
    tool: str
    args: dict[str, Any]
    task: dict[str, Any]
    state: dict[str, Any]
    db: str
    run: str
    """A new one for each trial, so that no key is known from another."""
    point: int = -1
    seconds: float = 0.0
    """The tool's usual running time."""
    counter: str = ""


def main(words: list[str]) -> int:
    """Does what the order says, and prints one line of JSON. A killed child prints nothing."""
    from engine.commands.project import this_project

    order = Order(**json.loads(words[0]))
    project = this_project()
    from engine.bootstrap import load_policy
    from engine.runtime.crash_kit import only

    policy = only(load_policy(order.policy, project), order.tool)
    with _runtime(order, project, policy) as runtime:
        runtime.library.add(policy)
        return _drive(order, runtime, project) if order.work == "drive" else _go_on(order, runtime, project)


def _runtime(order: Order, project: Project, policy: Policy) -> Runtime:
    from engine.bootstrap import open_runtime, scripted

    turns: list[dict[str, object]] = [
        {"calls": [{"tool": order.tool, "args": order.args}]},
        {"calls": [{"tool": "finish"}]},
    ]
    return open_runtime(
        order.db, policy=policy, gateway=scripted(turns), model="scripted/crash-test", project=project
    )


def _drive(order: Order, runtime: Runtime, project: Project) -> int:
    from engine.domain.actors import Principal
    from engine.domain.ids import RunId
    from engine.runtime.crash_kit import POINTS, ROLE, crash_at

    principal = Principal(id="crash-test", roles=(ROLE,))
    run = runtime.start(
        "crash test", principal=principal, task=order.task, state=order.state, run=RunId(order.run)
    )
    began: list[float] = []

    def kill(share: float) -> None:
        if not share:
            os.kill(os.getpid(), signal.SIGKILL)
        timer = threading.Timer(order.seconds * share, os.kill, (os.getpid(), signal.SIGKILL))
        timer.daemon = True
        timer.start()

    def measured(where: str) -> None:
        if where in ("before effect", "after effect"):
            began.append(time.perf_counter())

    hook = crash_at(POINTS[order.point], kill) if order.point >= 0 else measured
    asyncio.run(runtime.drive(run, crash_point=hook))
    took = began[1] - began[0] if len(began) > 1 else 0.0
    print(json.dumps({"seconds": took, "after": _count(order, project)}))
    return 0


def _go_on(order: Order, runtime: Runtime, project: Project) -> int:
    from engine.domain.ids import RunId

    found = _count(order, project)
    asyncio.run(runtime.drive(RunId(order.run)))
    print(json.dumps({"found": found, "after": _count(order, project)}))
    return 0


def _count(order: Order, project: Project) -> int | None:
    """Effects by the user's own counter."""
    from engine.bootstrap import handler

    return int(str(handler(order.counter, project)())) if order.counter else None


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    sys.exit(main(sys.argv[1:]))
