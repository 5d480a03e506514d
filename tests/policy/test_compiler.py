"""From text to Policy: the examples, identity, overlays, limits, and files with many faults."""

from __future__ import annotations

import shutil
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from engine.domain.canonical import digest
from engine.domain.errors import PolicyInvalid, SourceError
from engine.domain.policy import Effect, Policy
from engine.domain.types import ArgClass
from engine.policy.compiler import STAGES, compile_policy, load_policy
from tests.policy.examples import OVERLAY, POLICIES, ROOT, TOOLS, changed, compiled, errors, texts


def policy_of(name: str, files: dict[str, str] | None = None) -> Policy:
    found = compiled(name, files)
    assert found.policy is not None, found.diagnostics
    return found.policy


@pytest.mark.parametrize("name", POLICIES)
def test_the_examples_compile_without_a_finding(name: str) -> None:
    assert compiled(name).diagnostics == ()


def test_the_policy_of_the_project_compiles_without_a_finding() -> None:
    found = compile_policy(ROOT.parent.parent / "policies" / "fund-research.policy.yaml", with_tests=True)
    assert found.diagnostics == ()
    assert list(found.timings) == list(STAGES)


# --- identity ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES)
def test_a_bundle_compiles_to_the_same_policy(name: str) -> None:
    policy = policy_of(name)
    assert compile_policy(policy.file, policy.bundle).policy == policy
    assert POLICIES[name] in policy.bundle
    assert not any("test" in file for file in policy.bundle)


def test_a_bundle_keeps_what_the_deployment_added() -> None:
    given = {"extra_overlays": [OVERLAY], "limits": {"small_order_minor": 9000}}
    files = changed(POLICIES["retail"], "overlays:   [../../org/org-baseline.overlay.yaml]\n", "")
    policy = load_policy(POLICIES["retail"], files, **given)  # type: ignore[arg-type]  # as keywords
    again = load_policy(policy.file, policy.bundle)
    assert again == policy
    assert again.limits["small_order_minor"].value == 9000
    assert [overlay.id for overlay in again.overlays] == ["org-baseline"]
    assert policy.digest != load_policy(POLICIES["retail"], files).digest


def test_comments_layout_and_tests_do_not_change_the_digest() -> None:
    digest = policy_of("fund").digest
    for file, old, new in [
        (POLICIES["fund"], "version: 12", "version:   12   # twelve"),
        (POLICIES["fund"], "tests: [../tests/fund-research.test.yaml]", ""),
        (TOOLS["fund"], "exposed: host", '"exposed":   "host"'),
        (OVERLAY, "owner: security", "owner: 'security'"),
    ]:
        assert policy_of("fund", changed(file, old, new)).digest == digest


def test_every_fact_of_policy_tools_overlays_and_prompt_changes_the_digest() -> None:
    digests = {policy_of("fund").digest}
    for file, old, new in [
        (POLICIES["fund"], "turns: 40", "turns: 41"),
        (TOOLS["fund"], "ttl: 5m", "ttl: 6m"),
        (OVERLAY, "expires: 30m", "expires: 31m"),
        ("fund/prompts/system.md.j2", "Investigate", "Look"),
    ]:
        digests.add(policy_of("fund", changed(file, old, new)).digest)
    assert len(digests) == 5


def test_compiling_from_disk_and_from_memory_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT, tmp_path / "p")
    monkeypatch.chdir(tmp_path / "p")
    assert load_policy(POLICIES["ops"]) == policy_of("ops")


# --- composition ------------------------------------------------------------------------------------------


def test_budgets_are_the_smaller_of_policy_and_overlays() -> None:
    files = changed(OVERLAY, "turns: 80", "turns: 7\n  calls: {per_tool: {place_order: 0, send_email: 9}}")
    policy = policy_of("retail", files)
    assert (policy.budgets.turns, policy.budgets.cost_usd) == (7, Decimal("0.60"))
    assert policy.budgets.calls_per_tool == {"place_order": 0, "send_email": 2, "reserve_inventory": 3}


def test_overlay_rules_come_after_the_rules_of_the_policy_and_say_where_they_are_from() -> None:
    policy = policy_of("ops")
    assert [rule.id for rule in policy.rules_of["restart_service"]] == [
        "restart",
        "untrusted-text-then-host",
        "freeze",
        "host-and-service-four-eyes",
        "untrusted-then-irreversible",
    ]
    assert policy.rules[-1].origin == "overlay org-baseline"
    assert policy.rules[0].place.file == POLICIES["ops"]


def test_selectors_restrict_every_tool_they_match() -> None:
    policy = policy_of("retail")
    suspended = next(rule for rule in policy.rules if rule.id == "suspended-shoppers")
    assert suspended.matches == {
        "suggest_cart_change",
        "reserve_inventory",
        "place_order",
        "send_email",
        "release_inventory",
        "withdraw_suggestion",
    }


def test_publications_are_matched_by_their_name_and_by_the_star_only() -> None:
    rule = '  - {id: quiet, effect: deny, tools: ["*"], when: "task.depth == \'brief\'"}\n'
    policy = policy_of("fund", changed(POLICIES["fund"], "permissions:\n", f"permissions:\n{rule}"))
    assert [found.id for found in policy.rules_of["publish_research_note"]] == ["quiet"]
    named = changed(
        POLICIES["fund"],
        "tools: [search_document, read_document]\n    when",
        "tools: [publish_research_note]\n    when",
    )
    (found,) = compiled("fund", named).diagnostics
    assert found.message == "`publish_research_note` has no parameter `collection`"


