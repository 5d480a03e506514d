"""Owns the timeline of a Run: which events are asked for, and a line for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from engine.domain import events as e
from engine.domain.calls import Outcome
from engine.domain.state import RunState
from engine.report.sentences import sentence
from engine.report.words import PLAIN, Style

OUTCOMES: Final = (
    *(outcome.value for outcome in Outcome),
    "rejected",
    "fenced",
    "held",
    "granted",
    "committed",
)
"""What `--outcome` may name: outcomes of receipts, and what became of calls that have none."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filters of a timeline; an empty one lets everything through, several must all hold."""

    kinds: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    outcomes: frozenset[str] = frozenset()

    def takes(self, body: e.Body, state: RunState) -> bool:
        return (
            (not self.kinds or body.kind in self.kinds)
            and (not self.tools or bool(self.tools & tools_of(body, state)))
            and (not self.outcomes or outcome_of(body) in self.outcomes)
        )


def tools_of(body: e.Body, state: RunState) -> set[str]:
    """The tools that an event is about; a turn is about every tool that it proposes."""
    if isinstance(body, e.ModelTurnRecorded):
        return {item.tool for item in body.proposals}
    tool = getattr(body, "tool", None)
    if tool is not None:
        return {tool}
    call = state.calls.get(getattr(body, "call", None))  # type: ignore[arg-type]  # None is no key
    return {call.tool} if call is not None else set()


def outcome_of(body: e.Body) -> str:
    """The outcome that an event records; empty where it records none."""
    match body:
        case e.ReceiptRecorded():
            return body.outcome.value
        case e.CallRejected():
            return "rejected"
        case e.CallFenced():
            return "fenced"
        case e.CallHeld():
            return "held"
        case e.CapabilityGranted():
            return "granted"
        case e.OutputPublished():
            return "committed"
    return ""


def timeline(
    events: Iterable[e.Event], state: RunState, wanted: Wanted, style: Style = PLAIN
) -> Iterator[str]:
    """One line per event: number, time, who, kind, what."""
    for event in events:
        if wanted.takes(event.body, state):
            yield line(event, state, style)


def line(event: e.Event, state: RunState, style: Style = PLAIN) -> str:
    actor = event.actor.id or event.actor.type
    at = event.recorded_at.strftime("%Y-%m-%d %H:%M:%S.") + f"{event.recorded_at.microsecond // 1000:03}"
    head = f"{event.seq:>5}  {style.dim(at)}  {actor:<8}  "
    return f"{head}{style.strong(f'{event.kind:<20}')}  {sentence(event.body, state)}".rstrip()
