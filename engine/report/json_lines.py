"""Owns the JSON lines that a Run prints while it is driven: each event, and working text where it was asked for."""

from __future__ import annotations

from collections.abc import Callable

from engine.domain import events as e
from engine.domain.state import RunState
from engine.report.forms import dumps, event_json


class JsonLines:
    """An observer of a Run; each line of an event names it, so that it can be resumed whatever becomes of the reader.

    A delta is no fact: it has no `event` and no `seq`, and the log does not keep it.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._turn = 0
        self._attempt = 0

    def __call__(self, event: e.Event, state: RunState) -> None:  # noqa: ARG002 - an observer's signature
        if isinstance(event.body, e.ModelAttemptStarted):
            self._turn, self._attempt = event.body.turn, event.body.attempt
        self._write(dumps({"run": event.run, **event_json(event)}))

    def hear(self, text: str) -> None:
        """Working text of the attempt that is under way."""
        self._write(dumps({"delta": text, "turn": self._turn, "attempt": self._attempt}))
