"""Owns where values literally occur in what the Host recorded: exact, whole values, never by likeness.

"Occurs in", never "came from": a value that is found may still be used wrongly, and one that is found nowhere
is the model's own. The index is a view over the log and grows by what is new.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from engine.domain.canonical import Json, JsonObject
from engine.domain.events import Edge, timestamp
from engine.domain.facts import UNKNOWN, Unknown, Value
from engine.domain.policy import Policy, ToolSpec
from engine.domain.results import ReadResult
from engine.domain.state import CallState, RunState
from engine.domain.types import Field, Trust, TypeName, ValueType

MAX_WHOLE = 256
"""Code points up to which a string is a value of its own; a longer one, or one with spaces, is also text."""
MAX_EDGES = 4
"""Places recorded for one argument."""
_NUMBER = re.compile(r"-?\d{1,40}(\.\d{1,40})?\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
_BETWEEN = r"\s\"'`<>()\[\]{},;|"
"""What stands between literals in a text."""
_TOKEN = re.compile(f"[^{_BETWEEN}]+")
_PARTS = re.compile(r"[^:=]+")
_WORD = re.compile(r"[^\W_]+")
"""What no delimiter and no mark at an edge can divide or belong to."""
_EDGE_MARKS = ".,:;!?*_"
_AS_NUMBER = "\x00"
"""Marks the spelling of a number: `1.50` as an id is not `1.5`, as an amount it is."""
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

    def repeats(self, key: str) -> bool:
        if key in self.values:
            return True
        return bool(self.texts) and any(_delimited(key, text) for text in self.texts)


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
        plain, key = normalised(value), _asked(value)
        found = dict(self._known.get(key, ()))
        for name, (_, known) in self._slices.items():
            if key in known:
                found.setdefault("state", f"state.{name}{known[key]}")
        if _TOKEN.fullmatch(plain) is None:
            for text, origin, where, own in self._candidates(plain):
                if origin not in found and _delimited(plain, text) and not own.repeats(plain):
                    found[origin] = where
        if tool and (tool, plain) in self._state.endorsed:
            found["endorsed"] = f"endorsed by {self._state.endorsed[tool, plain]}"
        return [Place(origin, where) for origin, where in found.items()]

    def _candidates(self, plain: str) -> Iterator[_Text]:
        """Texts that hold every word of it, as far as its rarest one tells: a delimited literal keeps its words."""
        words = _words(plain)
        if not words:
            return iter(self._texts)
        rarest = min((self._holding.get(word, []) for word in words), key=len)
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
            for path, leaf in leaves(edits, ""):
                self._add(leaf, ("user",), f"edit of call {call}{path}")
        self._edits = len(state.user_values)
        for name, held in state.state.items():
            if self._slices.get(name, (0,))[0] != held.version:
                known = {
                    key: path
                    for path, leaf in leaves(held.value, "")
                    for key in _spellings(leaf, normalised(leaf))
                }
                self._slices[name] = (held.version, known)

    def _answer(self, call: CallState) -> None:
        spec = self._policy.tools.get(call.tool)
        stored = call.receipt.result if call.receipt else None
        if spec is None or stored is None or stored.fault is not None or call.receipt is None:
            return
        own = _own(spec, call.args or {})
        for path, leaf, trust in trusted_leaves(self._policy, spec, self._read(stored)):
            where = f"{path} of call {call.id}"
            origins = _origins(trust, spec)
            self._add(leaf, origins, where, own)
            if isinstance(leaf, str) and (_holds_several(leaf) or trust is Trust.UNTRUSTED):
                self._text(leaf, origins, where, own)

    def _add(self, leaf: Json, origins: tuple[str, ...], where: str, own: _Own = NOTHING) -> None:
        """Whole values. A leaf that only repeats the call's own arguments is no origin."""
        plain = normalised(leaf)
        if not plain or len(plain) > MAX_WHOLE or own.repeats(plain):
            return
        for key in _spellings(leaf, plain):
            known = self._known.setdefault(key, {})
            for origin in origins:
                known.setdefault(origin, where)

    def _text(self, text: str, origins: tuple[str, ...], where: str, own: _Own) -> None:
        """Each delimited literal of a text."""
        for token in dict.fromkeys(_TOKEN.findall(text)):
            for literal in _literals(token):
                self._add(literal, origins, where, own)
        whole = unicodedata.normalize("NFC", text)
        first = len(self._texts)
        self._texts += [_Text(whole, origin, where, own) for origin in origins]
        for word in _words(whole):
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


def normalised(value: Value) -> str:
    """The one spelling under which a scalar is compared."""
    if isinstance(value, str):
        text = (value if value.isascii() else unicodedata.normalize("NFC", value)).strip()
        return _time(text) if _TIME.match(text) else text
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return _number(str(value))
    if isinstance(value, float):
        return _number(repr(value))
    return unicodedata.normalize("NFC", str(value)).strip()


def _asked(value: Value) -> str:
    """The spelling under which a value is looked up: a number as a number, everything else as it is written."""
    plain = normalised(value)
    return _AS_NUMBER + plain if isinstance(value, int | float | Decimal) else plain


def _spellings(leaf: Json, plain: str) -> tuple[str, ...]:
    """The spellings under which a recorded scalar is found; `plain` is its normalised one."""
    if isinstance(leaf, str):
        return (plain, _AS_NUMBER + _number(plain)) if _NUMBER.match(plain) else (plain,)
    return (plain, _AS_NUMBER + plain)


def _literals(token: str) -> tuple[str, ...]:
    """A literal with and without marks at its edges, and the parts of `name:value` and `name=value`."""
    if token.isalnum():
        return (token,)
    seen = dict.fromkeys((token, token.strip(_EDGE_MARKS), *_PARTS.findall(token)))
    return tuple(each for each in seen if each)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def _holds_several(text: str) -> bool:
    """True for what is read as a text, not as one literal."""
    return len(text) > MAX_WHOLE or _TOKEN.fullmatch(text) is None


def _own(spec: ToolSpec, args: JsonObject) -> _Own:
    values = frozenset(normalised(leaf) for _, leaf in leaves(args, ""))
    texts = (
        leaf
        for name, value in args.items()
        if name in spec.params
        for _, leaf, type_ in _typed(value, spec.params[name].type, name)
        if isinstance(leaf, str) and type_.opaque
    )
    return _Own(values - {""}, tuple(unicodedata.normalize("NFC", text) for text in texts))


def _number(text: str) -> str:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    if not number.is_finite():
        return text
    plain = format(number, "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _time(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return text if moment.tzinfo is None else timestamp(moment)


def _delimited(key: str, text: str) -> bool:
    """True if `key` stands in `text` with nothing but marks between it and the next space, quote or bracket."""
    if key not in text:
        return False
    marks = f"[{re.escape(_EDGE_MARKS)}=]*"
    pattern = rf"(?:^|[{_BETWEEN}:=]){marks}{re.escape(key)}{marks}(?:$|[{_BETWEEN}])"
    return re.search(pattern, text) is not None


def _origins(trust: Trust, spec: ToolSpec) -> tuple[str, ...]:
    if trust is Trust.UNTRUSTED:
        return ("untrusted",)
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
    if isinstance(value, dict):
        for name, item in value.items():
            field = fields.get(name)
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
    if type_.name is TypeName.DECIMAL and isinstance(leaf, str) and _NUMBER.match(leaf):
        return Decimal(leaf)
    return leaf
