"""Owns what a driver derives from log and policies: decider, conversation, and the size and price of a request."""

from __future__ import annotations

from decimal import Decimal

from engine.domain.policy import ModelUse, ToolSpec
from engine.domain.results import ReadResult
from engine.domain.state import RunState
from engine.lifecycle.context import Conversation, Count
from engine.lifecycle.decide import Decider
from engine.lifecycle.present import Size
from engine.policy.arguments import SecretFinder
from engine.policy.contract import Contract
from engine.ports import Counted, InputMeter, ModelGateway, ModelRequest
from engine.runtime.journal import Journal
from engine.runtime.library import PolicyLibrary

PLAYED = ("scripted/", "replay/")
"""Models that play back proposals: they cost nothing and have no price."""


def estimate(text: str) -> int:
    """Tokens of a text, estimated high: one for three bytes of UTF-8."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return size // 3 + 1


class View:
    """Made anew where the log was folded anew; the decider also where another policy restricts the Run."""

    def __init__(
        self,
        library: PolicyLibrary,
        gateway: ModelGateway,
        journal: Journal,
        read_result: ReadResult,
        count: Count,
        secrets: SecretFinder | None,
        meter: InputMeter | None = None,
    ) -> None:
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

    def refresh(self, journal: Journal) -> None:
        """Called before each step; cheap where nothing changed."""
        state = journal.state
        self._free = state.model.startswith(PLAYED)
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
        self.conversation.sync(state)
        if self._tools is None or self._tools[0] != contract.digest:
            self._tools = (contract.digest, self._count(contract.text))
        return self.conversation.tokens + self._tools[1]

    def price(self, use: ModelUse, input_tokens: int, output_tokens: int) -> Decimal | None:
        return self._gateway.price(use, input_tokens, output_tokens)
