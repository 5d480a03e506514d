"""Owns the reading of YAML under the strict profile of the language: text to a tree with places, and its faults.

UTF-8, YAML 1.2 booleans and numbers, one document; duplicate keys, anchors, aliases, merge keys and tags are
refused, and so is a plain scalar that an older YAML reader would take for another value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

import yaml

from engine.domain.diagnostics import Diagnostic, Location
from engine.policy.codes import finding
from engine.policy.nodes import LOST, Data, Entry, Items, Node, Scalar, Source, Table, data
from engine.policy.scalars import other_reading, read_plain

_EventParser: Any
try:
    _EventParser = import_module("yaml._yaml").CParser
except ImportError:  # PyYAML was built without libyaml
    _EventParser = yaml.Loader

MAX_DEPTH: Final = 32
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_STARTS_WITH_TAG: Final = re.compile(r"^\s*(?:-\s+)?(?:[\w.-]+:\s+|\{.*?:\s+|- )(!)")
_QUOTE: Final = 'put the value in double quotes, as in `when: "…"`'
_NAMED_TAG: Final = re.compile(r"![^\s,\]}]*")


@dataclass(slots=True)
class Document:
    """One file as read. `root` is None if there is nothing that can be read on."""

    source: Source
    root: Table | None
    faults: list[Diagnostic] = field(default_factory=list)
    scalars: list[tuple[int, int]] = field(default_factory=list)
    """Spans of quoted and block scalars, in which a `#` is no comment."""

    @property
    def name(self) -> str:
        return self.source.name

    def data(self) -> Data:
        if self.root is None:
            raise ValueError(f"{self.name} was not read")
        return data(self.root)  # type: ignore[no-any-return]

    @property
    def top(self) -> Location:
        return self.root.location if self.root is not None else Location(self.name, 1, 1)


def parse(name: str, text: str, wanted: str = "policy/v1") -> Document:
    """Reads one YAML file; never raises for bad text, all its faults are in the document, in file order.

    `wanted` is the kind of document that the help line names where there is none.
    """
    start = f"start it with `agentctl: {wanted}`"
    reader = _Reader(Source(name, text))
    reader.read()
    root = reader.root
    if root is not None and not isinstance(root, Table):
        reader.fault("Y105", root.start, None, "the file is not a mapping", start)
    elif root is None and not reader.faults:
        reader.fault("Y105", 0, None, "the file holds no document", start)
    reader.faults.sort(key=Diagnostic.sort_key)
    return Document(reader.source, root if isinstance(root, Table) else None, reader.faults, reader.scalars)


def _is(event: Any, kind: type) -> bool:
    """isinstance, without narrowing: the stubs say that an event may have no marks."""
    return isinstance(event, kind)


class _Stop(Exception):
    """The rest of the file cannot be read."""


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.root: Node | None = None
        self.faults: list[Diagnostic] = []
        self.scalars: list[tuple[int, int]] = []
        self._parser: Any = None

    def fault(self, code: str, start: int, end: int | None, message: str, help_: str) -> None:
        self.faults.append(finding(code, self.source.location(start, end), message, help_))

    def read(self) -> None:
        bad = _CONTROL.search(self.source.text)
        if bad:
            self.fault("Y101", bad.start(), bad.end(), f"the file has the control character {bad[0]!a}",
                       "delete it, or write it as an escape in double quotes")  # fmt: skip
            return
        if self.source.text.startswith("\ufeff"):
            self.fault("Y101", 0, 1, "the file starts with a byte order mark", "save it as UTF-8 without one")
            return
        self._parser = _EventParser(self.source.text)
        try:
            self._documents()
        except yaml.YAMLError as error:
            self.root = None
            self._syntax(error)
        except _Stop:
            self.root = None

    def _documents(self) -> None:
        event: Any = self._next()
        while not _is(event, yaml.StreamEndEvent):
            if _is(event, yaml.DocumentStartEvent):
                if self.root is not None:
                    self.fault("Y104", event.start_mark.index, event.end_mark.index,
                               "a second document starts in the file", "one document per file: split it")  # fmt: skip
                    raise _Stop
                self.root = self._node(self._next(), None, 0)
                if self._is_nothing(self.root):
                    self.root = None
            event = self._next()

    @staticmethod
    def _is_nothing(node: Node) -> bool:
        return isinstance(node, Scalar) and node.start == node.end

    def _next(self) -> Any:
        return self._parser.get_event()

    # --- nodes

    def _node(self, event: Any, label: Scalar | None, depth: int, *, is_key: bool = False) -> Node:
        start, end = event.start_mark.index, event.end_mark.index
        if depth > MAX_DEPTH:
            self.fault("Y101", start, None, f"nested deeper than {MAX_DEPTH} levels", "flatten the file")
            raise _Stop
        if isinstance(event, yaml.AliasEvent):
            self.fault("Y104", start, end, f"`*{event.anchor}` is an alias", "write the value out")
            return Scalar(self.source, start, end, LOST, "", None, label)
        if event.anchor is not None:
            at = self._anchor_start(start, event.anchor)
            self.fault("Y104", at, at + len(event.anchor) + 1, f"`&{event.anchor}` is an anchor",
                       "delete it and write the value out where it is needed")  # fmt: skip
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, label, is_key)
        if event.tag is not None:
            self._tag(start, f"`{label.text}`" if label else "the value", empty=False)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._items(start, label, depth)
        return self._table(start, label, depth)

    def _items(self, start: int, label: Scalar | None, depth: int) -> Items:
        found = Items(self.source, start, start, label=label)
        event: Any = self._next()
        while not _is(event, yaml.SequenceEndEvent):
            item = self._node(event, None, depth + 1)
            if not (isinstance(item, Scalar) and item.value is LOST):
                found.items.append(item)
            event = self._next()
        found.end = event.end_mark.index
        return found

    def _table(self, start: int, label: Scalar | None, depth: int) -> Table:
        found = Table(self.source, start, start, label=label)
        event: Any = self._next()
        while not _is(event, yaml.MappingEndEvent):
            key = self._node(event, None, depth + 1, is_key=True)
            if isinstance(key, Scalar):
                value = self._node(self._next(), key, depth + 1)
                self._add(found, key, value)
            else:
                self.fault("Y101", key.start, None, "a key must be text", "write a name as the key")
                self._node(self._next(), None, depth + 1)
            event = self._next()
        found.end = event.end_mark.index
        return found

    def _add(self, table: Table, key: Scalar, value: Node) -> None:
        if key.text == "<<" and not key.style:
            self.fault("Y104", key.start, key.end, "`<<` merges another mapping", "write its keys out here")
            return
        first = table.entries.get(key.text)
        if first is not None:
            line = first.key.location.line
            self.fault(
                "Y103", key.start, key.end, f"`{key.text}` is already given in line {line}", "keep one"
            )
            return
        if isinstance(value, Scalar) and value.value is LOST:
            table.lost.add(key.text)
        else:
            table.entries[key.text] = Entry(key, value)

    def _scalar(self, event: Any, label: Scalar | None, is_key: bool) -> Scalar:
        start, end, style = event.start_mark.index, event.end_mark.index, event.style or None
        text: str = event.value
        if style:
            self.scalars.append((start, end))
        if event.tag is not None:
            self._tag(start, f"`{label.text}`" if label else "the value", empty=not text)
            return Scalar(self.source, start, end, LOST, text, style, label)
        value = text if style else read_plain(text)
        found = Scalar(self.source, start, end, value, text, style, label)
        if not style and not is_key:
            self._ambiguous(found)
        return found

    def _ambiguous(self, scalar: Scalar) -> None:
        other = other_reading(scalar.text, scalar.value)
        if other is None:
            return
        here = "text" if isinstance(scalar.value, str) else f"the number {scalar.value}"
        self.fault("Y205", scalar.start, scalar.end,
                   f"`{scalar.text}` is {here} in YAML 1.2 and {other} in YAML 1.1",
                   f'write "{scalar.text}" in quotes if text is meant, else true, false or a plain number')  # fmt: skip

    def _tag(self, start: int, what: str, *, empty: bool = True) -> None:
        match = _NAMED_TAG.match(self.source.text, start)
        if match is None:
            at = self.source.text.rfind("!", 0, start + 1)
            match = _NAMED_TAG.match(self.source.text, max(at, 0))
        tag, at = (match[0], match.start()) if match else ("!", start)
        line_end = self.source.text.find("\n", at)
        line = self.source.text[at : line_end if line_end >= 0 else None].rstrip()
        effect = f"{what} is empty" if empty else f"{what} is not what it looks like"
        self.fault("Y102", at, at + len(tag), f"`{tag}` was read as a YAML tag, so {effect}",
                   f'put the whole value in quotes: "{line}"')  # fmt: skip

    def _anchor_start(self, start: int, anchor: str) -> int:
        found = self.source.text.find(f"&{anchor}", start)
        behind = self.source.text.rfind(f"&{anchor}", 0, start + 1)
        return behind if behind >= 0 and (found != start) else start

    # --- syntax errors

    def _syntax(self, error: yaml.YAMLError) -> None:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        if getattr(error, "context", None) == "while scanning a simple key":
            mark = error.context_mark  # type: ignore[attr-defined]  # the line of the key, not the one after it
        index = min(mark.index, max(len(self.source.text) - 1, 0)) if mark is not None else 0
        line_start = self.source.text.rfind("\n", 0, index) + 1
        line_end = self.source.text.find("\n", line_start)
        line = self.source.text[line_start : line_end if line_end >= 0 else None]
        tagged = _STARTS_WITH_TAG.match(line)
        if tagged and tagged.start(1) <= index - line_start:
            self._tag(line_start + tagged.start(1), "the value")
            return
        problem = getattr(error, "problem", None) or str(error)
        context = getattr(error, "context", None)
        message = f"{context}: {problem}" if context else str(problem)
        self.fault(
            "Y101",
            index,
            None,
            f"the file is not YAML: {message}",
            _advice(line, index - line_start, message),
        )


def _advice(line: str, column: int, message: str) -> str:
    if line[:column].strip() == "" and "\t" in line[: column + 1]:
        return "indent with spaces; YAML refuses tabs"
    if "mapping values are not allowed" in message or "did not find expected key" in message:
        head = line.split(":", 1)
        if len(head) == 2 and head[1].strip() and line.index(":") < column:
            return f"quote the value: `{head[0].strip()}: {_quoted(head[1].strip())}`"
        return "check the indentation of this line and of the one above"
    if "alias" in message:
        return 'a value that starts with `*` needs quotes: "*"'
    if "end of stream" in message or "expected ',' or" in message:
        return "close the quote or bracket that is still open"
    if "could not find expected ':'" in message:
        return "write a colon and a blank behind the key: `key: value`"
    if "expected '-' indicator" in message:
        return "give this line the indentation of the lines above it that it belongs to"
    if "<document start>" in message:
        return "is this a YAML file? One of ours starts with `agentctl: policy/v1` or the like"
    return _QUOTE


def _quoted(value: str) -> str:
    """The value in quotes that do not end inside it; quotes that were meant to stand around it are not doubled."""
    inner = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
    if '"' in inner and "'" not in inner:
        return f"'{inner}'"
    return '"{}"'.format(inner.replace('"', "'"))
