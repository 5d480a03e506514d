"""Owns the example policies as texts, and one change to one of them at a time."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.compiler import Compiled, compile_policy

ROOT = Path(__file__).parent.parent / "policies"
POLICIES = {
    "fund": "fund/policies/fund-research.policy.yaml",
    "ops": "ops/policies/repo-ops.policy.yaml",
    "retail": "retail/policies/retail-order.policy.yaml",
    "mini": "mini/notes.policy.yaml",
}
TOOLS = {
    "fund": "fund/tool_specs/fund.tools.yaml",
    "ops": "ops/tool_specs/ops.tools.yaml",
    "retail": "retail/tool_specs/retail.tools.yaml",
    "mini": "mini/notes.tools.yaml",
}
OVERLAY = "org/org-baseline.overlay.yaml"


@cache
def texts() -> dict[str, str]:
    """Every example file by its name below tests/policies."""
    found = {}
    for path in sorted(ROOT.rglob("*")):
        if path.is_file():
            found[path.relative_to(ROOT).as_posix()] = path.read_text(encoding="utf-8")
    return found


def changed(file: str, old: str, new: str) -> dict[str, str]:
    """The examples with the first `old` of one file replaced."""
    assert old in texts()[file], f"{old!r} is not in {file}"
    return {**texts(), file: texts()[file].replace(old, new, 1)}


def compiled(name: str, files: dict[str, str] | None = None) -> Compiled:
    return compile_policy(POLICIES[name], files or texts(), with_tests=True)


def under(files: dict[str, str], found: Diagnostic) -> str:
    """The characters that a finding points at."""
    place = found.location
    line = files[place.file].splitlines()[place.line - 1]
    return line[place.column - 1 : place.end_column - 1 if place.end_column else None]


def errors(result: Compiled) -> list[Diagnostic]:
    return [found for found in result.diagnostics if found.severity is Severity.ERROR]
