"""Owns the promises of `agentctl crash-test`: probes that lie and keys that do nothing are found by real kills."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.domain.policy import Retry
from engine.runtime.crash_kit import POINTS, Trial, judge
from tests.durable.conftest import Office
from tests.runtime.bench import compiled

SPEC = compiled().tools["book_room"]
SAME_KEY = replace(SPEC, retry=Retry.SAME_KEY)
COUNTER = "\n\ndef how_many():\n    return len(LEDGER.read_text().splitlines()) if LEDGER.exists() else 0\n"
BEFORE, HALF, AFTER = POINTS[0], POINTS[2], POINTS[4]
ARGS = ("--args", '{"to": "ann", "weight": 2}')


@pytest.mark.parametrize(
    ("trial", "fault"),
    [
        (Trial(BEFORE, "unknown", "host", 1), ""),
        (Trial(BEFORE, "not_executed", "probe", 1), ""),
        (Trial(BEFORE, "confirmed", "probe", 1), "`confirms` is true too early"),
        (Trial(AFTER, "confirmed", "probe", 1), ""),
        (Trial(AFTER, "not_executed", "probe", 1), "`refutes` is no proof of absence"),
        (Trial(HALF, "confirmed", "probe", 1), ""),
        (Trial(HALF, "confirmed", "probe", 1, 0, 0), "`confirms` is true too early"),
        (Trial(HALF, "not_executed", "probe", 1, 1, 1), "`refutes` is no proof of absence"),
        (Trial(HALF, "not_executed", "probe", 1, answered=True), "`refutes` is no proof of absence"),
        (Trial(HALF, "confirmed", "tool", 2, 1, 2), "happened 2 times"),
        (Trial(HALF, "confirmed", "tool", 2, 0, 1), ""),
        (Trial(HALF, "confirmed", "tool", 2, 0, 0), "nothing was done"),
    ],
)
def test_a_trial_is_a_fault_where_the_host_believes_what_is_not_so(trial: Trial, fault: str):
    found = judge(SAME_KEY if trial.sent > 1 else SPEC, trial).fault
    assert fault in found
    assert bool(found) is bool(fault)


@pytest.fixture
def counted(office: Office) -> Office:
    tools = office.folder / "tools/office.py"
    tools.write_text(tools.read_text() + COUNTER)
    return office


def kit(office: Office, *words: str) -> tuple[int, list[dict[str, object]]]:
    said = office.ask("crash-test", "office.policy.yaml", "send", *ARGS, "--json", *words)
    assert said.code in (0, 1), said.err
    return said.code, said.json["trials"]


COUNT = ("--count", "python:office:how_many")


@pytest.mark.slow
def test_a_probe_that_tells_the_truth_holds_up(counted: Office):
    code, trials = kit(counted, *COUNT)
    assert code == 0, trials
    assert len(trials) == len(POINTS)
    assert trials[0]["outcome"] == "unknown", "its probe cannot refute"
    assert trials[0]["effects"] == 0
    assert trials[-2]["outcome"] == "confirmed"
    assert {trial["sent"] for trial in trials} == {1}


@pytest.mark.slow
def test_a_probe_that_says_yes_too_early_is_found(counted: Office):
    tools = counted.folder / "tools/office.py"
    tools.write_text(tools.read_text() + "\n\ndef find_sent(key):\n    return {'found': True}\n")
    code, trials = kit(counted)
    assert code == 1
    assert "too early" in str(trials[0]["fault"])


@pytest.mark.slow
def test_a_key_that_nobody_looks_at_is_found(counted: Office):
    specs = counted.folder / "office.tools.yaml"
    text = specs.read_text()
    (counted.folder / "office.tools.yaml").write_text(
        text.replace("    effects: [parcel.send]\n", "    effects: [parcel.send]\n    retry: same_key\n")
    )
    code, trials = kit(counted, *COUNT)
    assert code == 1
    assert "does not deduplicate by the key" in str(trials[-2]["fault"])


def test_what_cannot_be_tested_is_said(office: Office):
    for words in (
        ("look", "--args", '{"shelf": 1}'),
        ("sned", *ARGS),
        ("send", "--args", "{"),
        ("send", "--args", '{"to": "ann"}'),
        ("send", *ARGS, "--count", "office:how_many"),
    ):
        said = office.ask("crash-test", "office.policy.yaml", *words)
        assert said.code == 2, said.out
    assert office.ledger in ([], ["send ann 2"])
