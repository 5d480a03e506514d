"""Owns what a driver derives from log and policies: decider, conversation, and the size and price of a request."""

from __future__ import annotations

from decimal import Decimal

from engine.domain.policy import ModelUse, ToolSpec
from engine.domain.state import RunState
from engine.lifecycle.context import Conversation, Count, ReadResult
from engine.lifecycle.decide import Decider
from engine.policy.arguments import SecretFinder
from engine.ports import ModelGateway
from engine.runtime.journal import Journal
from engine.runtime.library import PolicyLibrary

PLAYED = ("scripted/", "replay/")
"""Models that play back proposals: they cost nothing and have no price."""


def estimate(text: str) -> int:
    """Tokens of a text, estimated high: one for three code points."""
    return len(text) // 3 + 1


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
    ) -> None:
        self._library = library
        self._gateway = gateway
        self._read_result = read_result
        self._count = count
        self._secrets = secrets
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
            self.decider = Decider(self._policies, self, secrets=self._secrets)
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

    def input_tokens(self, state: RunState) -> int:
        self.conversation.sync(state)
        return self.conversation.tokens

    def price(self, use: ModelUse, input_tokens: int, output_tokens: int) -> Decimal | None:
        return self._gateway.price(use, input_tokens, output_tokens)
