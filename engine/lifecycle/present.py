"""Owns what one step of `decide` looks at: policies, state, the time, and the facts that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple, Protocol

from engine.domain.events import LeftOut
from engine.domain.facts import Facts
from engine.domain.ids import CallId
from engine.domain.policy import ModelUse, Policy
from engine.domain.state import RunState
from engine.lifecycle.provenance import Provenance
from engine.policy.arguments import SecretFinder
from engine.policy.contract import Contract
from engine.policy.view import FactsView


class Size(NamedTuple):
    """Input tokens of a request; an estimate unless `exact`. `measurable`: a better count can still be had."""

    tokens: int
    exact: bool = False
    measurable: bool = False


class Outlook(Protocol):
    """What the outside says of the request to come: asked by `decide`, answered without I/O."""

    def input_tokens(self, state: RunState, contract: Contract) -> Size:
        """The next request's size."""
        ...

    def dropped_inputs(self, state: RunState) -> tuple[int, ...]:
        """Seqs of user inputs that do not fit into the next request and that no event says yet."""
        ...

    def left_out(self, state: RunState) -> LeftOut:
        """What the next request leaves out for want of room."""
        ...

    def compactable(self, state: RunState, at_tokens: int) -> tuple[int, str] | None:
        """(last turn, text) that a summary would cover, if the messages have reached `at_tokens`."""
        ...

    def price(self, use: ModelUse, input_tokens: int, output_tokens: int) -> Decimal | None: ...

    def at_work(self, call: CallId) -> bool:
        """True while a handler of the call that nobody waits for any more still runs."""
        ...

    @property
    def model(self) -> str:
        """What proposes: the model that the Run recorded, unless this drive names another."""
        ...

    @property
    def free(self) -> bool:
        """True for models that play back proposals."""
        ...


def _nobody(_: CallId) -> bool:
    return False


class Present:
    """One Run at one moment. `facts` are made when they are first read; `at_work` is the Outlook's."""

    def __init__(
        self,
        policies: Sequence[Policy],
        state: RunState,
        view: FactsView,
        now: datetime,
        provenance: Provenance,
        secrets: SecretFinder | None,
        at_work: Callable[[CallId], bool] = _nobody,
        refreshes: Set[CallId] = frozenset(),
    ) -> None:
        self.refreshes = refreshes
        """Reads of app state that this drive made: what was read before a crash or a wait is old."""
        self.at_work = at_work
        self.policies = policies
        self.policy = policies[0]
        self.state = state
        self.now = now
        self.provenance = provenance
        self.secrets = secrets
        self._view = view
        self._facts: tuple[Facts, ...] | None = None

    @property
    def facts(self) -> tuple[Facts, ...]:
        if self._facts is None:
            self._facts = self._view.at(self.now)
        return self._facts
