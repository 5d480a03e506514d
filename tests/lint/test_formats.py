"""Findings for programs: SARIF and the annotations of GitHub."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.domain.diagnostics import Confidence, Diagnostic, Location, Severity
from engine.policy.files import MemoryFiles
from engine.policy.linter import lint
from engine.policy.rules.examples import base
from engine.report.findings import Checked
from engine.report.github import MOST, as_github
from engine.report.sarif import as_sarif


def checked(*edits: tuple[str, str], ahead: str = "") -> Checked:
    files = base(*edits)
    files["loans.policy.yaml"] = ahead + files["loans.policy.yaml"]
    report = lint(["loans.policy.yaml"], files=MemoryFiles(files))
    return Checked(report.diagnostics, report.texts, report.files, report.rules, report.conditions)


def finding(severity: Severity, line: int, message: str = "`x` is wrong", file: str = "p.yaml") -> Diagnostic:
    return Diagnostic("R201", "unknown-tool", severity, message, Location(file, line, 3), "mend it")


ROLE = (
    "  - id: hold\n    effect: allow\n    roles: [reader]",
    "  - id: hold\n    effect: allow\n    roles: [raeder]",
)


# --- SARIF ------------------------------------------------------------------------------------------------


def test_sarif_carries_every_finding_with_its_place_and_its_rule() -> None:
    log = json.loads(as_sarif(checked(ROLE, ("turns: 30", "turns: 100000"))))
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["B702", "R202"]
    first, second = run["results"]
    assert first["ruleId"] == "R202"
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == "R202"
    assert first["level"] == "error"
    assert "did you mean `reader`?" in first["message"]["text"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "loans.policy.yaml"}
    assert place["region"] == {"startLine": 37, "startColumn": 13, "endColumn": 19}
    assert second["level"] == "warning"


def test_every_rule_of_a_sarif_log_has_a_summary_and_a_page() -> None:
    (run,) = json.loads(as_sarif(checked(ROLE)))["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == "The role is not declared."
    assert (Path(__file__).parents[2] / rule["helpUri"]).is_file()


def test_a_fingerprint_stays_when_a_line_moves_and_changes_with_what_it_says() -> None:
    def prints(found: Checked) -> list[str]:
        (run,) = json.loads(as_sarif(found))["runs"]
        return [result["partialFingerprints"]["agentctl/v1"] for result in run["results"]]

    assert prints(checked(ROLE)) == prints(checked(ROLE, ahead="# moved\n\n"))
    assert prints(checked(ROLE)) != prints(checked((ROLE[0], ROLE[1].replace("raeder", "readr"))))


def test_a_name_with_blanks_is_a_valid_uri_and_likely_is_said() -> None:
    found = Diagnostic(
        "I902",
        "instruction-in-description",
        Severity.WARNING,
        "x",
        Location("a b/ü.yaml", 9, 1),
        "y",
        Confidence.LIKELY,
    )
    (result,) = json.loads(as_sarif(Checked((found,), {})))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b/%C3%BC.yaml"
    assert result["properties"] == {"confidence": "likely"}


def test_nothing_found_is_a_valid_log() -> None:
    assert json.loads(as_sarif(Checked((), {})))["runs"][0]["results"] == []


# --- GitHub -----------------------------------------------------------------------------------------------


def test_an_annotation_names_file_line_column_rule_message_and_help() -> None:
    assert as_github(checked(ROLE)) == (
        "::error file=loans.policy.yaml,line=37,col=13,title=R202 unknown-role::"
        "there is no role `raeder`%0Adid you mean `reader`?"
    )


def test_errors_come_first_at_most_ten_and_the_last_line_says_what_was_left_out() -> None:
    found = [finding(Severity.NOTE, 1), *(finding(Severity.WARNING, line) for line in range(2, 9))]
    found += [finding(Severity.ERROR, line) for line in range(9, 14)]
    lines = as_github(Checked(tuple(found), {})).split("\n")
    assert [line.split()[0] for line in lines[:MOST]] == ["::error"] * 5 + ["::warning"] * 5
    assert lines[MOST:] == ["3 of 13 findings are not annotated: R201 unknown-tool (3)"]


def test_ten_findings_need_no_last_line() -> None:
    assert (
        len(as_github(Checked(tuple(finding(Severity.ERROR, n) for n in range(1, 11)), {})).split("\n")) == 10
    )


@pytest.mark.parametrize("bad", ["a\n::error::b", "a\r\n::stop-commands::x", "100% sure", "a\x1b[31mb"])
def test_text_of_a_file_cannot_write_a_command_of_its_own(bad: str) -> None:
    text = as_github(Checked((finding(Severity.ERROR, 1, bad, file=f"{bad},line=9:x"),), {}))
    assert "\n" not in text
    assert "\x1b" not in text
    assert text.count("line=") == 2
    assert "%2Cline=9%3Ax,line=1," in text


def test_nothing_found_prints_nothing() -> None:
    assert as_github(Checked((), {})) == ""
