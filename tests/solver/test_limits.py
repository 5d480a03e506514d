"""What cannot be told without the SMT solver is left open, said once, and told with it."""

from __future__ import annotations

import pytest

from engine.policy.files import MemoryFiles
from engine.policy.linter import LintReport, lint
from engine.policy.rules.examples import POLICY_FILE, base
from engine.policy.solver import smt

RELATION = base(
    (
        'when: "principal.suspended"',
        'when: "principal.suspended && size(state.account.loans) > state.account.fines_minor '
        '&& state.account.fines_minor > size(state.account.loans)"',
    )
)
"""Two facts, each greater than the other: no list of values of one fact shows that this cannot be."""


def report(files: dict[str, str]) -> LintReport:
    return lint([POLICY_FILE], files=MemoryFiles(files))


def codes(files: dict[str, str]) -> list[str]:
    return [found.code for found in report(files).diagnostics]


def test_a_relation_between_facts_is_judged_with_the_solver() -> None:
    pytest.importorskip("z3")
    assert codes(RELATION) == ["P213"]
    assert report(RELATION).notes == ()


def test_without_the_solver_it_is_left_open_and_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smt, "is_installed", lambda: False)
    found = report(RELATION)
    assert found.diagnostics == ()
    assert len(found.notes) == 1
    assert "agentctl[prove]" in found.notes[0]


def test_finite_cases_are_judged_without_the_solver_and_without_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(smt, "is_installed", lambda: False)
    files = base(('when: "principal.suspended"', 'when: "principal.suspended && !principal.suspended"'))
    assert codes(files) == ["P213"]
    assert report(files).notes == ()
    assert report(base()).notes == ()
