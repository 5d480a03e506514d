"""`agentctl test`: what it prints, what it ends with, the starter file, and the same cases under pytest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.policy.schemas import SCHEMAS
from tests.cli.conftest import ROOT, Ask
from tests.conftest import Golden
from tests.scenarios.bench import GIVEN, Desk

RECORDED = Path(__file__).parent / "golden"
GOOD = f"""\
cases:
  - id: looks
    given: {GIVEN}
    turns:
      - propose: [{{call: look, args: {{id: x}}}}]
        expect: {{shows: [look, send], calls: [{{outcome: confirmed}}]}}
"""
BAD = f"""\
  - id: sends
    given: {GIVEN}
    turns:
      - propose: [{{call: send, args: {{to: a}}}}]
        expect: {{hides: [send], calls: [{{outcome: confirmed}}], run: completed}}
  - id: checks-nothing
    given: {GIVEN}
    turns: [{{propose: [{{call: look, args: {{id: x}}}}]}}]
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    return Desk(Path())


def test_cases_that_hold_exit_0(desk: Desk, agentctl: Ask, golden: Golden) -> None:
    said = agentctl("test", desk.write(GOOD))
    assert said.code == 0
    golden(RECORDED / "test_ok.txt", said.out)


def test_failed_and_empty_cases_exit_1_with_their_places(desk: Desk, agentctl: Ask, golden: Golden) -> None:
    said = agentctl("test", desk.write(GOOD + BAD))
    assert said.code == 1
    golden(RECORDED / "test_fail.txt", said.out)


def test_json_has_every_case_and_the_untested_rules(desk: Desk, agentctl: Ask) -> None:
    said = agentctl("test", desk.write(GOOD + BAD), "--json")
    assert said.code == 1
    assert (said.json["schema"], said.json["cases"], said.json["failed"]) == ("agentctl.test/v1", 3, 2)
    (file,) = said.json["files"]
    assert [case["verdict"] for case in file["cases"]] == ["ok", "FAIL", "EMPTY"]
    assert {failure["line"] for failure in file["cases"][1]["failures"]} == {13}
    assert [rule["rule"] for rule in said.json["policies"][0]["untested"]] == ["file", "no-parcels"]


def test_no_case_and_no_file_exit_3(desk: Desk, agentctl: Ask) -> None:
    assert agentctl("test", desk.write("cases: []\n")).code == 3
    desk.file.unlink()
    said = agentctl("test")
    assert said.code == 3
    assert "nothing was tested" in said.err
    desk.write(GOOD)
    assert agentctl("test", "--case", "nowhere").code == 3


def test_a_misspelled_key_exits_2_and_the_other_files_are_played(desk: Desk, agentctl: Ask) -> None:
    desk.write(GOOD)
    bad = GOOD.replace("expect:", "expects:")
    Path("bad.test.yaml").write_text(f"agentctl: test/v1\npolicy: desk.policy.yaml\n{bad}", encoding="utf-8")
    said = agentctl("test")
    assert said.code == 2
    assert "did you mean `expect`?" in said.err
    assert "ok   looks" in said.out


def test_a_policy_stands_for_the_tests_that_it_names(desk: Desk, agentctl: Ask) -> None:
    desk.write(GOOD)
    policy = Path("desk.policy.yaml")
    policy.write_text(policy.read_text(encoding="utf-8") + "tests: [desk.test.yaml]\n", encoding="utf-8")
    assert "ok   looks" in agentctl("test", "desk.policy.yaml").out


def test_one_case_can_be_played_alone(desk: Desk, agentctl: Ask) -> None:
    said = agentctl("test", desk.write(GOOD + BAD), "--case", "looks")
    assert said.code == 0
    assert "sends" not in said.out
    assert "1 case of those in the file" in said.out


def test_without_paths_the_policies_of_the_project_say_what_is_tested(fund: Path, agentctl: Ask) -> None:
    for name in ("bank-payments", "notes", "repo-ops", "retail-order"):
        (fund / f"policies/{name}.policy.yaml").unlink()
    said = agentctl("test")
    assert said.code == 0
    assert said.out.splitlines()[0] == "tests/policies/fund-research.test.yaml"


def test_the_transcript_of_the_examples(
    agentctl: Ask, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT / "tests/policies")
    said = agentctl("test", "fund", "ops", "retail", "mini")
    assert said.code == 0
    golden(RECORDED / "test_examples.txt", said.out)


def test_a_starter_file_holds_and_is_not_written_over(desk: Desk, agentctl: Ask) -> None:
    said = agentctl("test", "--init", "desk.policy.yaml")
    assert said.code == 0
    assert said.out.startswith("wrote desk.test.yaml: 4 cases")
    played = agentctl("test", "desk.test.yaml")
    assert played.code == 0
    assert "rules of this policy that decided something: 4/4" in played.out
    again = agentctl("test", "--init", "desk.policy.yaml")
    assert again.code == 2
    assert "exists" in again.err


# --- pytest -------------------------------------------------------------------------------------------------


def test_pytest_collects_the_cases_of_a_test_file(desk: Desk) -> None:
    """Other files of such a name are left alone."""
    desk.write(GOOD + BAD)
    Path("other.test.yaml").write_text("stages: [build]\n", encoding="utf-8")
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "engine.pytest_plugin",
        "-q",
        "--rootdir=.",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 1 passed" in done.stdout
    assert "desk.test.yaml:13: turn 1: `send` is shown" in done.stdout
    assert "Traceback" not in done.stdout


def test_the_plugin_is_registered_for_pytest() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"agentctl": "engine.pytest_plugin"}


# --- schema -------------------------------------------------------------------------------------------------


def test_schema_export_writes_a_schema_for_each_document(tmp_path: Path, agentctl: Ask) -> None:
    said = agentctl("schema", "export", str(tmp_path / "schemas"), "--json")
    assert said.code == 0
    files = [Path(name) for name in said.json["files"]]
    assert [file.name for file in files] == [f"{name}.v1.json" for name in SCHEMAS]
    assert all(json.loads(file.read_text(encoding="utf-8"))["$schema"] for file in files)


def test_schemas_that_cannot_be_written_are_said(tmp_path: Path, agentctl: Ask) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    said = agentctl("schema", "export", str(tmp_path / "taken"))
    assert said.code == 2
    assert "cannot be written" in said.err
