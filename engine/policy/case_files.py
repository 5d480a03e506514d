"""Owns the way from a test file to cases that can be run: the document, its policy, and that they fit together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.domain.diagnostics import Diagnostic, many
from engine.domain.errors import PolicyInvalid
from engine.domain.policy import Policy
from engine.policy.documents.base import Faults
from engine.policy.documents.test import CasePart, TestDocument
from engine.policy.files import DiskFiles, Files, beside, declared
from engine.policy.nodes import data
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
    document = parse(file, (files or DiskFiles()).read(file), "test/v1")
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
        f"`{file}` has {many(count, 'fault')}",
        remedy=f"run `agentctl lint {file}`",
        diagnostics=sorted_,
    )


# --- which files --------------------------------------------------------------------------------------------

_ENDS: Final = (".test.yaml", ".test.yml")
_SKIPPED: Final = frozenset({"node_modules", "__pycache__"})


def is_case_file(file: Path) -> bool:
    """True for a file that is named like a test file and says that it is one."""
    if not file.name.endswith(_ENDS):
        return False
    try:
        return declared(file.read_text(encoding="utf-8", errors="replace")) == "test/v1"
    except OSError:
        return False


def case_files(paths: Sequence[str], files: Files | None = None) -> list[str]:
    """Test files: those given, those that a given policy names, those in a given folder.

    Without paths: what the policies under `policies` name, else every `*.test.yaml` below the working directory.
    Raises SourceError for a path that cannot be read.
    """
    source = files or DiskFiles()
    found = [name for path in paths for name in _named(path, source)]
    if not paths:
        found = [name for policy in policy_files("policies") for name in _tests_of(policy, source)]
        found = found or [*_below(".", _ENDS)]
    return list(dict.fromkeys(found))


def policy_files(folder: str) -> Iterator[str]:
    """Every policy in a folder."""
    for name in _below(folder, (".yaml", ".yml")):
        text = Path(name).read_text(encoding="utf-8", errors="replace")
        if declared(text) == "policy/v1":
            yield name


def _named(path: str, files: Files) -> Iterator[str]:
    name = os.path.normpath(path)
    if os.path.isdir(name):
        yield from _below(name, _ENDS)
    elif declared(files.read(name)) == "policy/v1":
        yield from _tests_of(name, files)
    else:
        yield name


def _tests_of(policy: str, files: Files) -> Iterator[str]:
    root = parse(policy, files.read(policy)).root
    listed = data(root).get("tests") if root is not None else None
    for name in listed if isinstance(listed, list) else ():
        if isinstance(name, str):
            yield beside(policy, name)


def _below(folder: str, ends: tuple[str, ...]) -> Iterator[str]:
    for here, folders, inside in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _SKIPPED)
        yield from (
            os.path.normpath(os.path.join(here, each)) for each in sorted(inside) if each.endswith(ends)
        )
