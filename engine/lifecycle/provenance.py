"""Owns where values literally occur in what the Host recorded: exact, whole values, never by likeness.

"Occurs in", never "came from": a value that is found may still be used wrongly, and one that is found nowhere
is the model's own. The index is a view over the log and grows by what is new.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

from engine.domain.canonical import Json, JsonObject
from engine.domain.events import Edge
from engine.domain.facts import UNKNOWN, Unknown, Value
from engine.domain.policy import Policy, ToolSpec
from engine.domain.results import ReadResult
from engine.domain.state import CallState, RunState
from engine.domain.types import Field, Trust, TypeName, ValueType
from engine.lifecycle.literals import (
    MAX_WHOLE,
    NUMBER,
    asked,
    delimited,
    folded,
    holds_several,
    is_literal,
    literals,
    normalised,
    spellings,
    words,
)

MAX_EDGES = 4
"""Places recorded for one argument."""
SHORTEST_ECHO = 4
"""Letters and digits from which a part of an argument that comes back counts as an echo."""
UNTRUSTED = "untrusted"
_NO_ORIGIN = frozenset({TypeName.TEXT, TypeName.RICH_TEXT, TypeName.BOOL, TypeName.ENUM, TypeName.DURATION})


class Place(NamedTuple):
    """One origin of a value and where it occurs: `E3 result.iban of call 2.1`, `task.payee`, `input 1`."""

    origin: str
    where: str


class _Own(NamedTuple):
    """What a call was given: a result that only repeats it says nothing about where it occurs."""

    values: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ()
    """Arguments that are text: a literal in one of them is the call's own too."""
    chosen: tuple[str, ...] = ()
    """What the model chose, folded: trust does not come to a part of it by being sent back in another spelling."""

    def repeats(self, key: str, origins: Iterable[str]) -> bool:
        """True if that is where `key` is from. "Untrusted" restricts: it is lost to an exact echo only."""
        if key in self.values or any(delimited(key, text) for text in self.texts):
            return True
        if not self.chosen or UNTRUSTED in origins:
            return False
        spelled = folded(key)
        return len(spelled) >= SHORTEST_ECHO and any(spelled in text for text in self.chosen)


NOTHING = _Own()


class _Text(NamedTuple):
    """A text that holds several literals: searched for values that are no single literal."""

    text: str
    origin: str
    where: str
    own: _Own


