"""Owns the request of one turn, made again from the log: what the model was sent, and what was left out and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.domain import events as e
from engine.domain.canonical import Json, parse_json
from engine.domain.errors import Fault, UsageError
from engine.domain.ids import RunId
from engine.domain.messages import Message
from engine.domain.state import RunState
from engine.lifecycle.context import MESSAGE_TOKENS, Conversation, Omission, text_of
from engine.lifecycle.fold import apply
from engine.lifecycle.projections import block
from engine.ports import EventStore
from engine.runtime.library import PolicyLibrary
from engine.runtime.outlook import estimate


@dataclass(frozen=True, slots=True)
class Sent:
    """One request. Token counts are the Host's estimates."""

    attempt: e.Event
    start: e.ModelAttemptStarted
    messages: Sequence[Message]
    tokens: tuple[int, ...]
    """Of each message."""
    tools: str
    """The contract's tools[] as JSON text; empty where the log does not keep it."""
    omissions: tuple[Omission, ...]


def sent(store: EventStore, run: RunId, turn: int, attempt: int | None = None) -> Sent:
    """The request of a turn: its last attempt, or the one that is named. Raises UsageError where there was none."""
    state = RunState(run)
    before: list[e.Event] = []
    found = asked = None
    for event in store.events(run):
        body = event.body
        if isinstance(body, e.ModelAttemptStarted):
            asked = body.turn
            if body.turn == turn and attempt in (None, body.attempt):
                found = event
        before.append(event)
    if found is None:
        raise UsageError(
            f"the model was not asked for turn {turn}" + (f", attempt {attempt}" if attempt else ""),
            remedy=f"turns 1 to {asked} were asked for" if asked else "nothing was asked yet",
        )
    for event in before:
        apply(state, event)
        if event.seq == found.seq:
            break
    return _made(store, state, found)


def _made(store: EventStore, state: RunState, attempt: e.Event) -> Sent:
    start = attempt.body
    assert isinstance(start, e.ModelAttemptStarted)
    policy = PolicyLibrary(store).policy(state.bundle)

    def read(stored: e.StoredResult) -> Json:
        if stored.digest is None:
            return stored.value
        text = store.blob(stored.digest)
        if text is None:
            raise Fault(f"the result {stored.digest[:12]} is not in the store", remedy="restore the database")
        return parse_json(text)

    conversation = Conversation(policy, state, read, estimate)
    messages = list(conversation.sync(state))
    tail = block(policy, state, attempt.recorded_at)
    messages += [tail] if tail is not None else []
    tokens = tuple(estimate(text_of(message)) + MESSAGE_TOKENS for message in messages)
    return Sent(
        attempt, start, messages, tokens, store.blob(start.contract) or "", tuple(conversation.omissions)
    )
