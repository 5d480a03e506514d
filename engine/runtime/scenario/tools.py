"""Owns the tools of a test: no handler is run, what the test says comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from engine.domain.calls import Failed, NotExecuted, Outcome
from engine.domain.canonical import Json, JsonObject
from engine.domain.events import HostPurpose, timestamp
from engine.domain.ids import CallId
from engine.domain.policy import ToolSpec
from engine.domain.types import TypeName, ValueType
from engine.ports import ToolRequest

_DEFAULTS: Final[Mapping[TypeName, Json]] = {
    TypeName.BOOL: False,
    TypeName.INT: 0,
    TypeName.DECIMAL: "0",
    TypeName.DURATION: "0s",
    TypeName.LIST: [],
    TypeName.ARGV: [],
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool is made to say: an outcome, and the result of a confirmed one."""

    outcome: Outcome = Outcome.CONFIRMED
    result: Json = None
    scripted: bool = False
    """The test states the result; otherwise it is the default of the declared fields."""


class ScriptedTools:
    """A ToolExecutor that answers each call as its test says.

    Calls of the Host are scripted too: a refresh brings the present value of its slice, a probe cannot tell, a
    compensation is confirmed.
    """

    def __init__(
        self,
        answers: Mapping[CallId, Answer],
        present: Callable[[str], JsonObject | None],
        purpose: Callable[[CallId], HostPurpose | None],
    ) -> None:
        self._answers = answers
        self._present = present
        self._purpose = purpose

    def check(self, specs: Sequence[ToolSpec]) -> list[str]:  # noqa: ARG002 - nothing is run, so nothing is missing
        return []

    async def execute(self, request: ToolRequest) -> object:
        host = self._purpose(request.call)
        if host is not None:
            return self._for_the_host(request, host)
        return said(self._answers.get(request.call, Answer()), request.spec, request.now)

    def _for_the_host(self, request: ToolRequest, host: HostPurpose) -> object:
        if host.purpose == "probe":
            return {}
        if host.purpose == "refresh":
            value = self._present(host.slice or "")
            if value is None:
                raise Failed(f"the test gives no value of state {host.slice}")
            return value
        return default_result(request.spec, request.now)


def said(answer: Answer, spec: ToolSpec, now: datetime) -> object:
    """The scripted answer as a tool gives it. Raises Failed, NotExecuted, or TimeoutError for an unknown outcome."""
    match answer.outcome:
        case Outcome.FAILED:
            raise Failed("failed, as the test says")
        case Outcome.NOT_EXECUTED:
            raise NotExecuted("not executed, as the test says")
        case Outcome.UNKNOWN:
            raise TimeoutError
        case _:
            return answer.result if answer.scripted else default_result(spec, now)


def default_result(spec: ToolSpec, now: datetime) -> JsonObject:
    """0, false, '', [], the first value of an enum or the clock for each declared field."""
    return {name: default_value(field.type, now) for name, field in spec.result.items()}


def default_value(type_: ValueType, now: datetime) -> Json:
    if type_.name is TypeName.ENUM:
        return type_.values[0] if type_.values else ""
    if type_.name is TypeName.TIMESTAMP:
        return timestamp(now)
    if type_.name is TypeName.RECORD:
        return {name: default_value(field.type, now) for name, field in type_.fields.items()}
    found = _DEFAULTS.get(type_.name, "")
    return [*found] if isinstance(found, list) else found
