"""Owns the pytest plugin: each case of a `*.test.yaml` file that says `agentctl: test/v1` is a pytest item."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from engine.policy.case_files import CaseFile
    from engine.policy.documents.test import CasePart
    from engine.runtime.scenario.runner import CaseResult


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Files of other programs with such a name are left alone."""
    if file_path.suffix not in (".yaml", ".yml"):
        return None
    from engine.policy.case_files import is_case_file

    return CaseCollector.from_parent(parent, path=file_path) if is_case_file(file_path) else None


class CaseCollector(pytest.File):
    """One test file. It is an error, not an empty file, if it cannot be loaded or has no case."""

    def collect(self) -> Iterator[pytest.Item]:
        from engine.bootstrap import load_cases
        from engine.domain.errors import SourceError

        try:
            loaded = load_cases(_shown(self.path))
        except SourceError as error:
            raise self.CollectError(_said(error)) from None
        if not loaded.cases:
            raise self.CollectError(f"{_shown(self.path)} has no case")
        for case in loaded.cases:
            yield CaseItem.from_parent(self, name=case.id, loaded=loaded, case=case)


class CaseItem(pytest.Item):
    """One case, played through the engine."""

    def __init__(self, *, loaded: CaseFile, case: CasePart, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]  # what pytest hands on
        self.loaded = loaded
        self.case = case

    def runtest(self) -> None:
        from engine.bootstrap import play_case

        result = play_case(self.loaded, self.case)
        if result.verdict != "ok":
            raise CaseFailed(result)

    def repr_failure(
        self,
        excinfo: pytest.ExceptionInfo[BaseException],
        style: object = None,  # noqa: ARG002 - the signature of pytest
    ) -> str:
        """The failed expectations with their places; a traceback only for a fault of agentctl."""
        if isinstance(excinfo.value, CaseFailed):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.place("id").line - 1, f"case {self.name}"


class CaseFailed(Exception):
    """A case with an expectation that does not hold, or with none."""

    def __init__(self, result: CaseResult) -> None:
        from engine.report.scenario import case_lines

        super().__init__("\n".join(case_lines(result)))


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _said(error: Exception) -> str:
    from engine.domain.errors import AgentctlError, PolicyInvalid
    from engine.report.findings import finding_text

    assert isinstance(error, AgentctlError)
    found = error.diagnostics if isinstance(error, PolicyInvalid) else ()
    return "\n".join([error.message, *(finding_text(each, {}) for each in found)])
