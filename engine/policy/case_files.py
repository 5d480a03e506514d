"""Owns the way from a test file to cases that can be run: the document, its policy, and that they fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.domain.diagnostics import Diagnostic
from engine.domain.errors import PolicyInvalid
from engine.domain.policy import Policy
from engine.policy.documents.base import Faults
from engine.policy.documents.test import CasePart, TestDocument
from engine.policy.files import DiskFiles, Files, beside
from engine.policy.source import parse
from engine.policy.stages.cases import check_cases
from engine.policy.stages.shape import check_document, unknown_document


@dataclass(frozen=True, slots=True)
class CaseFile:
    """The cases of one test file, checked against the policy that they test."""

    file: str
    policy: Policy
    cases: tuple[CasePart, ...]


def read_cases(file: str, load: Callable[[str], Policy], files: Files | None = None) -> CaseFile:
    """Reads a test file; `load` compiles the policy that it names.

    Raises SourceError if a file cannot be read, PolicyInvalid with every finding if the test file or its policy
    has faults (a misspelled key or name is one).
    """
    document = parse(file, (files or DiskFiles()).read(file))
    faults = Faults()
    found = list(document.faults)
    wrong = unknown_document(document, ["test/v1"])
    if wrong is not None:
        raise _invalid(file, [*found, wrong])
    part = check_document(document, TestDocument, lambda _: None, faults)
    if part is None or found or list(faults):
        raise _invalid(file, [*found, *faults])
    policy = load(beside(file, part.policy))
    check_cases(policy, part, faults.add)
    _once(part, faults)
    if list(faults):
        raise _invalid(file, faults)
    return CaseFile(file, policy, tuple(part.cases))


def _once(document: TestDocument, faults: Faults) -> None:
    first: dict[str, CasePart] = {}
    for case in document.cases:
        known = first.setdefault(case.id, case)
        if known is not case:
            message = f"case `{case.id}` is already declared at {known.place('id')}"
            faults.add("R204", case.place("id"), message, "rename one")


def _invalid(file: str, found: Iterable[Diagnostic]) -> PolicyInvalid:
    sorted_ = sorted({*found}, key=Diagnostic.sort_key)
    count = len(sorted_)
    return PolicyInvalid(
        f"`{file}` has {count} fault{'s' if count != 1 else ''}",
        remedy=f"run `agentctl lint {file}`",
        diagnostics=sorted_,
    )
