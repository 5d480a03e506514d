"""Owns the scripted model: it plays back proposals and can read the results that it got."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from engine.adapters.script_file import ScriptedCall, ScriptedTurn, parse_script, read_script, turns_from
from engine.adapters.script_templates import BadTemplate, Template, names_in, rendered
from engine.adapters.script_view import ScriptView
from engine.domain.canonical import NotJson, clean_text
from engine.domain.events import Usage
from engine.domain.policy import ModelUse
from engine.domain.results import jsonable
from engine.ports import AttemptFailed, ModelRequest, ModelResponse, ProposedCall

Turn = ScriptedTurn | ModelResponse | Callable[[ModelRequest], ModelResponse]


class ScriptedGateway:
    """Plays the turn that the request asks for, so a Run that is resumed goes on in the right place.

    It keeps nothing between requests. A script that is over proposes nothing: a closed response without calls.
    It costs nothing, and loads no model library.
    """

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = tuple(turns)

    @classmethod
    def from_file(cls, file: str) -> ScriptedGateway:
        """Raises SourceError that names file, line and field."""
        return cls(read_script(file))

    @classmethod
    def from_text(cls, name: str, text: str) -> ScriptedGateway:
        """The same from text; `name` is what errors call it."""
        return cls(parse_script(name, text))

    @classmethod
    def from_turns(cls, turns: Sequence[Mapping[str, Any] | Turn]) -> ScriptedGateway:
        """Turns as a script has them, as ready responses, or as functions of the request (which may raise
        AttemptFailed). A `fail` entry belongs to the next entry that is a mapping."""
        played: list[Turn] = []
        pending: list[Mapping[str, Any]] = []
        for turn in turns:
            if not isinstance(turn, Mapping):
                played.append(turn)
                continue
            pending.append(turn)
            if "fail" not in turn:
                played.extend(turns_from(pending))
                pending = []
        return cls([*played, *turns_from(pending)])

    async def propose(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelResponse:
        """The scripted response. Raises AttemptFailed as the script says, and `bad_request` where a template
        cannot be rendered."""
        turn = self._turns[request.turn - 1] if request.turn <= len(self._turns) else None
        response = self._answer(turn, request)
        if on_text is not None and response.text:
            on_text(response.text)
        return response

    def price(self, model: ModelUse, input_tokens: int, output_tokens: int) -> Decimal | None:  # noqa: ARG002 - the port's signature
        return Decimal(0)

    def _answer(self, turn: Turn | None, request: ModelRequest) -> ModelResponse:
        if turn is None:
            return ModelResponse(model=request.model.id, cost_usd=Decimal(0))
        if isinstance(turn, ModelResponse):
            return turn
        if not isinstance(turn, ScriptedTurn):
            return turn(request)
        if request.attempt <= len(turn.failures):
            failure = turn.failures[request.attempt - 1]
            raise AttemptFailed(
                failure.error, failure.message, retry_after=failure.retry_after, usage=Usage()
            )
        try:
            return _played(turn, request)
        except (BadTemplate, NotJson) as error:
            message = f"the script cannot play turn {request.turn}: {clean_text(str(error))[0]}"
            raise AttemptFailed("bad_request", message, remedy="mend the script", usage=Usage()) from error


def _played(turn: ScriptedTurn, request: ModelRequest) -> ModelResponse:
    texts: list[Template] = [turn.text]
    for call in turn.calls:
        texts += [call.tool, call.args, call.arguments, call.id]
    names = {name for text in texts for name in names_in(text)}
    variables = ScriptView(request).variables(names) if names else {}
    calls = tuple(_proposed(call, variables) for call in turn.calls)
    return ModelResponse(
        model=request.model.id,
        text=clean_text(str(rendered(turn.text, variables)))[0] if turn.text is not None else "",
        calls=calls,
        finish=turn.finish or ("tool_calls" if calls else "stop"),
        cost_usd=Decimal(0),
    )


def _proposed(call: ScriptedCall, variables: Mapping[str, object]) -> ProposedCall:
    if call.arguments is not None:
        arguments = str(rendered(call.arguments, variables))
    else:
        args, _ = jsonable(rendered(call.args, variables) if call.args is not None else {})
        arguments = json.dumps(args, ensure_ascii=False, separators=(",", ":"))
    given = str(rendered(call.id, variables)) if call.id is not None else None
    return ProposedCall(str(rendered(call.tool, variables)), arguments, given)
