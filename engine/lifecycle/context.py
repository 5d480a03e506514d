"""Owns what the model is shown: messages as a view over the log, within a limit, and what was left out and why.

A message that was shown stays as it was until it is left out by kind: reads become stubs, assistant text gives
way to a labelled summary, whole user inputs go last of all and leave a mark. Call and result stay together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.domain.calls import CallStatus, Outcome
from engine.domain.errors import PolicyInvalid
from engine.domain.ids import CallId
from engine.domain.messages import (
    AssistantTurn,
    CallResult,
    HostBlock,
    Instructions,
    Message,
    ShownCall,
    UserInput,
)
from engine.domain.policy import Kind, Policy, Prune
from engine.domain.results import ReadResult
from engine.domain.state import CallState, RunState, TurnState
from engine.lifecycle.shown import news, result_of, shown_arguments, stub_of

Count = Callable[[str], int]
"""Text -> its estimated tokens."""
MESSAGE_TOKENS = 4
"""What a message costs beside its text."""
KEEP_TURNS = 2
"""The newest turns, whose text and results are not left out to make room."""
TEXT_LEFT_OUT = "[the Host left this text out]"


class Omission(NamedTuple):
    """Something that the model is not shown again, and why."""

    what: str
    why: str
    tokens: int
    """Estimated tokens that it saved."""


class _Read(NamedTuple):
    at: int
    """Its place in the messages."""
    call: CallId
    turn: int


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
    """The messages of one Run, grown by what is new. A request holds a view of `messages`, not a copy."""

    def __init__(self, policy: Policy, state: RunState, read_result: ReadResult, count: Count) -> None:
        self._policy = policy
        self._count = count
        self._read = read_result
        self._system = instructions(policy, state)
        self._begin()

    def _begin(self) -> None:
        self.messages: list[Message] = []
        self.tokens = 0
        """An estimate of the tokens of all messages."""
        self.omissions: list[Omission] = []
        self.dropped: list[int] = []
        """Seqs of user inputs that do not fit and that no event says yet."""
        self._turns = self._inputs = self._notices = self._compactions = 0
        self._aged = 0
        self._reads: list[_Read] = []
        self._newest: dict[tuple[str, str], _Read] = {}
        self._texts: list[tuple[int, int]] = []
        """(index, turn) of assistant turns with text."""
        self._user: list[tuple[int, int]] = []
        """(index, seq) of user inputs."""
        if self._system is not None:
            self._add(self._system)

    def sync(self, state: RunState) -> Sequence[Message]:
        """Appends what was recorded since the last call, then leaves out what the policy prunes."""
        if len(state.compactions) != self._compactions:
            self._begin()
            self._compactions = len(state.compactions)
        for turn in state.turns[self._turns :]:
            self._said_before(state, turn.asked_seq)
            self._turn(state, turn)
        self._turns = len(state.turns)
        self._said_before(state, state.seq + 1)
        self._prune_old(state)
        return self.messages

    def _add(self, message: Message) -> None:
        self.messages.append(message)
        self.tokens += self._cost(message)

    def _cost(self, message: Message) -> int:
        return self._count(_text_of(message)) + MESSAGE_TOKENS

    def _said_before(self, state: RunState, seq: int) -> None:
        """Inputs and notices in the order they were recorded."""
        while True:
            next_input = state.inputs[self._inputs] if self._inputs < len(state.inputs) else None
            next_notice = state.notices[self._notices] if self._notices < len(state.notices) else None
            if next_input and next_input[0] < seq and (not next_notice or next_input[0] < next_notice.seq):
                self._input(state, *next_input)
            elif next_notice and next_notice.seq < seq:
                self._add(HostBlock(news(state, next_notice)))
                self._notices += 1
            else:
                return

    def _input(self, state: RunState, seq: int, text: str) -> None:
        self._inputs += 1
        if seq in state.omitted_inputs:
            self._add(HostBlock(_mark(self._inputs, text)))
            return
        self._user.append((len(self.messages), seq))
        self._add(UserInput(text))

    def _turn(self, state: RunState, turn: TurnState) -> None:
        recorded = turn.recorded
        calls = [state.calls[call] for call in turn.calls]
        text, parts = recorded.text, recorded.parts
        summary = state.compactions[-1] if state.compactions else None
        if summary is not None and turn.number <= summary.upto:
            if turn.number == 1:
                self._add(HostBlock(_summary_block(summary.model, summary.upto, summary.text)))
            text, parts = "", ()
        if not text and not parts and not calls:
            return
        if text:
            self._texts.append((len(self.messages), turn.number))
        shown = tuple(ShownCall(call.id, call.tool, shown_arguments(call.proposal)) for call in calls)
        self._add(AssistantTurn(turn.number, recorded.model, text, parts, shown))
        for call in calls:
            self._result(state, call, turn.number)

    # --- reads ----------------------------------------------------------------------------------------------

    def _result(self, state: RunState, call: CallState, turn: int) -> None:
        summary = state.compactions[-1] if state.compactions else None
        if _is_read(call):
            read = _Read(len(self.messages), call.id, turn)
            self._supersede(state, call, read)
            if summary is not None and summary.reads and turn <= summary.upto:
                self._add(stub_of(call, state, "it is part of the summary", keep_evidence=True))
                return
            self._reads.append(read)
        self._add(result_of(call, state, self._read))

    def _supersede(self, state: RunState, call: CallState, read: _Read) -> None:
        key = (call.tool, call.args_digest)
        older = self._newest.get(key)
        self._newest[key] = read
        rule = next((rule for rule in self._policy.context.prune if rule.superseded), None)
        if older is not None and rule is not None:
            self._stub(state, older, f"superseded by call {call.id}", rule)

    def _prune_old(self, state: RunState) -> None:
        """`after_turns`: a read is left out once so many turns came after it."""
        rules = [rule for rule in self._policy.context.prune if rule.after_turns is not None]
        if not rules:
            return
        rule = min(rules, key=lambda each: each.after_turns or 0)
        asking = len(state.turns) + 1
        while (
            self._aged < len(self._reads) and self._reads[self._aged].turn + (rule.after_turns or 0) < asking
        ):
            self._stub(state, self._reads[self._aged], f"older than {rule.after_turns} turns", rule)
            self._aged += 1

    def _stub(self, state: RunState, read: _Read, why: str, rule: Prune | None) -> None:
        message = self.messages[read.at]
        if not isinstance(message, CallResult) or '"omitted":' in message.text:
            return
        keep = rule is None or rule.keep == "receipt_and_evidence"
        stub = stub_of(state.calls[read.call], state, why, keep_evidence=keep)
        if self._cost(stub) < self._cost(message):
            self._replace(read.at, stub, f"result of call {read.call} ({message.tool})", why)

    def _replace(self, index: int, message: Message, what: str, why: str) -> None:
        saved = self._cost(self.messages[index]) - self._cost(message)
        self.messages[index] = message
        self.tokens -= saved
        self.omissions.append(Omission(what, why, saved))

    # --- fitting --------------------------------------------------------------------------------------------

    def fit(self, state: RunState, limit: int) -> None:
        """Leaves out by kind, oldest first, until the messages fit: reads, assistant text, at last user inputs."""
        self.sync(state)
        recent = len(state.turns) - KEEP_TURNS
        for read in self._reads[self._aged :]:
            if self.tokens <= limit:
                return
            if read.turn <= recent:
                self._stub(state, read, "no room", None)
        for index, turn in self._texts:
            if self.tokens <= limit:
                return
            message = self.messages[index]
            if turn <= recent and isinstance(message, AssistantTurn) and message.text:
                left = "" if message.calls else TEXT_LEFT_OUT
                self._replace(index, replace(message, text=left, parts=()), f"text of turn {turn}", "no room")
        self._drop_inputs(state, limit)

    def _drop_inputs(self, state: RunState, limit: int) -> None:
        """Whole inputs, oldest first, the first last of all; the newest is what the model is asked."""
        for index, seq in (*self._user[1:-1], *self._user[:1]) if len(self._user) > 1 else ():
            if self.tokens <= limit:
                return
            message = self.messages[index]
            if isinstance(message, UserInput):
                number = 1 + [each for each, _ in state.inputs].index(seq)
                self._replace(
                    index, HostBlock(_mark(number, message.text)), f"user input {number}", "no room"
                )
                self.dropped.append(seq)

    def compactable(self, state: RunState) -> tuple[int, str]:
        """(last turn, text) that a summary would cover: the former summary and the assistant's text since."""
        upto = len(state.turns) - KEEP_TURNS
        summary = state.compactions[-1] if state.compactions else None
        parts = [summary.text] if summary is not None else []
        since = summary.upto if summary is not None else 0
        fresh = [turn.recorded.text for turn in state.turns[since : max(since, upto)] if turn.recorded.text]
        return (upto, "\n\n".join(parts + fresh)) if fresh else (0, "")


def _is_read(call: CallState) -> bool:
    return (
        call.kind is Kind.READ
        and call.status is CallStatus.SETTLED
        and call.receipt is not None
        and call.receipt.outcome is Outcome.CONFIRMED
    )


def _mark(number: int, text: str) -> str:
    return (
        f"The Host left out user input {number} ({len(text)} characters): it does not fit into the context."
    )


def _summary_block(model: str, upto: int, text: str) -> str:
    return (
        f"Summary of the assistant's own text of turns 1 to {upto}, written by the model {model}. It owns no facts: "
        f"what was asked, permitted and done is in the records around it.\n\n{text}"
    )


def _text_of(message: Message) -> str:
    """Everything of a message that is sent as text."""
    if isinstance(message, AssistantTurn):
        return message.text + "".join(f"{call.tool}{call.arguments}" for call in message.calls)
    return message.text
