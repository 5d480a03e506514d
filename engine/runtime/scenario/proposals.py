"""Owns the model of a test: it proposes what the turn says, once, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal

from engine.domain.policy import ModelUse
from engine.policy.documents.test import ProposePart
from engine.policy.nodes import plain
from engine.ports import AttemptFailed, ModelRequest, ModelResponse, ProposedCall

MODEL = "scripted/test"


class TurnModel:
    """A ModelGateway that is given one response at a time; without one, the Run must not ask."""

    def __init__(self) -> None:
        self._next: tuple[ProposedCall, ...] | None = None

    def give(self, proposals: Sequence[ProposePart]) -> None:
        self._next = tuple(ProposedCall(each.call, _arguments(each)) for each in proposals)

    @property
    def ready(self) -> bool:
        return self._next is not None

    async def propose(
        self,
        request: ModelRequest,
        on_text: Callable[[str], None] | None = None,  # noqa: ARG002 - the port's signature
    ) -> ModelResponse:
        if self._next is None:
            raise AttemptFailed("fault", "the test has no response for this")
        calls, self._next = self._next, None
        return ModelResponse(
            model=request.model.id,
            calls=calls,
            finish="tool_calls" if calls else "stop",
            cost_usd=Decimal(0),
        )

    def price(self, model: ModelUse, input_tokens: int, output_tokens: int) -> Decimal | None:  # noqa: ARG002 - the port's signature
        return Decimal(0)


def _arguments(proposal: ProposePart) -> str:
    """As a model would send them; a text is sent as it stands, so that bad JSON can be tested."""
    if not proposal.is_written("args"):
        return "{}"
    args = plain(proposal.args)
    return args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)
