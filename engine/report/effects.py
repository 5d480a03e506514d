"""Owns the audit of effects: for each what was proposed, who said yes, what was sent, what came back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.domain import events as e
from engine.domain.calls import Outcome
from engine.domain.ids import CallId
from engine.domain.policy import Kind


@dataclass(slots=True)
class Effect:
    """One write or hybrid and the events about it, in order."""

    call: CallId
    tool: str
    proposal: tuple[e.Event, e.Proposal] | None = None
    requests: list[e.Event] = field(default_factory=list)
    decisions: list[e.Event] = field(default_factory=list)
    starts: list[e.Event] = field(default_factory=list)
    receipts: list[e.Event] = field(default_factory=list)
    fenced: bool = False

    @property
    def start(self) -> e.ExecutionStarted | None:
        body = self.starts[0].body if self.starts else None
        return body if isinstance(body, e.ExecutionStarted) else None

    @property
    def outcome(self) -> str:
        """Of the last receipt; unknown only where it was sent."""
        body = self.receipts[-1].body if self.receipts else None
        if isinstance(body, e.ReceiptRecorded):
            return body.outcome.value
        if self.starts:
            return Outcome.UNKNOWN.value
        return "fenced" if self.fenced else "not sent"

    def missing(self) -> list[str]:
        """The links of the chain that the log does not hold, by name."""
        found = []
        start = self.start
        if self.proposal is None and (start is None or start.host is None):
            found.append("proposal: no closed response of the model proposes it")
        if start is None:
            sent = self.outcome in (Outcome.CONFIRMED, Outcome.FAILED)
            return [*found, "execution: an outcome is recorded, no dispatch is"] if sent else found
        found += self._confirmation(start)
        if not self.receipts:
            found.append("receipt: it was sent, and nothing is recorded of its outcome")
        elif self.outcome == Outcome.UNKNOWN:
            found.append("outcome: nobody knows what became of it")
        return found

    def _confirmation(self, start: e.ExecutionStarted) -> list[str]:
        """A person's yes, a standing one, or the rule and owner of an unattended write."""
        if start.host is not None:
            return []
        if not start.approved_by:
            return ["confirmation: neither a person nor an unattended rule is named"]
        if start.standing or start.approved_by.startswith("rule "):
            return []
        given = {event.actor.id for event in self.decisions if isinstance(event.body, e.ApprovalGiven)}
        unheard = [name for name in start.approved_by.split(", ") if name not in given]
        return [f"confirmation: no decision of {', '.join(unheard)} is recorded"] if unheard else []


def effects_of(log: Iterable[e.Event]) -> list[Effect]:
    """Every write and hybrid that was sent, held for people or given an outcome, in the order of the log."""
    calls: dict[CallId, Effect] = {}
    proposed: dict[CallId, tuple[e.Event, e.Proposal]] = {}
    kept: dict[CallId, None] = {}
    for event in log:
        body = event.body
        if isinstance(body, e.ModelTurnRecorded):
            for each in body.proposals:
                proposed[CallId(body.turn, each.ordinal)] = (event, each)
            continue
        call = getattr(body, "call", None)
        if not isinstance(call, CallId):
            continue
        effect = calls.get(call)
        if effect is None:
            tool = proposed[call][1].tool if call in proposed else getattr(body, "tool", "")
            effect = calls[call] = Effect(call, tool, proposed.get(call))
        if _take(effect, event):
            kept[call] = None
    return [calls[call] for call in kept]


def _take(effect: Effect, event: e.Event) -> bool:
    """Adds the event; True if it shows that the call is a write or hybrid."""
    match event.body:
        case e.ExecutionStarted(tool_kind=kind):
            effect.starts.append(event)
            return kind is not Kind.READ
        case e.CallHeld(tool_kind=kind):
            return kind is not None and kind is not Kind.READ
        case e.CallFenced():
            effect.fenced = True
        case e.ApprovalRequested():
            effect.requests.append(event)
        case e.ApprovalGiven() | e.ApprovalRefused() | e.ApprovalExpired():
            effect.decisions.append(event)
        case e.ReceiptRecorded():
            effect.receipts.append(event)
            return (
                not effect.starts
                and event.body.outcome is not Outcome.NOT_EXECUTED
                and event.body.cached_from is None
            )
    return False
