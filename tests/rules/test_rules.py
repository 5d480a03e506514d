"""Every rule of the linter: its bad example raises it and nothing else, its good example nothing; pages; the list."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from engine.domain.diagnostics import Diagnostic
from engine.policy.catalogue import CHECKED, load_rule, load_rules, module_of
from engine.policy.codes import CODES, NOT_SUPPRESSIBLE
from engine.policy.files import MemoryFiles
from engine.policy.linter import lint
from engine.policy.rules import Rule
from engine.policy.rules.examples import base
from tests.render_rules import FOLDER, all_rules, pages

ROOT = Path(__file__).parent.parent.parent
TODAY = date(2026, 6, 1)

LATER = {"P211", "G501", "G502"}
"""Nothing raises these yet: no rule, no page."""
ELSEWHERE = {"T102"}
"""Raised by `agentctl test`, from what the cases made decide."""
COMPANIONS: dict[str, set[str]] = {
    "Y201": {"W207"},  # the misspelled `unattended` is not there, so the write is allowed with no human
    "L002": {"X803"},  # a comment that does not hold leaves what it meant to silence
}
"""Code -> what its bad example rightly raises as well."""
NO_RULES = {"__init__", "answers", "examples", "grants"}

RULES = all_rules()


def found_in(files: dict[str, str] | object) -> tuple[Diagnostic, ...]:
    assert isinstance(files, dict)
    return lint([next(iter(files))], files=MemoryFiles(files), today=TODAY).diagnostics


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule.id not in ELSEWHERE], ids=lambda rule: rule.id
)
def test_the_bad_example_raises_the_rule_and_the_good_one_nothing(rule: Rule) -> None:
    bad = found_in(rule.bad)
    expected = {rule.id} | COMPANIONS.get(rule.id, set())
    assert {each.code for each in bad} == expected, [f"{each.code} {each.message}" for each in bad]
    assert [f"{each.code} {each.message}" for each in found_in(rule.good)] == []


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule.id not in ELSEWHERE], ids=lambda rule: rule.id
)
def test_a_finding_has_a_message_a_help_and_a_place_in_a_file_that_was_read(rule: Rule) -> None:
    for each in found_in(rule.bad):
        assert each.help.strip()
        assert each.message.strip().rstrip(".") == each.message
        assert each.location.file in rule.bad
        lines = rule.bad[each.location.file].splitlines()
        assert 1 <= each.location.line <= len(lines)
        assert 1 <= each.location.column <= len(lines[each.location.line - 1]) + 1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_says_of_itself_what_the_list_says(rule: Rule) -> None:
    known = CODES[rule.id]
    assert (rule.name, rule.severity, rule.confidence) == known
    assert rule.suppressible == (rule.id not in NOT_SUPPRESSIBLE)
    assert (rule.check is not None) == (rule.id in CHECKED)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_explains_itself(rule: Rule) -> None:
    assert rule.summary.endswith((".", "`."))
    assert rule.why.endswith(".")
    assert rule.answers is not None
    assert all((rule.answers.input, rule.answers.effect, rule.answers.paraphrase, rule.answers.repair))
    assert rule.bad != rule.good


def test_the_usual_example_is_clean() -> None:
    assert found_in(base()) == ()


# --- the list ---------------------------------------------------------------------------------------------


def test_every_code_has_a_rule_but_those_that_are_raised_later() -> None:
    assert {rule.id for rule in RULES} == set(CODES) - LATER


def test_every_file_of_the_folder_is_a_rule_of_the_list() -> None:
    files = {path.stem for path in (ROOT / "engine/policy/rules").glob("*.py")} - NO_RULES
    assert files == {module_of(rule.id).rpartition(".")[2] for rule in RULES}


def test_names_and_codes_are_unique_and_well_formed() -> None:
    assert len({code.name for code in CODES.values()}) == len(CODES)
    assert len(set(CHECKED)) == len(CHECKED)
    assert all(re.fullmatch(r"[A-Z]\d{3}", code) for code in CODES)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", known.name) for known in CODES.values())


def test_the_codes_that_no_comment_can_silence() -> None:
    wanted = "S301 S303 M404 M405 P205 P210 P211 W207 W208 I901 I903"
    assert set(wanted.split()) == NOT_SUPPRESSIBLE


def test_a_rule_is_found_by_code_and_by_name() -> None:
    assert load_rule("S301") is load_rule("prose-is-opaque")
    assert load_rule("S301") is not None
    assert load_rule("S999") is None


def test_explaining_a_rule_loads_that_rule_alone_and_linting_only_those_with_a_check() -> None:
    code = (
        "import re, sys; from engine.policy.catalogue import CHECKED, load_rule, load_rules, module_of;"
        "rules = lambda: {name for name in sys.modules if re.search(r'[.]rules[.][a-z]\\d{3}_', name)};"
        "load_rule('S301'); assert rules() == {module_of('S301')}, rules();"
        "load_rules(); assert rules() == {module_of('S301'), *map(module_of, CHECKED)}, rules()"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_no_rule_of_a_plain_lint_needs_test_results_or_a_base_version() -> None:
    assert not any(rule.deep for rule in load_rules())


# --- pages ------------------------------------------------------------------------------------------------


def test_the_pages_are_those_of_the_rules() -> None:
    """`python -m tests.render_rules` writes them again."""
    committed = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert committed == pages()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_page_answers_the_four_questions_and_shows_both_examples(rule: Rule) -> None:
    text = pages()[f"{rule.id}.md"]
    heads = ["Summary", "Avoid", "Prefer", "Why", "The four questions", "Since"]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == heads
    assert text.count("```") >= 4
