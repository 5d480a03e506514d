"""Owns the lines that a Run prints while it is driven: turns, proposals, receipts, gates, what is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.domain import events as e
from engine.domain.policy import Budgets, Policy
from engine.domain.state import RunState
from engine.policy.budgets import left
from engine.policy.gates import IMPLICIT
from engine.report.budget import Left, left_line
from engine.report.sentences import proposal, sentence
from engine.report.timeline import outcome_of
from engine.report.words import PLAIN, Style, one_line, safe

WORKING_TEXT: Final = 400
_ENDS_AN_ATTEMPT: Final = (e.ModelTurnRecorded, e.ModelAttemptFailed)
_ENDS_A_TURN: Final = (e.ContractCompiled, e.ModelAttemptStarted, e.RunParked, e.Ending)
_SILENT: Final = (
    e.RunStarted,
    e.InputReceived,
    e.RunParked,
    e.CapabilityRequested,
    e.ModelAttemptStarted,
    e.Ending,
)
"""Said by other lines: the head, the proposals, the end of the report."""


class Progress:
    """An observer of a Run that writes lines; `policies` gives those in force, the Run's own first."""

    def __init__(
        self,
        write: Callable[[str], None],
        policies: Callable[[RunState], list[Policy]],
        budgets: Callable[[RunState], Budgets],
        style: Style = PLAIN,
        put: Callable[[str], None] | None = None,
    ) -> None:
        """`write` ends the line, `put` does not; without `put`, working text is not shown before it is whole."""
        self._write = write
        self._put = put
        self._asked = 0
        self._heard = False
        self._policies = policies
        self._budgets = budgets
        self._style = style
        self._turn = 0
        self._left: Left | None = None

    def hear(self, text: str) -> None:
        """Working text of the attempt that is under way, as it comes."""
        if self._put is None:
            return
        if not self._heard:
            self._write(f"{self._style.strong(f'turn {self._asked}')}  working text:")
            self._put("  ")
        self._heard = True
        self._put(safe(text).replace("\n", "\n  "))

    def __call__(self, event: e.Event, state: RunState) -> None:
        if self._heard and isinstance(event.body, _ENDS_AN_ATTEMPT):
            self._write("")
        if isinstance(event.body, e.ModelAttemptStarted):
            self._asked, self._heard = event.body.turn, False
        if self._turn and isinstance(event.body, _ENDS_A_TURN):
            self._turn = 0
            self._say_left(state, whole=isinstance(event.body, e.RunParked | e.Ending))
        for line in self._lines(event.body, state):
            self._write(line)

    def _say_left(self, state: RunState, *, whole: bool) -> None:
        """Every budget after the first turn and at the end, between them what changed."""
        rest = left(self._budgets(state), state.spent)
        said = left_line(rest, None if whole else self._left)
        self._left = rest
        if said:
            self._write(self._style.dim(f"  left: {said}"))

    def _lines(self, body: e.Body, state: RunState) -> list[str]:
        match body:
            case e.ModelTurnRecorded():
                return self._turn_lines(body)
            case e.SettlingStarted():
                return [self._settling(body, state)]
            case e.ContractCompiled():
                return [self._style.dim(f"contract: {sentence(body, state)}")]
            case e.ExecutionStarted() if body.host is None and body.attempt == 1:
                return []
            case e.ModelAttemptFailed():
                return [f"  {self._style.mark('failed')} {sentence(body, state)}"]
        if isinstance(body, _SILENT):
            return []
        outcome = outcome_of(body)
        mark = self._style.mark(outcome) if outcome else "·"
        return [f"  {mark} {sentence(body, state)}"]

    def _turn_lines(self, body: e.ModelTurnRecorded) -> list[str]:
        self._turn = body.turn
        head = self._style.strong(f"turn {body.turn}")
        lines = [head]
        if self._heard:
            lines = []
        elif body.text and body.proposals:
            lines = [f"{head}  working text: {one_line(body.text, WORKING_TEXT)}"]
        elif body.text:
            lines = [f"{head}  working text:", *(f"  {line}" for line in safe(body.text).splitlines())]
        return lines + [f"  {self._style.dim('>')} {proposal(body, item)}" for item in body.proposals]

    def _settling(self, body: e.SettlingStarted, state: RunState) -> str:
        if body.ending != "completed":
            return f"  · {sentence(body, state)}"
        declared = [
            f"{gate.name} {gate.subject}" for policy in self._policies(state) for gate in policy.gates
        ]
        passed = ", ".join(dict.fromkeys([*IMPLICIT, *declared]))
        return f"  {self._style.mark('committed')} {body.call} finish committed: gates passed: {passed}"
