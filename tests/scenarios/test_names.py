"""Names and values of a test file are checked against its policy before anything is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.domain.errors import PolicyInvalid
from engine.policy.compiler import compile_policy
from tests.scenarios.bench import GIVEN, Desk

TURN = "{propose: [{call: look, args: {id: x}}], expect: {run: proposing}}"


def findings(desk: Desk, given: str, turn: str) -> list[tuple[str, str, str]]:
    with pytest.raises(PolicyInvalid) as caught:
        desk.play(f"cases:\n  - id: it\n    given: {given}\n    turns:\n      - {turn}\n")
    return [(found.code, found.message, found.help) for found in caught.value.diagnostics]


@pytest.mark.parametrize(
    ("turn", "code", "message", "help_"),
    [
        ("{propose: [{call: lok}], expect: {run: proposing}}", "R201", "there is no tool `lok`", "`look`"),
        ("{expect: {shows: [sendd]}}", "R201", "there is no tool `sendd`", "`send`"),
        ("{expect: {hides: [finsh]}}", "R201", "there is no tool `finsh`", "`finish`"),
        ("{expect: {calls: [{rule: no-parcel}]}}", "Y204", "no rule `no-parcel`", "`no-parcels`"),
        ("{expect: {calls: [{for: [sendd]}]}}", "Y204", "no rule `sendd`", "`send`"),
        ("{approve: {call: send, by: {id: l, roles: [led]}}}", "R202", "no role `led`", "`lead`"),
        ("{source: {pots: unavailable}, expect: {run: proposing}}", "R205", "no source `pots`", "`post`"),
        ("{set: {state.cart.id: x}, expect: {run: proposing}}", "R206", "no state slice `cart`", ""),
        ("{set: {cart: x}, expect: {run: proposing}}", "Y205", "no field of app state", "state.<slice>"),
        ("{propos: [{call: look}], expect: {run: proposing}}", "Y201", "unknown key `propos`", "`propose`"),
    ],
)  # fmt: skip
def test_a_misspelled_name_of_a_turn(tmp_path: Path, turn: str, code: str, message: str, help_: str):
    found = findings(Desk(tmp_path), GIVEN, turn)
    assert [each[0] for each in found] == [code]
    assert message in found[0][1]
    assert help_ in found[0][2]


CLERK = "principal: {id: c, roles: [clerk]}"
LETTER = "task: {kind: letter}"


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (f"principal: {{id: c, roles: [clark]}}, {LETTER}", "R202", "no role `clark`"),
        (f"principal: {{id: c, roles: [clerk], desk: x}}, {LETTER}", "C103", "field of principal `desk`"),
        (f"{CLERK}, task: {{kin: letter}}", "C103", "field of task `kin`"),
        (f"{CLERK}, task: {{kind: leter}}", "Y205", "`task.kind` must be one of: letter, parcel"),
        (CLERK, "Y202", "task field `kind` is missing"),
        (f"{CLERK}, {LETTER}, grant: {{archiv: {{}}}}", "R203", "no capability `archiv`"),
        (f"{CLERK}, {LETTER}, grant: {{archive: {{shelf: c}}}}", "Y205", "one of: a, b"),
        (f"{CLERK}, {LETTER}, now: tomorrow", "Y205", "is no time"),
    ],
)
def test_what_is_given_must_fit_the_policy(tmp_path: Path, given: str, code: str, message: str):
    found = findings(Desk(tmp_path), f"{{{given}}}", TURN)
    assert code in [each[0] for each in found]
    assert any(message in each[1] for each in found)


def test_a_policy_is_linted_with_the_names_of_its_tests(tmp_path: Path):
    desk = Desk(tmp_path)
    file = desk.folder / "desk.policy.yaml"
    file.write_text(file.read_text(encoding="utf-8") + "tests: [desk.test.yaml]\n", encoding="utf-8")
    desk.write("cases:\n  - id: it\n    given: " + GIVEN + "\n    turns: [{expect: {shows: [lok]}}]\n")
    found = compile_policy(str(file), with_tests=True).diagnostics
    assert [(each.code, each.location.line) for each in found] == [("R201", 6)]


def test_two_cases_with_one_id_are_refused(tmp_path: Path):
    case = f"  - id: it\n    given: {GIVEN}\n    turns: [{TURN}]\n"
    with pytest.raises(PolicyInvalid) as caught:
        Desk(tmp_path).play(f"cases:\n{case}{case}")
    assert [found.code for found in caught.value.diagnostics] == ["R204"]
