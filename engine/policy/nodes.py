"""Owns the parsed YAML file: a tree whose every key and value knows its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, TypeAlias

from engine.domain.canonical import Json
from engine.domain.diagnostics import Location
from engine.policy.places import LineMap, positions
from engine.policy.scalars import Plain

Path: TypeAlias = Sequence[str | int]
LOST: Final = "\0lost"
"""The value of a scalar that could not be read; it is left out of the tree."""


class Source:
    """The text that a tree was read from."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    @cached_property
    def lines(self) -> LineMap:
        return LineMap(self.text)

    def location(self, start: int, end: int | None = None) -> Location:
        """From code-point indexes of the text; the end is kept only if it is on the same line."""
        line, column = self.lines.at(start)
        if end is None or end <= start:
            return Location(self.name, line, column)
        end_line, end_column = self.lines.at(end)
        return Location(self.name, line, column, end_column if end_line == line else None)


@dataclass(slots=True, eq=False)
class Scalar:
    source: Source
    start: int
    end: int
    value: Plain
    text: str
    """The content without quotes and escapes; `value` is what it means."""
    style: str | None
    """As YAML events say it: None or "" for plain."""
    label: Scalar | None = None
    """The key that it stands under; None for list items and keys."""

    @property
    def location(self) -> Location:
        if self.start == self.end and self.label is not None:
            return self.label.location
        return self.source.location(self.start, self.end)

    def part(self, start: int, end: int) -> Location:
        """The place of a stretch of the value, in code points."""
        found = positions(self.source.text, self.start, self.end, self.style, self.text)
        last = len(found) - 1
        first = min(max(start, 0), last)
        until = found[min(end, last) - 1] + 1 if end > first else found[first] + 1
        return self.source.location(found[first], until)


@dataclass(slots=True, eq=False)
class Items:
    source: Source
    start: int
    end: int
    items: list[Node] = field(default_factory=list)
    label: Scalar | None = None
    lost: bool = False
    """An item is written that could not be read: the fault has been reported."""

    @property
    def location(self) -> Location:
        return self.label.location if self.label else self.source.location(self.start, self.end)


@dataclass(slots=True, eq=False)
class Entry:
    key: Scalar
    value: Node
    invented: bool = False
    """Nobody wrote it: it stands for what is missing."""


@dataclass(slots=True, eq=False)
class Table:
    """A YAML mapping; its keys are text, the first of two equal ones counts."""

    source: Source
    start: int
    end: int
    entries: dict[str, Entry] = field(default_factory=dict)
    label: Scalar | None = None
    lost: set[str] = field(default_factory=set)
    """Keys that are written but whose value could not be read: the fault has been reported."""

    @property
    def location(self) -> Location:
        """Of its key; of its first key for a list item or a whole file."""
        if self.label is not None:
            return self.label.location
        first = next(iter(self.entries.values()), None)
        return first.key.location if first else self.source.location(self.start, self.end)

    def without(self, key: str) -> Table:
        """The table without a faulty entry, which then counts as lost, not as missing."""
        kept = {name: entry for name, entry in self.entries.items() if name != key}
        return replace(self, entries=kept, lost={*self.lost, key})

    def having(self, key: str, value: Node) -> Table:
        entry = Entry(self.entries[key].key, value, self.entries[key].invented)
        return replace(self, entries={**self.entries, key: entry})

    def invent(self, key: str, value: Json) -> Table:
        """The table with a value that nobody wrote; its place is that of the table."""
        return replace(self, entries={**self.entries, key: self._invented(key, value)})

    def _invented(self, key: str, value: Json) -> Entry:
        name = Scalar(self.source, self.start, self.start, key, key, None, self.label)
        return Entry(name, _invented(value, self), invented=True)


Node: TypeAlias = Scalar | Items | Table


class Data(dict[str, Any]):
    """A mapping as plain data that remembers its node."""

    __slots__ = ("node",)
    node: Table


def data(node: Node) -> Any:
    """Plain data of a tree: Data, list, and scalars."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Items):
        return [data(item) for item in node.items]
    found = Data({key: data(entry.value) for key, entry in node.entries.items()})
    found.node = node
    return found


def plain(value: Any) -> Any:
    """The same data in plain dicts and lists: what a document keeps as `Any` still remembers its nodes."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def walk(node: Node, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    """Every node with its path, parents first, in file order."""
    yield path, node
    if isinstance(node, Table):
        for key, entry in node.entries.items():
            yield from walk(entry.value, (*path, key))
    elif isinstance(node, Items):
        for index, item in enumerate(node.items):
            yield from walk(item, (*path, index))


def find(node: Node, path: Path) -> tuple[Node, Scalar | None, bool]:
    """The nearest node to a path, its key if it has one, and whether the whole path exists."""
    key: Scalar | None = node.label
    for step in path:
        if isinstance(node, Table) and str(step) in node.entries:
            entry = node.entries[str(step)]
            node, key = entry.value, entry.key
        elif isinstance(node, Items) and isinstance(step, int) and 0 <= step < len(node.items):
            node, key = node.items[step], None
        else:
            return node, key, False
    return node, key, True


def _invented(value: Json, near: Table) -> Node:
    if isinstance(value, dict):
        table = Table(near.source, near.start, near.start, label=near.label)
        for key, item in value.items():
            table.entries[key] = near._invented(key, item)
        return table
    if isinstance(value, list):
        items = [_invented(item, near) for item in value]
        return Items(near.source, near.start, near.start, items, near.label)
    return Scalar(near.source, near.start, near.start, value, str(value), None, near.label)
