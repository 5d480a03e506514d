"""Owns one look at a Run as `decide` sees it: its facts and its contract at one moment, without a driver."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from engine.domain.canonical import Json
from engine.domain.events import StoredResult
from engine.domain.facts import Facts
from engine.domain.policy import Policy
from engine.domain.results import ReadResult
from engine.domain.state import RunState
from engine.lifecycle.provenance import Provenance
from engine.policy.contract import Contract, ContractCompiler
from engine.policy.view import FactsView


def inline(stored: StoredResult) -> Json:
    """Reads results that stand in their receipts; a larger one has no leaves to look at."""
    return stored.value


class Vantage:
    """Where a Run stands under its policies (its own first). It follows the state as that is folded on."""

    def __init__(self, policies: Sequence[Policy], state: RunState, read_result: ReadResult = inline) -> None:
        self.policies = tuple(policies)
        self.state = state
        self._view = FactsView(self.policies, state, Provenance(self.policies[0], state, read_result))
        self._compiler = ContractCompiler(self.policies)

    def facts(self, now: datetime) -> tuple[Facts, ...]:
        """One Facts per policy."""
        return self._view.at(now)

    def contract(self, now: datetime) -> Contract:
        """What the model would be offered if it were asked now."""
        return self._compiler.compile(self.state, self.facts(now))
