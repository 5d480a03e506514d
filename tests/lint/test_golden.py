"""What an author reads: forty broken copies of the smallest policy, each beside what `lint` prints for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from engine.domain.diagnostics import Severity
from engine.policy.files import MemoryFiles
from engine.policy.linter import LintReport, lint
from engine.report.findings import Checked, as_text

HERE = Path(__file__).parent
MINI = HERE.parent / "policies" / "mini"
BROKEN = sorted(path for path in HERE.glob("*.yaml"))


def report_on(broken: Path) -> LintReport:
    """The report on the smallest policy with one of its files broken."""
    files = {path.name: path.read_text(encoding="utf-8") for path in MINI.glob("*.yaml")}
    kind = broken.name.split(".", 1)[1]
    assert f"notes.{kind}" in files
    files[f"notes.{kind}"] = broken.read_text(encoding="utf-8")
    return lint(["notes.policy.yaml"], files=MemoryFiles(files), today=date(2026, 6, 1))


@pytest.mark.parametrize("broken", BROKEN, ids=lambda path: path.name.split(".")[0])
def test_a_broken_file_is_explained_as_recorded(broken: Path, golden: Callable[[Path, str], None]) -> None:
    report = report_on(broken)
    checked = Checked(report.diagnostics, report.texts, report.files, report.rules, report.conditions)
    golden(broken.with_suffix("").with_suffix(".txt"), as_text(checked) + "\n")
    assert report.count(Severity.ERROR) or report.count(Severity.WARNING)


def test_there_are_forty() -> None:
    assert len(BROKEN) == 40
    assert {path.stem for path in HERE.glob("*.txt")} == {path.name.split(".")[0] for path in BROKEN}


def test_the_policy_that_they_are_copies_of_is_clean() -> None:
    report = lint([MINI], today=date(2026, 6, 1))
    assert {each.severity for each in report.diagnostics} <= {Severity.NOTE}
