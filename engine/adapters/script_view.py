"""Owns what a script can read of a request: results, evidence and inputs, found from the end backwards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeGuard

from engine.adapters.script_templates import BadTemplate
from engine.domain.canonical import Json
from engine.domain.messages import CallResult, Message, UserInput
from engine.policy.builtin import ASK_USER
from engine.ports import ModelRequest


class ScriptView:
    """Only what a template names is built, and a look-up reads back no further than it must: the cost of a turn
    does not grow with the length of the Run."""

    def __init__(self, request: ModelRequest) -> None:
        self._request = request

    def variables(self, names: Collection[str]) -> dict[str, object]:
        """The template variables among `names`."""
        made: dict[str, Callable[[], object]] = {
            "results": lambda: _LastResults(self),
            "all_results": lambda: [self.described(result) for result in self._forwards()],
            "evidence": lambda: [entry for result in self._forwards() for entry in _cited(result)],
            "inputs": self._inputs,
            "last": lambda: self.last,
            "handle": lambda: self.handle,
        }
        return {name: make() for name, make in made.items() if name in names}

    def last(self, tool: str) -> Json:
        """The value of the newest answer of a tool."""
        for result in self.backwards():
            if result.tool == tool and result.value is not None:
                return self.value(result)
        raise BadTemplate(f"`{tool}` has no result yet")

    def handle(self, kind: str, id: str | None = None) -> str:  # noqa: A002 - the name in scripts
        """The newest evidence handle (`E3`) of a kind, and of an id where one is given."""
        for result in self.backwards():
            for handle, of_kind, of_id in reversed(result.evidence):
                if of_kind == kind and id in (None, of_id):
                    return handle
        raise BadTemplate(
            f"there is no evidence of kind `{kind}`" + (f" with id `{id}`" if id else "") + " yet"
        )

    def backwards(self) -> Iterator[CallResult]:
        for message in reversed(self._request.messages):
            if isinstance(message, CallResult):
                yield message

    def value(self, result: CallResult) -> Json:
        return None if result.value is None else self._request.results(result.value)

    def described(self, result: CallResult) -> dict[str, Any]:
        return {
            "tool": result.tool,
            "call": str(result.id),
            "outcome": result.outcome,
            "text": result.text,
            "value": self.value(result),
            "evidence": [{"handle": handle, "kind": kind, "id": of} for handle, kind, of in result.evidence],
        }

    def _forwards(self) -> Iterator[CallResult]:
        return (message for message in self._request.messages if isinstance(message, CallResult))

    def _inputs(self) -> list[Json]:
        """A reply to a question is the result of the question."""
        return [
            self.value(message) if isinstance(message, CallResult) else message.text
            for message in self._request.messages
            if isinstance(message, UserInput) or _is_reply(message)
        ]


def _is_reply(message: Message) -> TypeGuard[CallResult]:
    return isinstance(message, CallResult) and message.tool == ASK_USER and message.value is not None


class _LastResults:
    """Tool name -> the last value it answered with; `results.get_stock.qty` in a script."""

    __slots__ = ("_view",)

    def __init__(self, view: ScriptView) -> None:
        self._view = view

    def __getitem__(self, tool: str) -> Json:
        for result in self._view.backwards():
            if result.tool == tool and result.value is not None:
                return self._view.value(result)
        raise KeyError(tool)

    def __contains__(self, tool: object) -> bool:
        return any(result.tool == tool and result.value is not None for result in self._view.backwards())


def _cited(result: CallResult) -> Iterator[dict[str, str]]:
    for handle, kind, of in result.evidence:
        yield {"handle": handle, "kind": kind, "id": of, "tool": result.tool, "call": str(result.id)}
