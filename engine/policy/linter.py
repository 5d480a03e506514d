"""Owns linting: which files are checked how, every rule over them, suppressions and levels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TypeVar

from engine.domain.diagnostics import Confidence, Diagnostic, Location, Severity
from engine.policy.catalogue import load_rules
from engine.policy.codes import finding
from engine.policy.compiler import compile_policy
from engine.policy.documents.base import Part
from engine.policy.documents.kinds import check_overlay, check_test, check_tools
from engine.policy.documents.overlay import OverlayDocument
from engine.policy.documents.project import FILE_NAME, LevelPart, check_project
from engine.policy.documents.test import TestDocument
from engine.policy.documents.tools import ToolsDocument
from engine.policy.files import DiskFiles, Files, NotText, declared
from engine.policy.model import Model
from engine.policy.source import Document, parse
from engine.policy.stages.references import references
from engine.policy.stages.shape import (
    SCRIPT,
    check_document,
    document_type,
    unknown_document,
    written_type,
)
from engine.policy.stages.types import types
from engine.policy.suppressions import Suppression, read_suppressions, silence
from engine.policy.written import is_limited

P = TypeVar("P", bound=Part)
_WITHOUT_SOLVER: Final = (
    "conditions that compare facts with each other were judged by finite cases only, as the solver is not "
    "installed: pip install 'agentctl[prove]'"
)
_SKIPPED: Final = frozenset({"node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class LintReport:
    """What was found, and how much was looked at."""

    diagnostics: tuple[Diagnostic, ...]
    """Sorted by file and place; none that a suppression or a level of `agentctl.yaml` took away."""
    silenced: tuple[Diagnostic, ...]
    files: int
    rules: int
    """Rules of policies and overlays."""
    conditions: int
    texts: Mapping[str, str] = field(default_factory=dict)
    """File -> its text, for printing the lines."""
    notes: tuple[str, ...] = ()
    """What the report as a whole is limited by."""

    def count(self, severity: Severity, *, certain: bool = False) -> int:
        """How many findings have a severity; with `certain`, without those that are only likely."""
        return sum(
            found.severity is severity and not (certain and found.confidence is Confidence.LIKELY)
            for found in self.diagnostics
        )


@dataclass(slots=True)
class _Work:
    files: Files
    today: date
    audit: bool
    found: dict[Diagnostic, None] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    rules: dict[tuple[str, int, int], None] = field(default_factory=dict)
    conditions: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    limited: bool = False
    """A question about conditions stayed open for want of the solver."""


def lint(
    paths: Sequence[str | Path],
    *,
    levels: Mapping[str, LevelPart] | None = None,
    today: date | None = None,
    audit: bool = False,
    files: Files | None = None,
) -> LintReport:
    """Checks files and folders (every `*.yaml` and `*.yml` below them), each by its document type.

    A policy is checked with its tools, overlays and tests; a file that a policy covers is not checked again
    alone. `audit` ignores suppressions and levels. Raises SourceError for a path that cannot be read.
    """
    work = _Work(files or DiskFiles(), today or date.today(), audit)
    names = list(dict.fromkeys(name for path in paths for name in _names(str(path))))
    texts = {name: text for name in names if (text := _text(work, name)) is not None}
    for name, text in texts.items():
        if declared(text) == "policy/v1":
            _policy(work, name)
    for name, text in texts.items():
        if name not in work.documents and name not in work.texts:
            _alone(work, name, text)
    return _report(work, levels or {})


def _text(work: _Work, name: str) -> str | None:
    """None for a file whose bytes are no text: that is a finding, and the other files are still checked."""
    try:
        return work.files.read(name)
    except NotText as error:
        _add(work, [finding("Y101", Location(name, 1, 1), error.message, error.remedy)])
        work.texts[name] = ""
        return None


def _names(path: str) -> Iterator[str]:
    name = os.path.normpath(path)
    if not os.path.isdir(name):
        yield name
        return
    for folder, folders, inside in os.walk(name):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _SKIPPED)
        for each in sorted(inside):
            path = os.path.normpath(os.path.join(folder, each))
            if each.endswith((".yaml", ".yml")) and (os.path.isfile(path) or not os.path.exists(path)):
                yield path  # no pipes and devices; a link to nothing is told by the reading of it


# --- one file ---------------------------------------------------------------------------------------------


def _policy(work: _Work, name: str) -> None:
    model = compile_policy(name, work.files, with_tests=True).model
    _take(work, model)
    if model.prompt is not None:
        work.texts[model.prompt.name] = model.prompt.text


def _alone(work: _Work, name: str, text: str) -> None:
    if os.path.basename(name) == FILE_NAME:
        _add(work, check_project(name, text)[1])
        work.texts[name] = text
        return
    document = parse(name, text)
    model = Model(work.files, name, unread=True, documents={name: document})
    said, kind = written_type(document), document_type(document)
    wrong = None if said == SCRIPT else unknown_document(document)
    if kind == "policy/v1":
        _policy(work, name)
        return
    if wrong is not None:
        model.add(wrong.code, wrong.location, wrong.message, wrong.help)
    elif kind == "tools/v1":
        _kept(model.tools_parts, name, check_document(document, ToolsDocument, check_tools, model.faults))
    elif kind == "overlay/v1":
        _kept(
            model.overlay_parts, name, check_document(document, OverlayDocument, check_overlay, model.faults)
        )
    elif kind == "test/v1":
        _kept(model.test_parts, name, check_document(document, TestDocument, check_test, model.faults))
    references(model)
    types(model)
    _take(work, model)


def _kept(parts: dict[str, P], name: str, part: P | None) -> None:
    if part is not None:
        parts[name] = part


def _take(work: _Work, model: Model) -> None:
    _add(work, model.diagnostics())
    for rule in load_rules():
        if rule.check is not None:
            _add(work, rule.check(model))
    work.limited = work.limited or is_limited(model)
    work.documents.update(model.documents)
    work.conditions += model.conditions_seen
    for part in (model.policy_part, *model.overlay_parts.values()):
        for item in part.permissions if part is not None else ():
            work.rules[item.here[:3]] = None


def _add(work: _Work, found: Iterable[Diagnostic]) -> None:
    work.found.update(dict.fromkeys(found))


# --- the report -------------------------------------------------------------------------------------------


def _report(work: _Work, levels: Mapping[str, LevelPart]) -> LintReport:
    found = list(work.found)
    silenced: list[Diagnostic] = []
    if not work.audit:
        comments: list[Suppression] = []
        for document in work.documents.values():
            held, faults = read_suppressions(document, work.today)
            comments.extend(held)
            found.extend(faults)
        found, silenced, unused = silence(found, comments)
        found.extend(unused)
        found = list(_levelled(found, silenced, levels, work.today))
    texts = {name: document.source.text for name, document in work.documents.items()}
    texts.update(work.texts)
    return LintReport(
        tuple(sorted(found, key=Diagnostic.sort_key)),
        tuple(silenced),
        len(texts),
        len(work.rules),
        work.conditions,
        texts,
        (_WITHOUT_SOLVER,) if work.limited else (),
    )


def _levelled(
    found: Iterable[Diagnostic], silenced: list[Diagnostic], levels: Mapping[str, LevelPart], today: date
) -> Iterator[Diagnostic]:
    for diagnostic in found:
        level = levels.get(diagnostic.code)
        if level is None or level.until < today or not _applies(level, diagnostic.location.file):
            yield diagnostic
        elif level.level == "off":
            silenced.append(diagnostic)
        else:
            yield replace(diagnostic, severity=Severity(level.level))


def _applies(level: LevelPart, file: str) -> bool:
    return level.files is None or any(fnmatchcase(file, pattern) for pattern in level.files)
