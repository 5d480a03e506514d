"""`agentctl test --init`: made-up values fit their types, and the cases that are written hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.adapters.memory_store import MemoryStore
from engine.policy.case_files import read_cases
from engine.policy.compiler import load_policy
from engine.runtime.scenario.runner import run_file
from engine.runtime.scenario.samples import literals_of, matching
from engine.runtime.scenario.starter import starter
from tests.scenarios.bench import ROOT, failures


@pytest.mark.parametrize(
    "pattern", [r"[A-Z]{2}[A-Z0-9]{9}[0-9]", r"^agent/[a-z0-9-]{3,40}$", r"D\d+", r"v\d\.\d{2}"]
)
def test_a_simple_pattern_is_matched(pattern: str):
    made = matching(pattern)
    assert made is not None
    assert re.fullmatch(pattern, made)


def test_a_pattern_with_more_to_it_is_left_alone():
    assert matching("(a|b)+") is None


def test_the_literals_of_conditions_are_tried():
    assert literals_of(["under(args.path, 'src/') || task.kind == 'fix'"]) == ["src/", "fix"]


@pytest.mark.parametrize("name", ["notes", "repo-ops", "fund-research"])
def test_what_is_written_holds_and_each_case_tests_its_rule(tmp_path: Path, name: str):
    policy = ROOT / f"policies/{name}.policy.yaml"
    made = starter(load_policy(policy), str(policy), MemoryStore)
    file = tmp_path / "starter.test.yaml"
    file.write_text(made.text, encoding="utf-8")
    result = run_file(read_cases(str(file), load_policy), MemoryStore)
    assert {case.id: failures(case) for case in result.cases if case.verdict != "ok"} == {}
    assert all(case.id in case.decided for case in result.cases)
    assert len(result.cases) + len(made.without) == len(result.rules)
