"""`agentctl verify --secrets` as a user runs it: where a value got in, what was masked, what was not looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Ask, script

NOTES = "policies/notes.policy.yaml"
CANARY = "CANARY-93-0123456789"
SAYS = (
    f'  - text: "The token is {CANARY}"\n    calls: [{{tool: search_notes, args: {{words: "lighthouse"}}}}]\n'
)
ASKED = f"Is it {CANARY}?"


@pytest.fixture
def named(notes: Path) -> Path:
    file = notes / "agentctl.yaml"
    file.write_text(file.read_text() + "secrets:\n  crm: {env: CRM_TOKEN}\n  erp: {env: ERP_TOKEN}\n")
    return notes


def test_a_value_that_got_in_before_it_was_set_is_named_by_event(
    named: Path, agentctl: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = agentctl("run", NOTES, ASKED, "--model", script(named, SAYS)).run
    refused = agentctl("verify", run, "--secrets")
    assert refused.code == 2
    assert "no secret is registered here" in refused.err
    monkeypatch.setenv("CRM_TOKEN", CANARY)
    said = agentctl("verify", run, "--secrets")
    assert said.code == 1
    assert f"Run {run} holds" in said.out
    assert "event 2 (InputReceived): secret `crm` in the event\n" in said.out
    assert "(ModelTurnRecorded): secret `crm` in the event\n" in said.out
    assert said.out.endswith("not looked for, since their values are not set here: `erp`\n")
    assert CANARY not in said.out
    form = agentctl("verify", run, "--secrets", "--json")
    assert form.code == 1
    assert [leak["kind"] for leak in form.json["secrets"]] == ["InputReceived", "ModelTurnRecorded"]
    assert form.json["not_looked_for"] == ["erp"]


def test_a_run_of_which_all_was_masked_has_none(
    named: Path, agentctl: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_TOKEN", CANARY)
    monkeypatch.setenv("ERP_TOKEN", "another-0123456789")
    ran = agentctl("run", NOTES, ASKED, "--model", script(named, SAYS))
    assert "working text: The token is [secret crm]" in ran.out
    agentctl("reply", ran.run, f"also {CANARY}", "--only-record")
    said = agentctl("verify", ran.run, "--secrets")
    assert said.code == 0
    assert said.out.splitlines()[1:] == ["no registered secret is in it"]
    assert "“also [secret crm]”" in agentctl("log", ran.run).out
    assert CANARY not in ran.out + agentctl("log", ran.run, "--json").out
