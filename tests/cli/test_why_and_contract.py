"""`agentctl why` and `agentctl contract`: the rules with their places, the facts they read, the tools as sent."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Ask
from tests.conftest import Golden

RECORDED = Path(__file__).parent / "golden"
FACTS = Path(__file__).parent / "facts"
DIGEST = re.compile(r"\b[0-9a-f]{12}\b")
FUND = "policies/fund-research.policy.yaml"
FUND_DEMO = ("--model", "scripted/examples/fund-research.script.yaml")


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example policies and some facts about them, as the working directory."""
    for name in ("policies", "tool_specs"):
        shutil.copytree(ROOT / "tests/policies/retail" / name, tmp_path / "retail" / name)
        shutil.copytree(ROOT / "tests/policies/fund" / name, tmp_path / "fund" / name)
        shutil.copytree(ROOT / "tests/policies/ops" / name, tmp_path / "ops" / name)
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("retail", "fund", "ops"):
        shutil.copytree(ROOT / "tests/policies" / name / "prompts", tmp_path / name / "prompts")
    shutil.copytree(ROOT / "tests/policies/org", tmp_path / "org")
    for file in FACTS.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plain(text: str) -> str:
    return DIGEST.sub("DIGEST", text)


RETAIL, OPS = "retail/policies/retail-order.policy.yaml", "ops/policies/repo-ops.policy.yaml"
RESEARCH = "fund/policies/fund-research.policy.yaml"
QUESTIONS = {
    "hidden": (RETAIL, "place_order", "--facts", "kiosk.yaml"),
    "two_approvals": (
        RETAIL, "place_order", "--facts", "kiosk-held.yaml", "--args", '{"shipping": "express"}'
    ),
    "deny": (
        RESEARCH, "read_document", "--facts", "wealth-analyst.yaml",
        "--args", '{"collection": "internal_memo", "document": "d1"}',
    ),
    "no_rule": (OPS, "restart_service", "--facts", "incident.yaml", "--args", '{"service": "billing"}'),
    "finish": (RESEARCH, "finish", "--facts", "wealth-analyst.yaml"),
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_why_names_the_deciding_rules_and_the_facts_they_read(
    agents: Path, agentctl: Ask, golden: Golden, name: str
) -> None:
    said = agentctl("why", *QUESTIONS[name])
    assert said.code == 0, said.err
    golden(RECORDED / f"why_{name}.txt", plain(said.out))


@pytest.mark.parametrize(
    ("name", "policy", "facts"),
    [
        ("retail", RETAIL, "kiosk.yaml"),
        ("ops", OPS, "incident.yaml"),
        ("fund", RESEARCH, "wealth-analyst.yaml"),
    ],
)
def test_contract_says_what_is_shown_and_why_the_rest_is_not(
    agents: Path, agentctl: Ask, golden: Golden, name: str, policy: str, facts: str
) -> None:
    said = agentctl("contract", policy, "--facts", facts)
    assert said.code == 0, said.err
    golden(RECORDED / f"contract_{name}.txt", plain(said.out))


def test_the_contract_is_the_array_of_functions_that_is_sent(agents: Path, agentctl: Ask) -> None:
    tools = agentctl("contract", RETAIL, "--facts", "kiosk-held.yaml", "--tools").json
    (order,) = [tool["function"] for tool in tools if tool["function"]["name"] == "place_order"]
    assert order["parameters"] == {
        "type": "object",
        "properties": {
            "shipping": {"type": "string", "enum": ["standard", "express"]},
            "gift_note": {"type": "string", "maxLength": 300},
        },
        "required": ["shipping"],
        "additionalProperties": False,
    }


def test_the_facts_that_move_a_contract_are_listed(agents: Path, agentctl: Ask, golden: Golden) -> None:
    said = agentctl("contract", RETAIL, "--facts", "kiosk.yaml", "--explain-changes")
    golden(RECORDED / "contract_changes.txt", said.out)
    moved = agentctl("contract", RETAIL, "--facts", "kiosk.yaml", "--explain-changes", "--json").json[
        "moved_by"
    ]
    assert moved["receipts of reserve_inventory"] == ["place_order"]


def test_json_counts_tokens_and_says_that_they_are_an_estimate(agents: Path, agentctl: Ask) -> None:
    form = agentctl("contract", RETAIL, "--facts", "kiosk.yaml", "--json").json
    assert form["schema"] == "agentctl.contract/v1"
    assert form["tokens"]["counter"] == "estimate"
    assert form["tokens"]["tools"] > 100
    assert set(form["absent"]) == {"place_order", "send_email"}


def test_json_of_why_names_rules_by_place(agents: Path, agentctl: Ask) -> None:
    form = agentctl("why", *QUESTIONS["two_approvals"], "--json").json
    assert (form["shown"], form["decision"]) == (True, "ask")
    (judged,) = form["policies"]
    assert [(rule["id"], rule["effect"]) for rule in judged["decided_by"]] == [
        ("order-after-hold", "ask"),
        ("big-orders-need-manager", "require"),
    ]
    assert judged["approvals"][1]["not_requester"] is True


def test_a_policy_can_be_named_by_its_id(agents: Path, agentctl: Ask) -> None:
    assert agentctl("contract", "retail-order", "--facts", "kiosk.yaml").code == 0
    said = agentctl("contract", "retail-ordr", "--facts", "kiosk.yaml")
    assert said.code == 2
    assert "did you mean `retail-order`?" in said.err


def test_options_state_facts_without_a_file_and_over_it(agents: Path, agentctl: Ask) -> None:
    stated = (
        "--as", "u1", "--role", "shopper", "--attr", "store=s9", "--attr", "suspended=false", "--task", "channel=web",
        "--state", "cart.id=c1", "--state", "cart.version=1",
        "--state", 'cart.items=[{"sku": "a", "quantity": 1, "unit_minor": 5}]',
    )  # fmt: skip
    assert "reserve_inventory" in agentctl("contract", RETAIL, *stated).out
    hidden = agentctl("contract", RETAIL, "--facts", "kiosk.yaml", "--source", "stock=unavailable")
    assert "reserve_inventory      source `stock` is unavailable" in hidden.out
    denied = agentctl("contract", RETAIL, "--facts", "kiosk.yaml", "--attr", "suspended=true")
    assert "reserve_inventory      deny `suspended-shoppers`" in denied.out


@pytest.mark.parametrize(
    ("words", "message", "help_"),
    [
        (("why", RETAIL, "place_ordr", "--facts", "kiosk.yaml"), "has no tool `place_ordr`", "`place_order`"),
        (("why", "place_order"), "no policy is named", "--run RUN"),
        (("why", RETAIL, "finish", "--facts", "nowhere.yaml"), "there is no file `nowhere.yaml`", "check the path"),
        (("why", RETAIL, "finish"), "nobody is named", "--as ID"),
        (("why", RETAIL, "finish", "--as", "u", "--role", "shoper"), "no role `shoper`", "`shopper`"),
        (("why", RETAIL, "finish", "--facts", "kiosk.yaml", "--task", "channel=webb"), "one of: web, kiosk", "enum"),
        (("why", RETAIL, "finish", "--facts", "kiosk.yaml", "--state", "crt.id=1"), "no state slice `crt`", "`cart`"),
        (("why", RETAIL, "finish", "--facts", "kiosk.yaml", "--source", "stok=degraded"),
         "no source `stok`", "`stock`"),
        (("why", RETAIL, "place_order", "--facts", "kiosk.yaml", "--args", "[1]"), "is no JSON object", "--args"),
        (("why", RETAIL, "finish", "--run", "r1"), "has its own policy", "leave out"),
    ],
)  # fmt: skip
def test_what_cannot_be_looked_at_is_said(
    agents: Path, agentctl: Ask, words: tuple[str, ...], message: str, help_: str
) -> None:
    said = agentctl(*words)
    assert said.code == 2
    assert message in said.err
    assert help_ in said.err


def test_a_misspelled_key_of_a_facts_file_is_a_finding(agents: Path, agentctl: Ask) -> None:
    (agents / "bad.yaml").write_text("principle: {id: u1, roles: [shopper]}\nhistory: [{call: reserve}]\n")
    said = agentctl("contract", RETAIL, "--facts", "bad.yaml")
    assert said.code == 2
    assert "did you mean `principal`?" in said.err
    assert "there is no tool `reserve`" in said.err


def test_past_calls_count_with_their_outcomes_and_results(agents: Path, agentctl: Ask) -> None:
    base = (agents / "incident.yaml").read_text(encoding="utf-8").replace("oncall", "developer")
    for result, shown in (("{verdict: pass}", "yes"), ("{verdict: fail}", "no")):
        history = f"history: [{{call: run_check, args: {{check: unit}}, result: {result}}}]\n"
        (agents / "past.yaml").write_text(base + history, encoding="utf-8")
        said = agentctl("why", OPS, "open_pull_request", "--facts", "past.yaml")
        assert f"shown this turn: {shown}" in said.out
    (agents / "past.yaml").write_text(
        base + "history: [{call: read_issue, args: {number: 5}}]\n", encoding="utf-8"
    )
    assert "shown this turn: no" in agentctl("why", OPS, "open_pull_request", "--facts", "past.yaml").out


def test_an_unknown_past_effect_permits_nothing(agents: Path, agentctl: Ask) -> None:
    text = (agents / "kiosk.yaml").read_text(encoding="utf-8")
    (agents / "unknown.yaml").write_text(text + "history: [{call: reserve_inventory, outcome: unknown}]\n")
    said = agentctl("why", RETAIL, "place_order", "--facts", "unknown.yaml")
    assert "reserve_inventory: 1 unknown, 1 open or of unknown outcome" in said.out
    assert "no_unknown_effects" in agentctl("why", RETAIL, "finish", "--facts", "unknown.yaml").out


# --- recorded Runs ------------------------------------------------------------------------------------------


def test_a_recorded_turn_is_decided_again_under_its_own_facts(fund: Path, agentctl: Ask) -> None:
    """Before the grant the documents are hidden, after it they are shown; the digests are those that were recorded."""
    run = agentctl("run", FUND, "Is it?", *FUND_DEMO).run
    log = agentctl("log", run, "--json").out
    compiled = [json.loads(line) for line in log.splitlines() if '"ContractCompiled"' in line]
    turns = [json.loads(line) for line in log.splitlines() if '"ModelTurnRecorded"' in line]
    for turn in turns:
        form = agentctl("contract", "--run", run, "--turn", str(turn["turn"]), "--json").json
        assert form["digest"] == turn["contract"]
    assert len(compiled) > 1
    before = agentctl("why", "search_document", "--run", run, "--turn", "1").out
    assert "shown this turn: no" in before
    assert "needs documents, which is not granted" in before
    last = str(turns[-1]["turn"])
    assert "shown this turn: yes" in agentctl("why", "search_document", "--run", run, "--turn", last).out


def test_why_finish_of_a_recorded_turn_names_the_gates(fund: Path, agentctl: Ask) -> None:
    run = agentctl("run", FUND, "Is it?", *FUND_DEMO).run
    said = agentctl("why", "finish", "--run", run, "--turn", "1")
    assert "proposed now, it is rejected" in said.out
    assert "fails  output_committed research_note" in said.out


def test_a_turn_that_never_was_is_refused(fund: Path, agentctl: Ask) -> None:
    run = agentctl("run", FUND, "Is it?", *FUND_DEMO).run
    said = agentctl("contract", "--run", run, "--turn", "99")
    assert said.code == 2
    assert "has no turn 99" in said.err
