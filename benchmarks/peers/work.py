"""Owns the work that every peer does, from inside its process: marks, the kill, effects counted outside.

Standard library only: each peer runs in an environment of its own, `python FILE start|resume loop|crash TURNS DIR`.

- loop: one model response and one trivial tool call a turn, TURNS of them, everything durable after each step. The
  first process dies by SIGKILL when the model is asked for turn TURNS + 1; the second takes the Run up again, and
  the time from opening its store to being asked for that turn is the resume time.
- crash: three turns; the tool's effect is a line in a file outside. In the first process the second effect is
  followed by SIGKILL before the tool returns: between effect and record. The second process takes the Run up.

The fake model is in process and proposes turn k when it sees k - 1 results, whatever they say.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import sys
import time
from pathlib import Path

TEXT = "x" * 200
"""What the model says beside each call."""


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # a signal to oneself may be handled a moment later


class Work:
    """What one process was told to do, and what it measures."""

    def __init__(self, argv: list[str]) -> None:
        self.first = argv[1] == "start"
        self.crash = argv[2] == "crash"
        self.turns = int(argv[3])
        self.folder = Path(argv[4])
        self.marks: list[float] = []
        self.began = 0.0

    @property
    def db(self) -> str:
        return str(self.folder / "store.db")

    def opening(self) -> None:
        """The store is opened now: imports are over. Its file is in WAL mode, whether its owner asks for that or
        not: the faster of SQLite's durable modes, for everybody."""
        if self.first:
            with contextlib.closing(sqlite3.connect(self.db)) as connection:
                connection.execute("pragma journal_mode=wal")
        self.began = time.perf_counter()

    def asked(self, turn: int) -> bool:
        """The model is asked for this turn (from 1). True: it proposes the call; False: it has done."""
        self.marks.append(time.perf_counter())
        if not self.first and len(self.marks) == 1:
            self._say("resume.json", {"seconds": self.marks[0] - self.began, "turn": turn})
        if self.first and not self.crash and turn > self.turns:
            self._say("marks.json", {"marks": self.marks})
            kill()
        return turn <= self.turns

    def tool(self, number: int) -> str:
        """The trivial tool, and in a crash run the effect."""
        if self.crash:
            with (self.folder / "effects").open("a") as file:
                file.write(f"{number}\n")
                file.flush()
                os.fsync(file.fileno())
            if self.first and number == 2:
                kill()
        return f'{{"number": {number}, "square": {number * number}}}'

    def done(self, note: str = "") -> None:
        """The Run is over or waits for somebody; `note` says which and why."""
        self._say("end.json", {"note": note})

    def _say(self, name: str, what: dict[str, object]) -> None:
        (self.folder / name).write_text(json.dumps(what))


def work() -> Work:
    return Work(sys.argv)
