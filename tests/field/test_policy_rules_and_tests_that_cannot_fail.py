"""Public reports about rules that match nothing, tests that test nothing, and judgement by wording."""

from __future__ import annotations

import itertools

import pytest

from engine.domain.facts import PENDING, Facts
from engine.policy.compiler import load_policy
from engine.policy.contract import blocker
from engine.policy.decision import Decision, Verdict, decide
from engine.policy.view import for_call, tool_facts
from tests.field.policy_files import codes, decided, policy
from tests.policy.examples import POLICIES, texts

_WHEN = "under(args.path, '.env') || under(args.path, 'app/.env')"


# --- microsoft/agent-governance-toolkit#3661: lint passes a rule that can never match ------------------------


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("toolname == 'read_file'", "C102"),
        ("tool.name == 'read_fil'", "C106"),
        ("args.pth == 'x'", "C103"),
        ("state.user.rol == 'x'", "C103"),
        ("principal.rol == 'x'", "C103"),
        ("'admin' in principal.roles", "C106"),
        ("run.turn > '100'", "C104"),
        ("run.turn", "C104"),
    ],
)
def test_a_condition_over_what_does_not_exist_is_an_error(condition: str, code: str) -> None:
    assert code in codes((_WHEN, condition))


# --- open-policy-agent/opa#7943: nothing ran, and the run is green --------------------------------------------


def test_a_case_that_expects_nothing_is_an_error() -> None:
    assert codes(("        expect: {calls: [{outcome: confirmed}]}\n", "")) == {"Y202"}
    assert codes(("expect: {calls: [{outcome: confirmed}]}", "expect: {}")) == {"Y202"}


def test_a_misspelled_expectation_is_an_error() -> None:
    assert codes(("expect: {calls: [{outcome: confirmed}]}", "expct: {calls: [{outcome: confirmed}]}")) >= {
        "Y201"
    }
    assert codes(("[{outcome: confirmed}]", "[{outcom: confirmed}]")) == {"Y201"}
    assert codes(("[{outcome: confirmed}]", "[{outcome: confirmd}]")) == {"Y204"}


# --- ynotbhatc/rego_policy_libraries#51: one undefined field voids the decision -------------------------------


@pytest.mark.parametrize(
    "because", ["{args.customer.name} %s {0:%d} {{x}}", "x" * 100_000, "{{ task.secret }}"]
)
def test_a_reason_is_text_and_never_changes_a_verdict(because: str) -> None:
    made = policy((f'when: "{_WHEN}"}}', f'when: "{_WHEN}", because: "{because}"}}'))
    found = decided(made, "read_file", {"path": ".env"})
    assert isinstance(found, Decision)
    assert found.verdict is Verdict.DENY
    assert found.rules[0].because == because


# --- code-yeongyu/oh-my-openagent#2773, Th0rgal/open-ralph-wiggum#36: completion decided by phrases ----------


@pytest.mark.parametrize(
    "gate",
    [
        'must_mention: ["all done"]',
        'regex: "all tasks are finished"',
        'llm_judge: "is it complete?"',
        "answer_complete: true",
        "keywords: [ferdig]",
    ],
)
def test_no_gate_reads_phrases(gate: str) -> None:
    assert codes(("finish: []", f"finish: [{{{gate}}}]")) == {"S303"}


@pytest.mark.parametrize("root", ["assistant.text", "answer", "message", "user.text", "plan", "confidence"])
def test_no_condition_can_name_what_was_said(root: str) -> None:
    assert codes(("finish: []", f"finish: [{{when: \"{root} == 'done'\"}}]")) == {"C102"}


def test_a_pattern_over_free_text_is_refused() -> None:
    found = codes(
        ("params: {path: {type: path}}", 'params: {path: {type: path}, why: {type: text, pattern: "done"}}')
    )
    assert found == {"S303"}


# --- HexamindOrganisation/hexgate#122: two evaluators of one policy disagree ----------------------------------

COLLECTIONS = ("prospectus", "annual_report", "internal_memo")


def worlds():
    for desk, grants, depth, roles in itertools.product(
        ("funds", "wealth"),
        ((), ("prospectus",), ("internal_memo",)),
        ("brief", "full"),
        (["analyst"], ["compliance"], []),
    ):
        yield Facts(
            principal={"id": "a1", "roles": roles, "desk": desk},
            task={"portfolio_id": "p1", "depth": depth},
            grants={"documents": [{"collection": name} for name in grants]} if grants else {},
            run={"read_untrusted": False, "labels": []},
        )


def test_what_the_contract_hides_no_arguments_can_make_permitted() -> None:
    made = load_policy(POLICIES["fund"], texts())
    checked = 0
    for facts in worlds():
        for name in ("read_document", "search_document"):
            spec = tool_facts(made.tools[name])
            shown = (
                blocker(made, name, for_call(facts, spec, dict.fromkeys(made.tools[name].params, PENDING)))
                is None
            )
            permitted = {
                collection: decide(made, name, for_call(facts, spec, {"collection": collection})).verdict
                for collection in COLLECTIONS
            }
            if not shown:
                assert set(permitted.values()) == {Verdict.DENY}
                checked += 1
    assert checked
