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
from engine.domain.events import LeftOut
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
from engine.lifecycle.shown import ledger, news, read_of, result_of, room_for_one, shown_arguments, stub_of

Count = Callable[[str], int]
"""Text -> its estimated tokens."""
MESSAGE_TOKENS = 4
"""What a message costs beside its text."""
KEEP_TURNS = 2
"""The newest turns, whose text and results are not left out to make room."""
TEXT_LEFT_OUT = "[the Host left this text out]"
NO_ROOM = "no room; a smaller part may fit"


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
    cost: int
    """Tokens of its whole result."""


class _Span(NamedTuple):
    """The messages of one turn."""

    turn: int
    first: int
    end: int


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
    """The messages of one Run, grown by what is new. A request holds a view of `messages`, not a copy.

    It is the same whether it grew or was made anew from the log: what was left out for want of room is recorded
    with the request (`left_out`), everything else follows from the policy.
    """

    def __init__(self, policy: Policy, state: RunState, read_result: ReadResult, count: Count) -> None:
        self._policy = policy
        self._count = count
        self._read = read_result
        self._system = instructions(policy, state)
        self._one = room_for_one(policy.context.max_input_tokens)
        left = state.left_out
        self._reads_upto, self._texts_upto, self._turns_upto = left.reads, left.texts, left.turns
        self._begin()

    def _begin(self) -> None:
        self.messages: list[Message] = []
        self.tokens = 0
        """An estimate of the tokens of all messages."""
        self.omissions: list[Omission] = []
        self.dropped: list[int] = []
        """Seqs of user inputs that do not fit and that no event says yet."""
        self._turns = self._inputs = self._notices = self._compactions = 0
        self._reads: list[_Read] = []
        self._aged = self._crowded = 0
        """How many of the reads were looked at: for their age, for want of room."""
        self._newest: dict[tuple[str, str], _Read] = {}
        self._stubs: dict[CallId, str] = {}
        """Call -> why its result was left out."""
        self._spans: list[_Span] = []
        self._texted = 0
        """How many of the spans were looked at for their text."""
        self._user: list[tuple[int, int, int]] = []
        """(index, seq, number) of user inputs."""
        self._spared = 0
        """How many of the inputs, after the first, were left out already."""
        if self._system is not None:
            self._add(self._system)

    @property
    def left_out(self) -> LeftOut:
        return LeftOut(reads=self._reads_upto, texts=self._texts_upto, turns=self._turns_upto)

    def sync(self, state: RunState) -> Sequence[Message]:
        """Appends what was recorded since the last call, then leaves out what the policy prunes."""
        if len(state.compactions) != self._compactions:
            self._begin()
            self._compactions = len(state.compactions)
        for turn in state.turns[self._turns :]:
            self._said_before(state, turn.asked_seq)
            self._turn(state, turn)
            self._turns = turn.number
            self._prune_old(state, turn.number + 1)
        self._said_before(state, state.seq + 1)
        self._crowd_out(state, self._reads_upto)
        return self.messages

    def _add(self, message: Message) -> None:
        self.messages.append(message)
        self.tokens += self._cost(message)

    def _cost(self, message: Message) -> int:
        return self._count(text_of(message)) + MESSAGE_TOKENS

    # --- inputs and news --------------------------------------------------------------------------------------

    def _said_before(self, state: RunState, seq: int) -> None:
        """Inputs and notices in the order they were recorded."""
        while True:
            next_input = state.inputs[self._inputs] if self._inputs < len(state.inputs) else None
            next_notice = state.notices[self._notices] if self._notices < len(state.notices) else None
            if next_input and next_input[0] < seq and (not next_notice or next_input[0] < next_notice.seq):
                self._input(state, *next_input)
            elif next_notice and next_notice.seq < seq:
                self._notices += 1
                if any(call.turn > self._turns_upto for call in next_notice.about):
                    self._add(HostBlock(news(state, next_notice)))
            else:
                return

    def _input(self, state: RunState, seq: int, text: str) -> None:
        self._inputs += 1
        if seq in state.omitted_inputs:
            self._left_out_input(self._inputs, text)
        elif not text.strip():
            self._add(HostBlock(f"User input {self._inputs} is blank."))
        else:
            self._user.append((len(self.messages), seq, self._inputs))
            self._add(UserInput(text))

    def _left_out_input(self, number: int, text: str) -> None:
        mark = HostBlock(_mark(number, text))
        self.omissions.append(
            Omission(f"user input {number}", NO_ROOM, self._cost(UserInput(text)) - self._cost(mark))
        )
        self._add(mark)

    # --- turns --------------------------------------------------------------------------------------------------

    def _turn(self, state: RunState, turn: TurnState) -> None:
        summary = state.compactions[-1] if state.compactions else None
        if turn.number == 1 and summary is not None:
            self._add(HostBlock(_summary_block(summary.model, summary.upto, summary.text)))
        if turn.number <= self._turns_upto:
            if turn.number == self._turns_upto:
                self._add(HostBlock(ledger(state, turn.number)))
                self.omissions.append(Omission(f"turns 1 to {turn.number}", NO_ROOM, 0))
            return
        calls = [state.calls[call] for call in turn.calls]
        message = self._said(state, turn, calls)
        if message is None:
            return
        first = len(self.messages)
        self._add(message)
        for call in calls:
            self._result(state, call, turn.number)
        self._spans.append(_Span(turn.number, first, len(self.messages)))

    def _said(self, state: RunState, turn: TurnState, calls: Sequence[CallState]) -> AssistantTurn | None:
        """What the assistant said, without the text that a summary stands for or that has no room."""
        recorded, summary = turn.recorded, state.compactions[-1] if state.compactions else None
        shown = tuple(
            ShownCall(call.id, call.tool, shown_arguments(call.proposal, self._one)) for call in calls
        )
        whole = AssistantTurn(turn.number, recorded.model, recorded.text, recorded.parts, shown)
        if not recorded.text and not recorded.parts and not calls:
            return None
        if summary is not None and turn.number <= summary.upto:
            said = replace(whole, text="", parts=())
            self._note(whole, said, f"text of turn {turn.number}", "it is part of the summary")
            return said if calls else None
        if turn.number <= self._texts_upto and (recorded.text or recorded.parts):
            said = _without_text(whole)
            self._note(whole, said, f"text of turn {turn.number}", NO_ROOM)
            return said
        return whole

    def _note(self, before: Message, after: Message, what: str, why: str) -> None:
        self.omissions.append(Omission(what, why, self._cost(before) - self._cost(after)))

    # --- reads ----------------------------------------------------------------------------------------------

    def _result(self, state: RunState, call: CallState, turn: int) -> None:
        self._add(result_of(call, state, self._read, self._one))
        if not _is_read(call):
            return
        read = _Read(len(self.messages) - 1, call.id, turn, self._cost(self.messages[-1]))
        self._supersede(state, call, read)
        summary = state.compactions[-1] if state.compactions else None
        if summary is not None and summary.reads and turn <= summary.upto:
            self._stub(state, read, "it is part of the summary", None)
        self._reads.append(read)

    def _supersede(self, state: RunState, call: CallState, read: _Read) -> None:
        key = (call.tool, call.args_digest)
        older = self._newest.get(key)
        self._newest[key] = read
        rule = next((rule for rule in self._policy.context.prune if rule.superseded), None)
        if older is not None and rule is not None:
            self._stub(state, older, f"superseded by call {call.id}", rule)

    def _prune_old(self, state: RunState, asking: int) -> None:
        """`after_turns`: a read is left out once so many turns came after it."""
        rules = [rule for rule in self._policy.context.prune if rule.after_turns is not None]
        if not rules:
            return
        rule = min(rules, key=lambda each: each.after_turns or 0)
        while (
            self._aged < len(self._reads) and self._reads[self._aged].turn + (rule.after_turns or 0) < asking
        ):
            self._stub(state, self._reads[self._aged], f"older than {rule.after_turns} turns", rule)
            self._aged += 1

    def _stub(self, state: RunState, read: _Read, why: str, rule: Prune | None) -> None:
        """Call and result stay together: the result gives way to a stub, if that is shorter.

        What the policy says stands over a want of room, whichever came first.
        """
        message, before = self.messages[read.at], self._stubs.get(read.call)
        if before is not None and (before != NO_ROOM or why == NO_ROOM):
            return
        assert isinstance(message, CallResult)
        keep = rule is None or rule.keep == "receipt_and_evidence"
        stub = stub_of(state.calls[read.call], state, why, keep_evidence=keep)
        if self._cost(stub) < read.cost:
            self._stubs[read.call] = why
            self._replace(read.at, stub, f"result of call {read.call} ({message.tool})", why)

    def _replace(self, index: int, message: Message, what: str, why: str) -> None:
        self._note(self.messages[index], message, what, why)
        self.tokens -= self._cost(self.messages[index]) - self._cost(message)
        self.messages[index] = message

    # --- fitting --------------------------------------------------------------------------------------------

    def fit(self, state: RunState, limit: int) -> None:
        """Leaves out by kind, oldest first, until the messages fit.

        Older read results, older text of the assistant, whole older turns, then the newest read results; user
        inputs at last.
        """
        self.sync(state)
        recent = len(state.turns) - KEEP_TURNS
        self.crowd_out_reads(state, limit, recent)
        self._crowd_out_texts(limit, recent)
        self._crowd_out_turns(state, limit, recent)
        self.crowd_out_reads(state, limit, len(state.turns))
        self._drop_inputs(limit)

    def crowd_out_reads(self, state: RunState, limit: int, upto: int) -> None:
        """Results of reads of the turns to `upto`, turn by turn, as long as there is too much."""
        while self.tokens > limit and self._crowded < len(self._reads):
            turn = self._reads[self._crowded].turn
            if turn > upto:
                return
            self._reads_upto = max(self._reads_upto, turn)
            self._crowd_out(state, turn)

    def _crowd_out(self, state: RunState, upto: int) -> None:
        while self._crowded < len(self._reads) and self._reads[self._crowded].turn <= upto:
            self._stub(state, self._reads[self._crowded], NO_ROOM, None)
            self._crowded += 1

    def _crowd_out_texts(self, limit: int, upto: int) -> None:
        while self._texted < len(self._spans) and self.tokens > limit:
            span = self._spans[self._texted]
            if span.turn > upto:
                return
            message = self.messages[span.first]
            said_something = isinstance(message, AssistantTurn) and (message.text or message.parts)
            if said_something and span.turn > self._texts_upto:
                assert isinstance(message, AssistantTurn)
                said = _without_text(message)
                self._replace(span.first, said, f"text of turn {span.turn}", NO_ROOM)
            self._texts_upto = max(self._texts_upto, span.turn)
            self._texted += 1

    def _crowd_out_turns(self, state: RunState, limit: int, upto: int) -> None:
        """Calls with their results, as whole turns; more than is needed now, so that it is not done at each turn."""
        if self.tokens <= limit:
            return
        wanted, gone = self.tokens - limit * 3 // 4, self._turns_upto
        for span in self._spans:
            if wanted <= 0 or span.turn > upto or not _settled(state, span.turn):
                break
            wanted -= sum(map(self._cost, self.messages[span.first : span.end]))
            gone = span.turn
        if gone > self._turns_upto:
            self._turns_upto = gone
            compactions = self._compactions
            self._begin()
            self._compactions = compactions
            self.sync(state)
            self._crowd_out_texts(limit, upto)

    def _drop_inputs(self, limit: int) -> None:
        """Whole inputs, oldest first, the first last of all; the newest is what the model is asked."""
        if len(self._user) < 2:
            return
        for index, seq, number in (*self._user[1 + self._spared : -1], self._user[0]):
            if self.tokens <= limit:
                return
            message = self.messages[index]
            if isinstance(message, UserInput):
                self._replace(index, HostBlock(_mark(number, message.text)), f"user input {number}", NO_ROOM)
                self.dropped.append(seq)
            self._spared += 1

    def compactable(self, state: RunState) -> tuple[int, str]:
        """(last turn, text) that a summary would cover: the former summary and what was said since; read results
        only where the policy says so."""
        upto = len(state.turns) - KEEP_TURNS
        declared = self._policy.context.compact
        reads = declared is not None and "read_results" in declared.covers
        summary = state.compactions[-1] if state.compactions else None
        parts = [summary.text] if summary is not None else []
        since = summary.upto if summary is not None else 0
        fresh: list[str] = []
        for turn in state.turns[since : max(since, upto)]:
            fresh += [turn.recorded.text] if turn.recorded.text else []
            if reads:
                calls = (state.calls[call] for call in turn.calls)
                fresh += [read_of(call, state, self._read) for call in calls if _is_read(call)]
        return (upto, "\n\n".join(parts + fresh)) if fresh else (0, "")


def _without_text(message: AssistantTurn) -> AssistantTurn:
    """Signed parts beside a changed text would be refused: they go with it."""
    return replace(message, text="" if message.calls else TEXT_LEFT_OUT, parts=())


def _settled(state: RunState, turn: int) -> bool:
    return all(state.calls[call].status.final for call in state.turns[turn - 1].calls)


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


def text_of(message: Message) -> str:
    """Everything of a message that is sent as text."""
    if isinstance(message, AssistantTurn):
        calls = "".join(f"{call.tool}{call.arguments}" for call in message.calls)
        return f"{message.text}{calls}{message.parts or ''}"
    return message.text