def test_the_deployment_may_move_a_limit_up_to_its_maximum() -> None:
    file = POLICIES["retail"]
    assert (
        load_policy(file, texts(), limits={"small_order_minor": 10000}).limits["small_order_minor"].value
        == 10000
    )
    for limits in (
        {"small_order_minor": 10001},
        {"order_cap_minor": 1},
        {"small_order": 1},
        {"small_order_minor": "1"},
    ):
        with pytest.raises(PolicyInvalid) as caught:
            load_policy(file, texts(), limits=limits)
        assert caught.value.diagnostics[0].help


# --- pieces -----------------------------------------------------------------------------------------------


def test_a_tool_spec_has_its_declared_facts() -> None:
    tool = policy_of("retail").tools["place_order"]
    assert [param.name for param in tool.model_params] == ["shipping", "gift_note"]
    assert tool.params["address_id"].arg_class is ArgClass.REFERENCE
    assert tool.params["gift_note"].arg_class is ArgClass.PAYLOAD
    assert tool.timeout == timedelta(seconds=20)
    assert tool.reconcile is not None
    assert tool.reconcile.refutes is not None
    assert tool.digest != policy_of("retail").tools["send_email"].digest


def test_conditions_are_compiled_where_they_stand() -> None:
    rule = policy_of("fund").rules_of["read_document"][0]
    assert rule.effect is Effect.ALLOW
    assert rule.when is not None
    assert rule.when.reads == {"args.collection", "grant.documents.collection"}


def test_a_fault_of_shape_silences_no_finding_about_the_rest_of_the_file() -> None:
    files = changed(POLICIES["retail"], "turns: 30", "turns: many")
    files = {
        **files,
        POLICIES["retail"]: files[POLICIES["retail"]].replace("principal.suspended", "principal.suspendet"),
    }
    assert [found.code for found in compiled("retail", files).diagnostics] == ["C103", "Y205"]


def test_rules_can_read_a_policy_that_has_faults() -> None:
    result = compiled("retail", changed(POLICIES["retail"], "turns: 30", "turns: many"))
    assert result.policy is None
    assert result.model.policy is not None
    assert len(result.model.policy.rules) == 9
    part = result.model.policy_part
    assert part is not None
    assert part.permissions[1].place("effect").column == 13


def test_a_missing_file_raises_one_finding_and_no_false_ones() -> None:
    files = {name: text for name, text in texts().items() if name != TOOLS["retail"]}
    found = compiled("retail", files).diagnostics
    assert [each.code for each in found] == ["R210"]


def test_a_policy_that_cannot_be_read_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.yaml", tmp_path):
        with pytest.raises(SourceError) as caught:
            compile_policy(path)
        assert caught.value.remedy


def test_findings_about_a_condition_point_into_a_block_scalar() -> None:
    old = "when: \"args.template == 'order_question' || done('place_order')\""
    new = "when: >\n      args.template == 'order_question' ||\n      done('place_ordr')"
    files = changed(POLICIES["retail"], old, new)
    (found,) = compiled("retail", files).diagnostics
    line = files[found.location.file].splitlines()[found.location.line - 1]
    assert (found.code, line[found.location.column - 1 :]) == ("R201", "'place_ordr')")


def test_an_overlay_that_is_pinned_must_have_that_digest() -> None:
    text = texts()[OVERLAY]
    for pin, found in ((digest(text), []), (digest(text)[:12], []), ("0" * 64, ["Y205"]), ("abc", ["Y205"])):
        pinned = changed(
            POLICIES["ops"], "org-baseline.overlay.yaml", f"org-baseline.overlay.yaml@sha256:{pin}"
        )
        result = compiled("ops", pinned)
        assert [each.code for each in errors(result)] == found, pin
        assert all(digest(text) in each.help for each in errors(result))


def test_a_file_of_the_policy_is_not_taken_for_an_overlay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in texts().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name in (POLICIES["mini"], f"./{POLICIES['mini']}", TOOLS["mini"]):
        with pytest.raises(SourceError, match="is no overlay"):
            load_policy(POLICIES["mini"], extra_overlays=[name])


def test_an_overlay_that_policy_and_deployment_name_counts_once_however_it_is_spelt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in texts().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    policy = load_policy(POLICIES["ops"], extra_overlays=[f"./{OVERLAY}"])
    assert [overlay.id for overlay in policy.overlays] == ["org-baseline"]
    assert load_policy(policy.file, policy.bundle).digest == policy.digest


def test_faults_of_an_overlay_of_the_deployment_are_looked_for_in_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (POLICIES["mini"], TOOLS["mini"], "mini/notes.test.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(texts()[name], encoding="utf-8")
    (tmp_path / "bad.overlay.yaml").write_text(
        "agentctl: overlay/v1\nid: bad\nversion: 1\n", encoding="utf-8"
    )
    with pytest.raises(PolicyInvalid) as raised:
        load_policy(POLICIES["mini"], extra_overlays=["bad.overlay.yaml"])
    assert raised.value.remedy == f"run `agentctl lint {POLICIES['mini']} bad.overlay.yaml`"
