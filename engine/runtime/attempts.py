"""Owns the record of decisions that do not count: who tried what, and why it changed nothing."""

from __future__ import annotations

from engine.domain import events as e
from engine.domain.actors import Actor
from engine.domain.canonical import clean_text
from engine.domain.errors import UsageError
from engine.domain.ids import CallId
from engine.domain.state import RunState
from engine.runtime.journal import Journal

_NAMED = 100
"""Characters of what was named: it may be anything."""


def record_attempt(
    journal: Journal, named: CallId | str, by: Actor, decision: e.DecisionWord, why: str
) -> None:
    """Appends the attempt, also where somebody else appends meanwhile."""
    text = clean_text(str(named)[:_NAMED])[0]
    while True:
        journal.say(e.DecisionNotEligible(call=text, decision=decision, because=why), by)
        if journal.flush():
            return


def no_such_call(
    journal: Journal, state: RunState, named: CallId | str, by: Actor, decision: e.DecisionWord
) -> UsageError:
    """Records the attempt on a call that the Run does not have; the error to raise."""
    record_attempt(journal, named, by, decision, "no such call")
    return UsageError(
        f"Run `{state.run}` has no call `{named}`", remedy=f"`agentctl show {state.run}` names its calls"
    )
