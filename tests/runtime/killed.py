"""Owns the process that is killed: drives the fund demo on SQLite and ends itself with SIGKILL at its n-th append.

`python -m tests.runtime.killed DB N` starts a Run in DB; N counts the points before and after each append.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from engine import Principal, open_runtime

ROOT = Path(__file__).parent.parent.parent
RUN = "rkilled0000000000"
ANALYST = Principal(id="a1", roles=("analyst",), attrs={"desk": "funds"})
TASK = {"portfolio_id": "p1", "as_of": "2026-06-30T00:00:00Z", "depth": "full"}


def opened(db: str):  # type: ignore[no-untyped-def]  # the Runtime is what this file is about
    os.chdir(ROOT)
    return open_runtime(
        db,
        policy="policies/fund-research.policy.yaml",
        model="scripted/examples/fund-research.script.yaml",
    )


def main(db: str, n: int) -> None:
    passed = 0

    def point(where: str) -> None:
        nonlocal passed
        if where not in ("before append", "after append"):
            return
        passed += 1
        if passed == n:
            os.kill(os.getpid(), signal.SIGKILL)

    runtime = opened(db)
    run = runtime.start("Is the fee what the fact sheet says?", principal=ANALYST, task=TASK, run=RUN)
    asyncio.run(runtime.drive(run, crash_point=point))
    print(passed)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
