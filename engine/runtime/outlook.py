"""Owns what a driver derives from log and policies: decider, conversation, and the size and price of a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Protocol, overload

from engine.domain.events import LeftOut
from engine.domain.ids import CallId
from engine.domain.messages import Message
from engine.domain.policy import ModelUse, ToolSpec
from engine.domain.results import ReadResult
from engine.domain.state import RunState
from engine.lifecycle.context import KEEP_TURNS, MESSAGE_TOKENS, Conversation, Count
from engine.lifecycle.decide import Decider
from engine.lifecycle.present import Size
from engine.lifecycle.projections import block
from engine.policy.arguments import SecretFinder
from engine.policy.contract import Contract
from engine.ports import Counted, InputMeter, ModelGateway, ModelRequest
from engine.runtime.library import PolicyLibrary

PLAYED = ("scripted/", "replay/")
"""Models that play back proposals: they cost nothing and have no price."""


def estimate(text: str) -> int:
    """Tokens of a text, estimated high: one for three bytes of UTF-8."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return size // 3 + 1


class WithTail(Sequence[Message]):
    """A conversation and one message after it, without a copy."""

    def __init__(self, base: Sequence[Message], tail: Message) -> None:
        self._base = base
        self._tail = tail

    def __len__(self) -> int:
        return len(self._base) + 1

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        last = len(self._base)
        return self._tail if index in (last, -1) else self._base[index if index >= 0 else index + 1]


class Folded(Protocol):
    """A log as it is folded: the journal of a driver, or a replay."""

    state: RunState
    generation: int


class View:
    """Made anew where the log was folded anew; the decider also where another policy restricts the Run."""

    def __init__(
        self,
        library: PolicyLibrary,
        gateway: ModelGateway,
        journal: Folded,
        read_result: ReadResult,
        count: Count,
        secrets: SecretFinder | None,
        meter: InputMeter | None = None,
        model: str = "",
        at_work: Callable[[CallId], bool] | None = None,
    ) -> None:
        self._named = model
        self._at_work = at_work
        self._library = library
        self._gateway = gateway
        self._read_result = read_result
        self._count = count
        self._secrets = secrets
        self._meter = meter
        self._measured: tuple[tuple[int, str], Counted | None] | None = None
        self._tools: tuple[str, int] | None = None
        """Digest of a contract, and the tokens of its text."""
        self._generation = -1
        self._bundles: tuple[str, ...] = ()
        self.refresh(journal)

    def refresh(self, journal: Folded) -> None:
        """Called before each step; cheap where nothing changed."""
        state = journal.state
        self.model = self._named or state.model
        self._free = self.model.startswith(PLAYED)
        bundles = (state.bundle, *state.restricted_by.values())
        if bundles != self._bundles:
            self._policies = [self._library.policy(bundle) for bundle in bundles]
            self.decider = Decider(self._policies, self, self._read_result, secrets=self._secrets)
            self._bundles = bundles
        if self._generation != journal.generation:
            self.conversation = Conversation(self._policies[0], state, self._read_result, self._count)
            self._generation = journal.generation

    def spec(self, tool: str) -> ToolSpec:
        return self._policies[0].tools[tool]

    # --- Outlook --------------------------------------------------------------------------------------------

    @property
    def free(self) -> bool:
        return self._free

    def input_tokens(self, state: RunState, contract: Contract) -> Size:
        """As counted, if this very request was; else the estimate of what is sent, tools included."""
        measured = self._measured
        if measured is not None and measured[0] == self._measured_as(state, contract):
            if measured[1] is not None:
                return Size(measured[1].tokens, measured[1].exact)
            return Size(self._estimated(state, contract))
        return Size(self._estimated(state, contract), measurable=self._meter is not None and not self._free)

    async def measure(self, state: RunState, request: ModelRequest, contract: Contract) -> None:
        """Asks the meter once for this request; what it cannot say stays an estimate."""
        assert self._meter is not None
        self._measured = (self._measured_as(state, contract), await self._meter.count(request))

    def _measured_as(self, state: RunState, contract: Contract) -> tuple[int, str]:
        return len(self.conversation.sync(state)), contract.digest

    def _estimated(self, state: RunState, contract: Contract) -> int:
        if self._tools is None or self._tools[0] != contract.digest:
            self._tools = (contract.digest, self._count(contract.text))
        fixed = self._tools[1] + self._shown_state(state)
        limit = self._policies[0].context.max_input_tokens
        if limit is None:
            self.conversation.sync(state)
        else:
            self.conversation.fit(state, limit - fixed)
        return self.conversation.tokens + fixed

    def _shown_state(self, state: RunState) -> int:
        """Tokens of the block of app state; its ages may change by the time it is sent, not its length."""
        tail = None if state.updated_at is None else block(self._policies[0], state, state.updated_at)
        return 0 if tail is None else self._count(tail.text) + MESSAGE_TOKENS

    def dropped_inputs(self, state: RunState) -> tuple[int, ...]:
        return tuple(seq for seq in self.conversation.dropped if seq not in state.omitted_inputs)

    def left_out(self, state: RunState) -> LeftOut:  # noqa: ARG002 - the conversation follows the state
        return self.conversation.left_out

    def compactable(self, state: RunState, at_tokens: int) -> tuple[int, str] | None:
        """Older read results become stubs first, unless the summary covers them."""
        conversation, declared = self.conversation, self._policies[0].context.compact
        conversation.sync(state)
        if declared is not None and "read_results" not in declared.covers:
            conversation.crowd_out_reads(state, at_tokens, len(state.turns) - KEEP_TURNS)
        if conversation.tokens < at_tokens:
            return None
        upto, text = conversation.compactable(state)
        return (upto, text) if upto else None

    def messages(self, state: RunState, now: datetime) -> Sequence[Message]:
        """What the next request shows: the conversation, and at its end the newest state of the application.

        `now` is the time of the attempt: the same request can be shown again from the log.
        """
        base = self.conversation.sync(state)
        tail = block(self._policies[0], state, now)
        return base if tail is None else WithTail(base, tail)

    def at_work(self, call: CallId) -> bool:
        return self._at_work is not None and self._at_work(call)

    def price(self, use: ModelUse, input_tokens: int, output_tokens: int) -> Decimal | None:
        return self._gateway.price(use, input_tokens, output_tokens)