class Provenance:
    """The index of one Run under its own policy."""

    def __init__(self, policy: Policy, state: RunState, read_result: ReadResult) -> None:
        self._policy = policy
        self._state = state
        self._read = read_result
        self._known: dict[str, dict[str, str]] = {}
        """Normalised value -> origin -> where it occurs first."""
        self._texts: list[_Text] = []
        self._holding: dict[str, list[int]] = {}
        """Word -> the texts that hold it, by their place in `_texts`."""
        self._answers = self._said = self._edits = 0
        self._slices: dict[str, tuple[int, dict[str, str]]] = {}
        for name, value in state.task.items():
            for path, leaf in leaves(value, f"task.{name}"):
                self._add(leaf, ("task",), path)

    def __call__(self, value: Value) -> frozenset[str] | Unknown:
        return self.of(value)

    def for_tool(self, tool: str) -> ForTool:
        """Origins as one tool sees them: values endorsed for it count too."""
        return ForTool(self, tool)

    def of(self, value: Value, tool: str = "") -> frozenset[str] | Unknown:
        """The set of origins of a scalar; UNKNOWN for anything else."""
        if isinstance(value, Unknown | list | dict | bool) or value is None:
            return UNKNOWN
        found = {place.origin for place in self.places(value, tool)}
        return frozenset(found or {"model"})

    def places(self, value: Value, tool: str = "") -> list[Place]:
        """Every origin of a scalar, with where it occurs."""
        self.sync()
        plain, key = normalised(value), asked(value)
        found = dict(self._known.get(key, ()))
        for name, (_, known) in self._slices.items():
            if key in known:
                found.setdefault("state", f"state.{name}{known[key]}")
        if not is_literal(plain):
            for text, origin, where, own in self._candidates(plain):
                if origin not in found and delimited(plain, text) and not own.repeats(plain, (origin,)):
                    found[origin] = where
        if tool and (tool, plain) in self._state.endorsed:
            found["endorsed"] = f"endorsed by {self._state.endorsed[tool, plain]}"
        return [Place(origin, where) for origin, where in found.items()]

    def _candidates(self, plain: str) -> Iterator[_Text]:
        """Texts that hold every word of it, as far as its rarest one tells: a delimited literal keeps its words."""
        held = words(plain)
        if not held:
            return iter(self._texts)
        rarest = min((self._holding.get(word, []) for word in held), key=len)
        return (self._texts[index] for index in rarest)

    def sync(self) -> None:
        """Indexes what was recorded since the last call."""
        state = self._state
        for id_ in state.answers[self._answers :]:
            self._answer(state.calls[id_])
        self._answers = len(state.answers)
        for index, text in enumerate(state.said[self._said :], self._said + 1):
            self._text(text, ("mention",), f"input {index}", NOTHING)
        self._said = len(state.said)
        for call, edits in state.user_values[self._edits :]:
            self._edited(state.calls[call], edits)
        self._edits = len(state.user_values)
        for name, held in state.state.items():
            if self._slices.get(name, (0,))[0] != held.version:
                known = {
                    key: path
                    for path, leaf in leaves(held.value, "")
                    for key in spellings(leaf, normalised(leaf))
                }
                self._slices[name] = (held.version, known)

    def _answer(self, call: CallState) -> None:
        spec, receipt = self._policy.tools.get(call.tool), call.receipt
        if spec is None or receipt is None:
            return
        own = _own(spec, call.args or {})
        if receipt.detail and receipt.settled_by == "tool" and call.untrusted:
            self._text(receipt.detail, (UNTRUSTED,), f"message of call {call.id}", own)
        stored = receipt.result
        if stored is None or stored.fault is not None:
            return
        for path, leaf, trust in trusted_leaves(self._policy, spec, self._read(stored)):
            where = f"{path} of call {call.id}"
            origins = _origins(trust, spec)
            self._add(leaf, origins, where, own)
            if isinstance(leaf, str) and (holds_several(leaf) or trust is Trust.UNTRUSTED):
                self._text(leaf, origins, where, own)

    def _edited(self, call: CallState, edits: JsonObject) -> None:
        """What the principal left as it was proposed, such as one element of a list, nobody gave."""
        proposed = call.amended.original_args if call.amended else {}
        left = {normalised(leaf) for _, leaf in leaves(proposed, "")}
        for path, leaf in leaves(edits, ""):
            if normalised(leaf) not in left:
                self._add(leaf, ("user",), f"edit of call {call.id}{path}")

    def _add(self, leaf: Json, origins: tuple[str, ...], where: str, own: _Own = NOTHING) -> None:
        """Whole values. A leaf that only repeats the call's own arguments is no origin."""
        plain = normalised(leaf)
        if not plain or len(plain) > MAX_WHOLE or own.repeats(plain, origins):
            return
        for key in spellings(leaf, plain):
            known = self._known.setdefault(key, {})
            for origin in origins:
                known.setdefault(origin, where)

    def _text(self, text: str, origins: tuple[str, ...], where: str, own: _Own) -> None:
        """Each delimited literal of a text."""
        for literal in literals(text, widely=UNTRUSTED in origins):
            self._add(literal, origins, where, own)
        whole = unicodedata.normalize("NFC", text)
        first = len(self._texts)
        self._texts += [_Text(whole, origin, where, own) for origin in origins]
        for word in words(whole):
            self._holding.setdefault(word, []).extend(range(first, len(self._texts)))


class ForTool:
    """The origin function of one tool."""

    def __init__(self, provenance: Provenance, tool: str) -> None:
        self._provenance = provenance
        self._tool = tool

    def __call__(self, value: Value) -> frozenset[str] | Unknown:
        return self._provenance.of(value, self._tool)

    def for_tool(self, tool: str) -> ForTool:
        return ForTool(self._provenance, tool)

    def places(self, value: Value) -> list[Place]:
        """Every origin of a scalar, with where it occurs."""
        return self._provenance.places(value, self._tool)


