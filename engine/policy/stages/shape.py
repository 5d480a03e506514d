"""Owns the second stage: every file against the shape of its document type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from engine.domain.diagnostics import Diagnostic, suggest
from engine.policy.codes import finding
from engine.policy.documents.base import Faults, Part, check, collecting
from engine.policy.documents.kinds import check_overlay, check_policy, check_test, check_tools
from engine.policy.documents.overlay import OverlayDocument
from engine.policy.documents.policy import PolicyDocument
from engine.policy.documents.test import TestDocument
from engine.policy.documents.tools import ToolsDocument
from engine.policy.model import Model
from engine.policy.nodes import Scalar
from engine.policy.source import Document

DOCUMENTS: Final[Mapping[str, type[Part]]] = {
    "policy/v1": PolicyDocument,
    "tools/v1": ToolsDocument,
    "overlay/v1": OverlayDocument,
    "test/v1": TestDocument,
}
SCRIPT: Final = "script/v1"
"""What a scripted model plays: its adapter reads it, a linter checks no more than its YAML."""
_ELSEWHERE: Final[Mapping[str, str]] = {
    SCRIPT: "a model plays it: `agentctl run POLICY QUESTION --model scripted/FILE`",
    "project/v1": "it is read from a file named `agentctl.yaml`, and from no other",
}
"""Types of documents that nothing refers to -> where they belong."""
P = TypeVar("P", bound=Part)


def shape(model: Model) -> None:
    model.policy_part = _checked(model, model.file, PolicyDocument, check_policy)
    model.tools_parts = _all(model, model.tool_files, ToolsDocument, check_tools)
    model.overlay_parts = _all(model, model.overlay_files, OverlayDocument, check_overlay)
    model.test_parts = _all(model, model.test_files, TestDocument, check_test)


def written_type(document: Document) -> str | None:
    """What the key `agentctl` says that the document is, whether that is known or not."""
    entry = document.root.entries.get("agentctl") if document.root is not None else None
    word = entry.value.value if entry is not None and isinstance(entry.value, Scalar) else None
    return word if isinstance(word, str) else None


def document_type(document: Document) -> str | None:
    """The same; None if it says nothing that is known."""
    word = written_type(document)
    return word if word in DOCUMENTS else None


def unknown_document(document: Document, wanted: Iterable[str] = DOCUMENTS) -> Diagnostic | None:
    """The finding for a document that is not of a wanted type."""
    known = document_type(document)
    if document.root is None or (known is not None and known in wanted):
        return None
    entry = document.root.entries.get("agentctl")
    options = ", ".join(wanted)
    if entry is None:
        first = next(iter(wanted))
        return finding(
            "Y105", document.top, "the file does not say what it is", f"start it with `agentctl: {first}`"
        )
    written = entry.value.text if isinstance(entry.value, Scalar) else "a list or mapping"
    if known is not None or written in _ELSEWHERE:
        message = f"this is a {written} document"
        help_ = _ELSEWHERE.get(written, f"expected here: {options}")
    else:
        message = f"`{written}` is not a document type"
        help_ = suggest(written, wanted, f"write one of: {options}")
    return finding("Y105", entry.value.location, message, help_)


def check_document(document: Document, kind: type[P], extra: Callable[[P], None], faults: Faults) -> P | None:
    """One document against its shape; findings go to `faults`."""
    if document.root is None:
        return None
    part = check(kind, document.root, faults)
    if part is not None:
        with collecting(faults):
            extra(part)
    return part


def _all(model: Model, names: list[str], kind: type[P], extra: Callable[[P], None]) -> dict[str, P]:
    found = {name: _checked(model, name, kind, extra) for name in names}
    return {name: part for name, part in found.items() if part is not None}


def _checked(model: Model, name: str, kind: type[P], extra: Callable[[P], None]) -> P | None:
    document = model.documents[name]
    wanted = [word for word, known in DOCUMENTS.items() if known is kind]
    wrong = unknown_document(document, wanted)
    if wrong is not None:
        model.add(wrong.code, wrong.location, wrong.message, wrong.help)
        model.unread |= kind in (ToolsDocument, OverlayDocument)
        return None
    return check_document(document, kind, extra, model.faults)
