"""Owns the replay model: it plays the responses that another Run recorded, turn by turn."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from engine.domain.events import ModelTurnRecorded
from engine.domain.ids import RunId
from engine.domain.policy import ModelUse
from engine.ports import EventStore, ModelRequest, ModelResponse, ProposedCall


class ReplayGateway:
    """Proposes for turn N what the recorded Run's model proposed there; after its last turn, nothing.

    It costs nothing, loads no model library and keeps nothing between requests but the recorded turns.
    """

    def __init__(self, turns: dict[int, ModelTurnRecorded]) -> None:
        self._turns = turns

    @classmethod
    def of(cls, store: EventStore, run: RunId) -> ReplayGateway:
        """The turns of a stored Run."""
        bodies = (event.body for event in store.events(run))
        return cls({body.turn: body for body in bodies if isinstance(body, ModelTurnRecorded)})

    async def propose(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelResponse:
        """The recorded response of that turn."""
        turn = self._turns.get(request.turn)
        if turn is None:
            return ModelResponse(model=request.model.id, cost_usd=Decimal(0))
        if on_text is not None and turn.text:
            on_text(turn.text)
        return ModelResponse(
            model=turn.model,
            text=turn.text,
            parts=turn.parts,
            calls=tuple(ProposedCall(each.tool, each.arguments, each.provider_id) for each in turn.proposals),
            finish=turn.finish,
            cost_usd=Decimal(0),
        )

    def price(self, model: ModelUse, input_tokens: int, output_tokens: int) -> Decimal | None:  # noqa: ARG002 - the port's signature
        return Decimal(0)
