"""`agentctl lint`: what it prints, and what it ends with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Ask
from tests.conftest import Golden

RECORDED = Path(__file__).parent / "golden"
POLICY = "policies/notes.policy.yaml"
FAULTS = {"effect: allow": "efect: allow", "output_committed: answer": "output_committed: anser"}


@pytest.fixture
def faulty(notes: Path) -> Path:
    text = (notes / POLICY).read_text(encoding="utf-8")
    for good, bad in FAULTS.items():
        assert good in text
        text = text.replace(good, bad)
    (notes / POLICY).write_text(text, encoding="utf-8")
    return notes


def test_findings_are_printed_with_their_places(faulty: Path, agentctl: Ask, golden: Golden) -> None:
    """Whatever other rules say of it: each finding is a paragraph, the last line sums up."""
    said = agentctl("lint", POLICY)
    assert said.code == 1
    *findings, last = said.out.rstrip().split("\n\n")
    ours = [found for found in findings if found.startswith(("error[Y201", "error[R209"))]
    golden(RECORDED / "lint.txt", "\n\n".join(ours) + "\n")
    assert re.fullmatch(r"4 files, \d+ rules, \d+ conditions checked: 2 errors.*", last)


def test_json_has_the_same_findings(faulty: Path, agentctl: Ask) -> None:
    report = agentctl("lint", POLICY, "--json").json
    assert report["schema"] == "agentctl.lint/v1"
    assert {"Y201", "R209"} <= {found["code"] for found in report["findings"]}
    assert all(found["help"] and found["line"] >= 1 and found["column"] >= 1 for found in report["findings"])
    assert agentctl("lint", POLICY, "--format", "json").json == report


def test_nothing_to_check_exits_3(tmp_path: Path, agentctl: Ask) -> None:
    said = agentctl("lint", str(tmp_path))
    assert said.code == 3
    assert "nothing was checked" in said.err


def test_a_clean_folder_exits_0(notes: Path, agentctl: Ask) -> None:
    said = agentctl("lint", ".")
    assert said.code == 0, said.out


def test_a_fault_inside_the_project_file_is_a_finding(notes: Path, agentctl: Ask) -> None:
    (notes / "agentctl.yaml").write_text("agentctl: project/v1\nlokal: {}\n", encoding="utf-8")
    said = agentctl("lint", ".")
    assert said.code == 1
    assert "did you mean `local`?" in said.out
