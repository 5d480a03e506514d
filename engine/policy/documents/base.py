"""Owns what every part of a document has: its places, and a check that reports a fault and goes on without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from engine.domain.canonical import Json
from engine.domain.diagnostics import Diagnostic, Location, suggest
from engine.policy.codes import finding
from engine.policy.documents.forms import form_at
from engine.policy.documents.wording import advice, wording
from engine.policy.nodes import Data, Items, Node, Scalar, Table, data, find

_DROPPED = "part_dropped"


@dataclass(frozen=True, slots=True)
class Exact:
    """The rule that names a fault of shape more exactly than Y201-Y205."""

    code: str
    message: str
    help: str


@dataclass(slots=True)
class Faults:
    """Collects findings; the same finding at the same place counts once."""

    found: dict[tuple[str, Location, str], Diagnostic] = field(default_factory=dict)

    def add(self, code: str, place: Location, message: str, help_: str) -> None:
        self.found.setdefault((code, place, message), finding(code, place, message, help_))

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.found.values())


_faults: ContextVar[Faults] = ContextVar("faults")


@contextmanager
def collecting(faults: Faults) -> Iterator[Faults]:
    token = _faults.set(faults)
    try:
        yield faults
    finally:
        _faults.reset(token)


_JUDGES = frozenset(
    """
    llm_judge judge must_mention must_not_mention must_contain contains mentions regex matches keywords stop_words
    blocked_words banned_words forbidden_words blocked_phrases sentiment tone topic topics classifier classify
    moderation guardrail guardrails semantic semantics similarity confidence min_confidence toxicity pii_detector
    hallucination groundedness intent intents answer_complete is_complete relevance
    """.split()  # noqa: SIM905 - sixty quoted words would be harder to read
)


def judge(key: str) -> Exact | None:
    """The rule for a key that asks a model or a pattern to judge meaning."""
    if key not in _JUDGES:
        return None
    return Exact(
        "S303",
        f"`{key}` would judge the meaning of text",
        "remove it: a review is a step that somebody owns, whose verdict arrives as app state",
    )


class Part(BaseModel):
    """A mapping of a document.

    Checking one reports every fault to the collector and removes it, so that what is left can be read on: an
    optional key with a fault is gone, a required one has its placeholder, and a part without placeholder for
    what is missing is dropped from its list or mapping.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        defer_build=True,
        ignored_types=(Exact,),
        hide_input_in_errors=True,
    )

    called: ClassVar[str] = "the document"
    """What a message calls it."""
    placeholders: ClassVar[Mapping[str, Json]] = {}
    exact_missing: ClassVar[Mapping[str, Exact]] = {}
    exact_unknown: ClassVar[Mapping[str, Exact]] = {}
    exact_bad: ClassVar[Mapping[tuple[str, Any], Exact]] = {}
    """(key, value as written) -> the rule for it."""
    blank_means: ClassVar[frozenset[str]] = frozenset()
    """Keys in which an explicit null is a value."""

    _node: Table = PrivateAttr()

    @model_validator(mode="wrap")
    @classmethod
    def _read_on(cls, value: Any, handler: Callable[[Any], Any]) -> Any:
        if not isinstance(value, Data):
            return handler(value)
        table = _with_required(cls, _without_unknown(cls, _without_blanks(cls, value.node)))
        for _ in range(50):
            try:
                part = handler(value if table is value.node else data(table))
            except ValidationError as error:
                table = _without_faults(cls, table, error)
            else:
                part._node = table
                return part
        raise PydanticCustomError(_DROPPED, "dropped")  # pragma: no cover - each round removes a key

    @property
    def node(self) -> Table:
        return self._node

    @property
    def here(self) -> Location:
        """Of the key it stands under, or of its first key."""
        return self._node.location

    def place(self, *path: str | int) -> Location:
        """The place of a value below this part; of the nearest part that is written, if it is not."""
        node, key, whole = find(self._node, path)
        if not whole or (isinstance(node, Scalar) and node.start == node.end):
            return key.location if key is not None else node.location
        if isinstance(node, Scalar):
            return node.location
        return node.source.location(node.start, node.end) if node.end > node.start else node.location

    def key_place(self, *path: str | int) -> Location:
        """The place of the key of a value below this part; of the value where it is an item of a list."""
        node, key, _ = find(self._node, path)
        return key.location if key is not None else node.location

    def place_within(self, start: int, end: int, *path: str | int) -> Location:
        """The place of a stretch of a text value, in code points of the value."""
        node, _, whole = find(self._node, path)
        return node.part(start, end) if whole and isinstance(node, Scalar) else self.place(*path)

    def is_written(self, key: str) -> bool:
        """True if the key is in the file with a value that could be read."""
        entry = self._node.entries.get(key)
        return entry is not None and not entry.invented

    def is_lost(self, key: str) -> bool:
        """True if the key is in the file, but its fault has been reported and its value, or a part of it, is gone."""
        entry = self._node.entries.get(key)
        return key in self._node.lost or (
            entry is not None and isinstance(entry.value, Items) and entry.value.lost
        )


P = TypeVar("P", bound=Part)


