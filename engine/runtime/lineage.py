"""Owns the dependency record of a Run: for each argument of each call, where its value is found in the records.

"Occurs in", never "came from": a value that is found somewhere may have been obtained otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.domain.canonical import Json, JsonObject, NotJson, parse_json
from engine.domain.errors import AgentctlError, UsageError
from engine.domain.events import Edge, StoredResult
from engine.domain.ids import CallId, RunId
from engine.domain.state import CallState
from engine.lifecycle.fold import fold
from engine.lifecycle.provenance import Provenance, edges_of, leaves
from engine.ports import EventStore
from engine.runtime.library import PolicyLibrary

DEEPEST = 12
"""Links of one chain."""
_CALL = re.compile(r" of call (\d+\.\d+)")


@dataclass(slots=True)
class Link:
    """One argument's value and one place where it is found; `behind` are the arguments of the call found there."""

    call: CallId
    tool: str
    arg: str
    value: Json
    edge: Edge
    behind: list[Link] = field(default_factory=list)

    @property
    def found_in(self) -> CallId | None:
        match = _CALL.search(self.edge.source)
        return CallId.parse(match[1]) if match else None


class Lineage:
    """The record of one Run, read once."""

    def __init__(self, store: EventStore, run: RunId) -> None:
        self._store = store
        self._run = run
        self.state = fold(run, store.events(run))

    def call(self, id_: CallId) -> CallState:
        """Raises UsageError for a call that the Run does not have."""
        found = self.state.calls.get(id_)
        if found is None:
            last = max(self.state.calls, default=None)
            raise UsageError(
                f"Run `{self._run}` has no call `{id_}`",
                remedy=f"its last one is {last}" if last else "it has none yet",
            )
        return found

    def chain(self, id_: CallId, arg: str | None = None) -> list[Link]:
        """Every argument of a call, or the one that is named, with the places behind it. Raises UsageError."""
        call = self.call(id_)
        links = list(self._links(call, (id_,)))
        chosen = [
            link for link in links if arg is None or re.split(r"[.\[]", link.arg)[0] == arg or link.arg == arg
        ]
        if arg is not None and not chosen:
            known = ", ".join(dict.fromkeys(link.arg for link in links)) or "none"
            raise UsageError(
                f"call {id_} has no argument `{arg}` whose place is recorded", remedy=f"it has: {known}"
            )
        return chosen

    def edges(self, call: CallState) -> tuple[Edge, ...]:
        """As recorded with its dispatch; of a call that was not sent, worked out as of when it was proposed."""
        if call.edges or call.proposal is None:
            return call.edges
        args = arguments_of(call)
        try:
            policy = PolicyLibrary(self._store).policy(self.state.bundle)
        except AgentctlError:
            return ()
        spec = policy.tools.get(call.tool)
        if spec is None or not args:
            return ()
        then = fold(self._run, (event for event in self._store.events(self._run) if event.seq <= call.seq))
        return edges_of(Provenance(policy, then, self._read), spec, args, then)

    def _read(self, stored: StoredResult) -> Json:
        text = self._store.blob(stored.digest) if stored.digest is not None else None
        return parse_json(text) if text is not None else stored.value

    def _links(self, call: CallState, seen: tuple[CallId, ...]) -> Iterator[Link]:
        values = dict(values_of(arguments_of(call)))
        for edge in self.edges(call):
            link = Link(call.id, call.tool, edge.arg, values.get(edge.arg), edge)
            behind = link.found_in
            if behind in self.state.calls and behind not in seen and len(seen) < DEEPEST:
                assert behind is not None
                link.behind = list(self._links(self.state.calls[behind], (*seen, behind)))
            yield link


def arguments_of(call: CallState) -> JsonObject:
    """After binding where it was judged; else as the model wrote them."""
    if call.args is not None or call.proposal is None:
        return call.args or {}
    try:
        read = parse_json(call.proposal.arguments)
    except NotJson:
        return {}
    return read if isinstance(read, dict) else {}


def values_of(args: JsonObject) -> Iterator[tuple[str, Json]]:
    """Path of each argument and of each value in it, as edges name them."""
    for name, value in args.items():
        yield name, value
        yield from leaves(value, name)
