"""Owns what the model is shown: messages as a view over the log, grown by what is new and never rewritten.

A result that was shown stays as it was shown; what became known later is said in a Host block of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.domain.calls import CallStatus, Outcome
from engine.domain.canonical import Json, NotJson, parse_json
from engine.domain.errors import PolicyInvalid
from engine.domain.events import Proposal, StoredResult
from engine.domain.messages import (
    UNPARSED,
    AssistantTurn,
    CallResult,
    HostBlock,
    Instructions,
    Message,
    ShownCall,
    UserInput,
)
from engine.domain.policy import Policy
from engine.domain.state import CallState, Notice, RunState, TurnState

ReadResult = Callable[[StoredResult], Json]
Count = Callable[[str], int]
"""Text -> its estimated tokens."""
MESSAGE_TOKENS = 4
"""What a message costs beside its text."""
SHOWN_LIMIT = 64 * 1024
"""Code points of one result that the model is shown; the log keeps the whole."""


def instructions(policy: Policy, state: RunState) -> Instructions | None:
    """The system part, rendered from the policy's prompt and the declared variables."""
    prompt = policy.model.prompt
    if prompt is None:
        return None
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=False)
    principal = state.principal
    known = {
        "task": state.task,
        "principal": {"id": principal.id, "roles": list(principal.roles), **principal.attrs}
        if principal
        else {},
        "run": {"id": state.run},
        "limits": {name: limit.value for name, limit in policy.limits.items()},
    }
    try:
        text = environment.from_string(prompt.text).render(known)
    except Exception as error:
        raise PolicyInvalid(
            f"the prompt `{prompt.file}` does not render: {error}", remedy="mend the template or its `vars`"
        ) from error
    return Instructions(text) if text.strip() else None


class Conversation:
    """The messages of one Run. `messages` only grows; a request holds a view of it, not a copy."""

    def __init__(self, policy: Policy, state: RunState, read_result: ReadResult, count: Count) -> None:
        self.messages: list[Message] = []
        self.tokens = 0
        """An estimate of the tokens of all messages."""
        self._count = count
        self._read = read_result
        self._turns = self._inputs = self._notices = 0
        system = instructions(policy, state)
        if system is not None:
            self._add(system)

    def sync(self, state: RunState) -> Sequence[Message]:
        """Appends what was recorded since the last call: inputs, closed turns with their results, late news."""
        for turn in state.turns[self._turns :]:
            self._said_before(state, turn.asked_seq)
            self._turn(state, turn)
        self._turns = len(state.turns)
        self._said_before(state, state.seq + 1)
        return self.messages

    def _add(self, message: Message) -> None:
        self.messages.append(message)
        self.tokens += self._count(_text_of(message)) + MESSAGE_TOKENS

    def _said_before(self, state: RunState, seq: int) -> None:
        """Inputs and notices in the order they were recorded."""
        while True:
            next_input = state.inputs[self._inputs] if self._inputs < len(state.inputs) else None
            next_notice = state.notices[self._notices] if self._notices < len(state.notices) else None
            if next_input and next_input[0] < seq and (not next_notice or next_input[0] < next_notice.seq):
                self._add(UserInput(next_input[1]))
                self._inputs += 1
            elif next_notice and next_notice.seq < seq:
                self._add(HostBlock(_news(state, next_notice)))
                self._notices += 1
            else:
                return

    def _turn(self, state: RunState, turn: TurnState) -> None:
        recorded = turn.recorded
        calls = [state.calls[call] for call in turn.calls]
        if not recorded.text and not recorded.parts and not calls:
            return
        self._add(
            AssistantTurn(
                turn.number,
                recorded.model,
                recorded.text,
                recorded.parts,
                tuple(ShownCall(call.id, call.tool, shown_arguments(call.proposal)) for call in calls),
            )
        )
        for call in calls:
            self._add(self.result(call, state))

    def result(self, call: CallState, state: RunState) -> CallResult:
        """The one result of one proposal, as the model reads it."""
        outcome, said, is_error = _say(call)
        receipt = call.receipt
        stored = receipt.result if receipt else None
        evidence = tuple(
            (handle, state.evidence[handle].item.kind, state.evidence[handle].item.id)
            for handle in (receipt.evidence if receipt else ())
        )
        if stored is not None and outcome == Outcome.CONFIRMED.value:
            said["result"] = self._read(stored) if stored.fault is None else None
            if stored.fault is not None:
                said["result_fault"] = stored.fault
        if evidence:
            said["evidence"] = [{"handle": handle, "kind": kind, "id": id_} for handle, kind, id_ in evidence]
        if call.held == "question" and stored is not None:
            return CallResult(call.id, call.tool, outcome, str(stored.value), False, stored)
        text = bounded(json.dumps(said, ensure_ascii=False, separators=(",", ":")))
        return CallResult(call.id, call.tool, outcome, text, is_error, stored, evidence)


def _news(state: RunState, notice: Notice) -> str:
    calls = ", ".join(f"{call} ({state.calls[call].tool})" for call in notice.about)
    if notice.kind == "outdated":
        return f"Host record: call {notice.by} may have made these earlier results out of date: {calls}"
    call = state.calls[notice.about[0]]
    known = call.receipt.outcome.value if call.receipt else "unknown"
    detail = f": {call.receipt.detail}" if call.receipt and call.receipt.detail else ""
    return f"Host record: the outcome of call {calls} is now known: {known}{detail}"


def _text_of(message: Message) -> str:
    """Everything of a message that is sent as text."""
    if isinstance(message, AssistantTurn):
        return message.text + "".join(f"{call.tool}{call.arguments}" for call in message.calls)
    return message.text


def bounded(text: str) -> str:
    """At most SHOWN_LIMIT code points, with a mark of the Host where it was cut."""
    if len(text) <= SHOWN_LIMIT:
        return text
    return text[:SHOWN_LIMIT] + f"… [the Host shows {SHOWN_LIMIT} of {len(text)} characters]"


def shown_arguments(proposal: Proposal | None) -> dict[str, Json]:
    """Always a JSON object: an unreadable text is shown as what it was, so that the next request is valid."""
    raw = proposal.arguments if proposal else ""
    try:
        value = parse_json(raw) if raw.strip() else {}
    except NotJson:
        return {UNPARSED: raw}
    if isinstance(value, dict):
        return value
    return {} if value is None else {UNPARSED: raw}


def _say(call: CallState) -> tuple[str, dict[str, Json], bool]:
    """(outcome, what is said, whether it is an error) of a call that came to an end."""
    status = call.status
    if status is CallStatus.REJECTED and call.refusal is not None:
        said: dict[str, Json] = {
            "outcome": "rejected",
            "error": call.refusal.code,
            "message": call.refusal.message,
        }
        if call.refusal.field:
            said["field"] = call.refusal.field
        if call.refusal.gates:
            said["gates"] = list(call.refusal.gates)
        return "rejected", said, True
    if status is CallStatus.FENCED:
        message = f"not executed: the tool contract changed ({call.detail}); propose again under the new one"
        return "fenced", {"outcome": "fenced", "error": "contract_changed", "message": message}, True
    if status in (CallStatus.GRANTED, CallStatus.COMMITTED):
        return status.value, {"outcome": status.value}, False
    receipt = call.receipt
    if receipt is None:
        return "unknown", {"outcome": "unknown", "message": "not reached"}, True
    said = {"outcome": receipt.outcome.value}
    if receipt.detail:
        said["message"] = receipt.detail
    if receipt.cached_from is not None:
        said["from_call"] = str(receipt.cached_from)
    return receipt.outcome.value, said, receipt.outcome is not Outcome.CONFIRMED