def _own(spec: ToolSpec, args: JsonObject) -> _Own:
    values = frozenset(normalised(leaf) for _, leaf in leaves(args, ""))
    chosen = [
        (leaf, type_.opaque)
        for name, value in args.items()
        if name in spec.params and spec.params[name].bind is None
        for _, leaf, type_ in _typed(value, spec.params[name].type, name)
        if isinstance(leaf, str)
    ]
    texts = (unicodedata.normalize("NFC", text) for text, opaque in chosen if opaque)
    return _Own(values - {""}, tuple(texts), tuple(folded(text) for text, _ in chosen))


def _origins(trust: Trust, spec: ToolSpec) -> tuple[str, ...]:
    if trust is Trust.UNTRUSTED:
        return (UNTRUSTED,)
    return ("trusted",) if spec.evidence is None else ("trusted", f"trusted.{spec.evidence.kind}")


def leaves(value: Json, path: str) -> Iterator[tuple[str, Json]]:
    """(path, scalar) of everything in a JSON value."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def trusted_leaves(policy: Policy, spec: ToolSpec, value: Json) -> Iterator[tuple[str, Json, Trust]]:
    """(path, scalar, trust): a field's own trust where it declares one, else that of what holds it."""
    source = policy.sources.get(spec.source) if spec.source else None
    trust = source.trust if source is not None else Trust.TRUSTED
    yield from _within(value, spec.result, trust, "result")


def _within(
    value: Json, fields: Mapping[str, Field], trust: Trust, path: str
) -> Iterator[tuple[str, Json, Trust]]:
    """Names that no spec declares are data as well; they bring no trust."""
    if isinstance(value, dict):
        for name, item in value.items():
            field = fields.get(name)
            if field is None and trust is Trust.UNTRUSTED:
                yield f"{path}.{name}", name, trust
            inner = field.trust if field is not None and field.trust is not None else trust
            yield from _within(item, _fields(field.type) if field else {}, inner, f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _within(item, fields, trust, f"{path}[{index}]")
    else:
        yield path, value, trust


def _fields(type_: ValueType) -> Mapping[str, Field]:
    if type_.name is TypeName.LIST and type_.of is not None:
        return _fields(type_.of)
    return type_.fields


# --- edges ------------------------------------------------------------------------------------------------


def edges_of(provenance: Provenance, spec: ToolSpec, args: JsonObject, state: RunState) -> tuple[Edge, ...]:
    """Where each argument of a call is found: bound, ref or literal; the Run's dependency record."""
    found: list[Edge] = []
    for name, value in args.items():
        param = spec.params.get(name)
        if param is None:
            continue
        if param.bind is not None:
            root = param.bind.split(".", 1)[0]
            found.append(Edge(arg=name, type="bound", origin=root, source=param.bind))
            continue
        for path, leaf, type_ in _typed(value, param.type, name):
            found.extend(_edges(provenance, spec, path, leaf, type_, state))
    return tuple(found)


def _typed(value: Json, type_: ValueType, path: str) -> Iterator[tuple[str, Json, ValueType]]:
    if isinstance(value, list):
        inner = type_.of or ValueType(TypeName.ID)
        for index, item in enumerate(value):
            yield from _typed(item, inner, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            field = type_.fields.get(name)
            if field is not None:
                yield from _typed(item, field.type, f"{path}.{name}")
    else:
        yield path, value, type_


def _edges(
    provenance: Provenance, spec: ToolSpec, path: str, leaf: Json, type_: ValueType, state: RunState
) -> Iterator[Edge]:
    if type_.name is TypeName.REF and type_.kind is not None:
        handle = state.evidence_index.get((type_.kind, str(leaf)))
        evidence = state.evidence.get(handle) if handle else None
        if evidence is not None:
            yield Edge(
                arg=path, type="ref", origin=type_.kind, source=f"{evidence.handle} of call {evidence.call}"
            )
            return
    if type_.name in _NO_ORIGIN:
        return
    places = provenance.places(_as_typed(leaf, type_), spec.name)
    for place in places[:MAX_EDGES]:
        yield Edge(arg=path, type="literal", origin=place.origin, source=place.where)
    if not places:
        yield Edge(arg=path, type="literal", origin="model", source="")


def _as_typed(leaf: Json, type_: ValueType) -> Value:
    """Decimals travel as text."""
    if type_.name is TypeName.DECIMAL and isinstance(leaf, str) and NUMBER.match(leaf):
        return Decimal(leaf)
    return leaf