def check(kind: type[P], root: Table, faults: Faults) -> P | None:
    """Checks a document; None if nothing is left of it."""
    with collecting(faults):
        try:
            return kind.model_validate(data(root))
        except ValidationError:
            return None


def report(code: str, place: Location, message: str, help_: str) -> None:
    """For validators of parts: adds a finding to the check that is under way."""
    _faults.get().add(code, place, message, help_)


# --- one round ---------------------------------------------------------------------------------------------


def _keys(cls: type[Part]) -> dict[str, str]:
    """Key as written -> attribute."""
    return {info.alias or name: name for name, info in cls.model_fields.items()}


def _without_blanks(cls: type[Part], table: Table) -> Table:
    for name, entry in table.entries.items():
        value = entry.value
        if isinstance(value, Scalar) and value.value is None and not (value.text and name in cls.blank_means):
            report("Y205", entry.key.location, f"`{name}` has no value", "give it one, or delete the key")
            table = table.without(name)
    return table


def _without_unknown(cls: type[Part], table: Table) -> Table:
    known = _keys(cls)
    if cls.model_config.get("extra") == "allow":
        return table
    for name, entry in table.entries.items():
        if name in known:
            continue
        exact = cls.exact_unknown.get(name) or judge(name)
        if exact is not None:
            report(exact.code, entry.key.location, exact.message, exact.help)
        else:
            help_ = suggest(name, known, f"{cls.called} has: {', '.join(known)}")
            report("Y201", entry.key.location, f"unknown key `{name}`", help_)
        table = table.without(name)
    return table


def _with_required(cls: type[Part], table: Table) -> Table:
    for key, name in _keys(cls).items():
        if not cls.model_fields[name].is_required() or key in table.entries:
            continue
        if key not in table.lost:
            _missing(cls, table, key)
        if key not in cls.placeholders:
            raise PydanticCustomError(_DROPPED, "dropped")
        table = table.invent(key, cls.placeholders[key])
    return table


def _missing(cls: type[Part], table: Table, key: str) -> None:
    if any(near_miss(word, key) for word in table.lost):
        return
    exact = cls.exact_missing.get(key)
    if exact is not None:
        report(exact.code, table.location, exact.message, exact.help)
    else:
        report("Y202", table.location, f"{cls.called} needs the key `{key}`", f"add `{key}:`")


def near_miss(word: str, key: str) -> bool:
    """True if an unknown key was meant to be this one, so that its absence needs no second finding."""
    return suggest(word, [key], "") != ""


def _without_faults(cls: type[Part], table: Table, error: ValidationError) -> Table:
    faults = error.errors(include_url=False, include_context=True, include_input=False)
    for fault in faults:
        if not fault["loc"]:
            raise PydanticCustomError(_DROPPED, "dropped")
        if fault["type"] != _DROPPED:
            _bad(cls, table, fault)
    for fault in reversed(faults):  # later items first, so that the indexes of earlier ones stay right
        table = _cut(table, fault["loc"])
    return _with_required(cls, table)


def _bad(cls: type[Part], table: Table, fault: Any) -> None:
    key = str(fault["loc"][0])
    node, label, _ = _locate(table, fault["loc"])
    place = node.location if isinstance(node, Scalar) or label is None else label.location
    shown = node.value if isinstance(node, Scalar) else None
    exact = cls.exact_bad.get((key, shown)) or cls.exact_bad.get((key, ...))
    if exact is not None:
        report(exact.code, place, exact.message, exact.help)
        return
    subject = label.text if label is not None else key
    code, message = wording(subject, shown, node, fault)
    report(code, place, message, advice(shown, node, fault, form_at(cls, fault["loc"], shown)))


def _locate(table: Table, steps: tuple[str | int, ...]) -> tuple[Node, Scalar | None, bool]:
    """Follows a pydantic location; steps that name a branch of a union or a key check are passed over."""
    node: Node = table
    label: Scalar | None = table.label
    for step in steps:
        found, key, whole = find(node, [step])
        if whole:
            node, label = found, key
        elif step == "[key]" and label is not None:
            return label, label, True
    return node, label, True


def _cut(table: Table, steps: tuple[str | int, ...]) -> Table:
    """The table without the value at a location: the innermost entry or item that the location reaches."""
    key = str(steps[0])
    if key not in table.entries:
        return table.without(key)
    smaller = _smaller(table.entries[key].value, steps[1:])
    return table.without(key) if smaller is None else table.having(key, smaller)


def _smaller(node: Node, steps: tuple[str | int, ...]) -> Node | None:
    for position, step in enumerate(steps):
        rest = steps[position + 1 :]
        if isinstance(node, Table) and str(step) in node.entries and "[key]" not in rest[:1]:
            return _cut(node, (step, *rest))
        if isinstance(node, Table) and str(step) in node.entries:
            return node.without(str(step))
        if isinstance(node, Items) and isinstance(step, int) and step < len(node.items):
            smaller = _smaller(node.items[step], rest)
            kept = [smaller if at == step else item for at, item in enumerate(node.items)]
            left = [item for item in kept if item is not None]
            return Items(
                node.source, node.start, node.end, left, node.label, len(left) < len(kept) or node.lost
            )
    return None
