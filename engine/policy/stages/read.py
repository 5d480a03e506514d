"""Owns the first stage: finding and parsing every file that a policy is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.domain.canonical import digest
from engine.domain.diagnostics import Location
from engine.domain.errors import SourceError
from engine.policy.files import beside
from engine.policy.model import Model, Prompt
from engine.policy.nodes import Items, Node, Scalar, Table
from engine.policy.source import Document, parse

_KINDS = {"tool_specs": "tools/v1", "overlays": "overlay/v1", "tests": "test/v1"}
"""Key of a policy that lists files -> the kind of document they are."""
PIN: Final = 12
"""Hexadecimal digits of a digest that are enough to pin a file."""


def read(model: Model) -> None:
    """Reads the policy and what it refers to. Raises SourceError only for the policy itself."""
    document = model.documents[model.file] = parse(model.file, model.files.read(model.file))
    if document.root is None:
        return
    root = document.root
    model.tool_files = list(_read_all(model, root, "tool_specs"))
    model.overlay_files = list(_read_all(model, root, "overlays"))
    _read_extra(model)
    if model.with_tests:
        model.test_files = list(_read_all(model, root, "tests"))
    _read_prompt(model, root)
    _read_templates(model, root)


def _read_all(model: Model, root: Table, key: str) -> Iterator[str]:
    entry = root.entries.get(key)
    if entry is None or not isinstance(entry.value, Items):
        model.unread |= key == "tool_specs" or (key == "overlays" and entry is not None)
        return
    for item in entry.value.items:
        if not isinstance(item, Scalar) or not isinstance(item.value, str):
            model.unread |= key != "tests"
            continue
        written, _, pin = item.value.partition("@sha256:") if key == "overlays" else (item.value, "", "")
        name = beside(model.file, written)
        if name == model.file:
            model.add(
                "R204", item.location, f"`{item.value}` is this policy itself", f"name a {_KINDS[key]} file"
            )
        elif name in model.documents:
            model.add("R204", item.location, f"`{item.value}` is listed already", "list each file once")
        elif _read_one(model, name, written, item.location, key) is not None:
            if pin and name not in model.extra_overlays:
                _pinned(model, model.documents[name], pin, item)
            yield name


def _pinned(model: Model, document: Document, pin: str, item: Scalar) -> None:
    """The digest that a policy states is that of the file, or the file is another one than was meant."""
    found = digest(document.source.text)
    if len(pin) < PIN or not found.startswith(pin):
        model.add("Y205", item.location, f"`{document.name}` has the digest sha256:{found[:PIN]}…, not sha256:{pin}",
                  f"look at what changed; then write @sha256:{found}")  # fmt: skip


def _read_extra(model: Model) -> None:
    """Overlays that the deployment adds; one that the policy names too counts once."""
    for name in model.extra_overlays:
        if name in model.overlay_files:
            continue
        if name in model.documents:
            raise SourceError(
                f"`{name}` is no overlay: it is the policy, or one of its other files",
                remedy="name an overlay/v1 file",
            )
        model.documents[name] = parse(name, model.files.read(name), _KINDS["overlays"])
        model.overlay_files.append(name)


def _read_one(model: Model, name: str, written: str, place: Location, key: str) -> Document | None:
    needed = key != "tests"
    try:
        text = model.files.read(name)
    except SourceError as error:
        missing = not model.files.exists(name)
        message = f"there is no file `{written}`" if missing else error.message
        help_ = f"looked for `{name}`: create it, or mend the path" if missing else error.remedy
        model.add("R210", place, message, help_)
        model.unread |= needed
        return None
    document = model.documents[name] = parse(name, text, _KINDS[key])
    model.unread |= needed and document.root is None
    return document


def _read_prompt(model: Model, root: Table) -> None:
    model.prompt = _read_text(model, _inner(root, "model", "prompt", "system"))


def _read_templates(model: Model, root: Table) -> None:
    outputs = _inner(root, "outputs")
    for name, entry in outputs.entries.items() if isinstance(outputs, Table) else ():
        for form in ("markdown", "html") if isinstance(entry.value, Table) else ():
            text = _read_text(model, _inner(entry.value, "template", form))
            if text is not None:
                model.templates[name, form] = text


def _read_text(model: Model, node: Node | None) -> Prompt | None:
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return None
    name = beside(model.file, node.value)
    try:
        return Prompt(name, model.files.read(name))
    except SourceError as error:
        message = error.message if model.files.exists(name) else f"there is no file `{node.value}`"
        model.add("R210", node.location, message, f"looked for `{name}`: create it, or mend the path")
        return None


def _inner(node: Node, *keys: str) -> Node | None:
    for key in keys:
        entry = node.entries.get(key) if isinstance(node, Table) else None
        if entry is None:
            return None
        node = entry.value
    return node
