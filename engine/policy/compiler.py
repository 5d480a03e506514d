"""Owns the way from policy text to a Policy: the stages, in order, and everything they found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath
from time import perf_counter
from typing import Final, TypeAlias

from engine.domain.canonical import Json, parse_json
from engine.domain.diagnostics import Diagnostic, Severity, many
from engine.domain.errors import PolicyInvalid
from engine.domain.policy import Policy
from engine.policy.files import DEPLOYMENT, DiskFiles, Files, MemoryFiles
from engine.policy.model import Model
from engine.policy.stages.cases import cases
from engine.policy.stages.link import link
from engine.policy.stages.read import read
from engine.policy.stages.references import references
from engine.policy.stages.shape import shape
from engine.policy.stages.types import types

Stage: TypeAlias = Callable[[Model], None]
STAGES: Final[Mapping[str, Stage]] = {
    "read": read,
    "shape": shape,
    "references": references,
    "types": types,
    "link": link,
    "cases": cases,
}


@dataclass(frozen=True, slots=True)
class Compiled:
    """What came of a policy file. `policy` is None if any diagnostic is an error."""

    policy: Policy | None
    diagnostics: tuple[Diagnostic, ...]
    """Sorted by file and place; what the loader and the compiler find themselves, not the rules of the linter."""
    model: Model
    timings: Mapping[str, float]
    """Stage -> seconds."""

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(found for found in self.diagnostics if found.severity is Severity.ERROR)


def compile_policy(
    file: str | Path,
    files: Files | Mapping[str, str] | None = None,
    *,
    extra_overlays: Sequence[str] = (),
    limits: Mapping[str, Json] | None = None,
    with_tests: bool = False,
) -> Compiled:
    """Compiles the policy `file`, from the disk or from texts by name such as `Policy.bundle`.

    `extra_overlays` are files that the deployment adds, `limits` the values that it gives to limits; a bundle
    says both itself. `with_tests` also checks the test files that the policy names. Raises SourceError if
    `file` or an extra overlay cannot be read; every other fault is a diagnostic.
    """
    if isinstance(files, Mapping):
        overlays, said = deployment_of(files)
        model = Model(
            MemoryFiles(files), str(file), tuple(extra_overlays) or overlays, limits or said, with_tests
        )
    else:
        added = tuple(normpath(name) for name in extra_overlays)
        model = Model(files or DiskFiles(), str(file), added, limits or {}, with_tests)
    return _compiled(model)


def load_policy(
    file: str | Path,
    files: Files | Mapping[str, str] | None = None,
    *,
    extra_overlays: Sequence[str] = (),
    limits: Mapping[str, Json] | None = None,
) -> Policy:
    """The policy, ready to run. Raises SourceError if it cannot be read, PolicyInvalid if it has faults."""
    compiled = compile_policy(file, files, extra_overlays=extra_overlays, limits=limits)
    if compiled.policy is not None:
        return compiled.policy
    count = len(compiled.errors)
    faulty = dict.fromkeys(found.location.file for found in compiled.errors)
    added = [
        name for name in compiled.model.extra_overlays if name in faulty
    ]  # lint of the policy knows none
    raise PolicyInvalid(
        f"`{file}` has {many(count, 'error')}",
        remedy=f"run `agentctl lint {' '.join([str(file), *added])}`",
        diagnostics=compiled.diagnostics,
    )


def deployment_of(texts: Mapping[str, str]) -> tuple[tuple[str, ...], Mapping[str, Json]]:
    """What the deployment added when a bundle was made: its overlays and its values of limits."""
    said = parse_json(texts.get(DEPLOYMENT, "{}"))
    if not isinstance(said, dict):
        return (), {}
    overlays, limits = said.get("overlays"), said.get("limits")
    names = tuple(str(name) for name in overlays) if isinstance(overlays, list) else ()
    return names, limits if isinstance(limits, dict) else {}


def _compiled(model: Model) -> Compiled:
    timings = {}
    for name, stage in STAGES.items():
        started = perf_counter()
        stage(model)
        timings[name] = perf_counter() - started
    found = model.diagnostics()
    faulty = any(diagnostic.severity is Severity.ERROR for diagnostic in found)
    return Compiled(None if faulty else model.policy, tuple(found), model, timings)
