"""Every test file of the project holds, and its policy's rules are exercised as its own pages say."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.adapters.memory_store import MemoryStore
from engine.policy.case_files import read_cases
from engine.policy.compiler import load_policy
from engine.runtime.scenario.runner import run_file
from tests.scenarios.bench import ROOT, failures

FILES = sorted((ROOT / "tests/policies").rglob("*.test.yaml"))
EXERCISED = {
    "fund/tests/fund-research.test.yaml": ["public-reading", "drafts"],
    "mini/notes.test.yaml": [],
    "ops/tests/repo-ops.test.yaml": ["edit-source", "edit-ci-config"],
    "retail/tests/retail-order.test.yaml": ["suggest"],
}
"""Test file of an example -> the rules that it leaves alone."""


def name_of(file: Path) -> str:
    return file.relative_to(ROOT / "tests/policies").as_posix()


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_every_case_holds(file: Path):
    result = run_file(read_cases(str(file), load_policy), MemoryStore)
    assert {case.id: failures(case) for case in result.cases if case.verdict != "ok"} == {}
    untested = [rule.id for rule in result.untested]
    assert untested == EXERCISED.get(name_of(file), [])
