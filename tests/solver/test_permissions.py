"""Rules about permissions on the example policies: the exact deny, the exact value, and the honest cases."""

from __future__ import annotations

import pytest

from engine.domain.diagnostics import Diagnostic
from engine.policy.files import MemoryFiles
from engine.policy.linter import lint
from tests.policy.examples import OVERLAY, POLICIES, TOOLS, changed, texts, under


def found(name: str, files: dict[str, str], *codes: str) -> list[Diagnostic]:
    every = lint([POLICIES[name]], files=MemoryFiles(files)).diagnostics
    return [each for each in every if each.code in codes] if codes else list(every)


def edited(name: str, *edits: tuple[str, str], file: str | None = None) -> dict[str, str]:
    files = dict(texts())
    for old, new in edits:
        target = file or POLICIES[name]
        assert old in files[target], old
        files[target] = files[target].replace(old, new, 1)
    return files


def test_the_deny_that_always_wins_is_named() -> None:
    when = '    when: "task.kind == \'incident\'"\n    unless: "args.service'
    files = edited("ops", (when, when.replace("== 'incident'", "== 'incident' && task.freeze")))
    (only,) = found("ops", files)
    assert (only.code, under(files, only)) == ("P201", "restart")
    assert "deny `freeze`" in only.message


def test_a_deny_over_every_argument_that_an_ask_permits_is_shown_and_never_permitted() -> None:
    deny = (
        "  - id: no-programs\n    effect: deny\n    tools: [run_command]\n"
        "    when: \"args.argv[0] in ['uptime', 'df', 'free', 'systemctl']\"\n\n  - id: freeze\n"
    )
    files = edited("ops", ("  - id: freeze\n", deny))
    (only,) = found("ops", files)
    assert (only.code, under(files, only)) == ("P203", "run_command")
    assert "`no-programs`" in only.message


def test_a_deny_that_leaves_one_program_is_silent() -> None:
    deny = (
        "  - id: no-programs\n    effect: deny\n    tools: [run_command]\n"
        "    when: \"args.argv[0] in ['uptime', 'df', 'systemctl']\"\n\n  - id: freeze\n"
    )
    assert found("ops", edited("ops", ("  - id: freeze\n", deny))) == []


def test_several_denies_that_cover_a_permit_together_are_named_together() -> None:
    deny = '  - id: no-{0}\n    effect: deny\n    tools: [run_command]\n    when: "args.argv[0] {1}"\n\n'
    both = deny.format("df", "== 'df'") + deny.format("other", "!= 'df'")
    (only,) = found("ops", edited("ops", ("  - id: freeze\n", f"{both}  - id: freeze\n")))
    assert only.code == "P203"
    assert "`no-df`" in only.message
    assert "`no-other`" in only.message


def test_the_uncovered_request_is_named_by_its_value() -> None:
    branch = (
        "      - {when: \"params.collection == 'internal_memo'\", by: {roles: [compliance]}, "
        "not_requester: true, timeout: 4h}\n"
    )
    (only,) = found("fund", edited("fund", (branch, "")), "K305")
    assert "`collection = 'internal_memo'`" in only.message


UNATTENDED = '    unattended: {because: "A suggestion changes nothing until the shopper accepts it", max_per_run: 20}\n'
HIDDEN = ", when: \"task.channel == 'kiosk' && !done('place_order')\"}"
MANAGER = "by: {roles: [store_manager]}\n      not_requester: true"


@pytest.mark.parametrize(
    ("old", "new", "code", "text"),
    [
        ("when: \"principal.suspended\"", "when: \"state.cart.version > 50 && state.cart.version < 10\"", "P213", None),
        ("per_tool: {place_order: 1,", "per_tool: {check_stock: 0, place_order: 1,", "P204", "0"),
        (HIDDEN, "}", "P204", "no-mail-before-order"),
        ("products, check_stock]", "products, check_stock, get_cart]", "P204", "get_cart"),
        ("size(state.cart.items) > 0", "size(state.cart.items) >= 0", "C109", "size(state.cart.items) >= 0"),
        ("      - {state: profile, max_age: 5m}\n", "", "W213", "id"),
        (UNATTENDED, "", "W207", "allow"),
        (MANAGER, MANAGER.replace("manager]", "manager], same_principal: true"), "P208", "not_requester"),
    ],
)  # fmt: skip
def test_one_fault_in_the_retail_policy(old: str, new: str, code: str, text: str | None) -> None:
    files = changed(POLICIES["retail"], old, new)
    (only,) = found("retail", files)
    assert only.code == code
    assert text is None or under(files, only) == text


@pytest.mark.parametrize(
    ("name", "old", "new", "code", "text"),
    [
        ("retail", "{type: int, bind: state.cart.total_minor}", "{type: int}", "M401", "total_minor"),
        ("retail", "The cart, the prices", "Pass cart_id. The cart, the prices", "M402", "cart_id"),
        ("retail", "key: [run.id, template, order]", "key: [run.id, template, message]", "M405", "message"),
        ("retail", "ttl: 15s", "ttl: 5m", "W214", "5m"),
        ("retail", "key: [query, max_price_minor]", "key: [query]", "W215", "[query]"),
        ("retail", "get_hold, args: {key: idempotency_key}", "get_hold, args: {key: run.id}", "W220", "args"),
        ("ops", "key: [run.id, service, cluster], window", "key: [service], window", "W209", "[service]"),
    ],
)  # fmt: skip
def test_one_fault_in_a_tool(name: str, old: str, new: str, code: str, text: str) -> None:
    files = changed(TOOLS[name], old, new)
    (only,) = found(name, files)
    assert (only.code, under(files, only)) == (code, text)


def test_an_overlay_that_asks_a_role_that_the_policy_lacks_cannot_be_answered() -> None:
    files = changed(OVERLAY, "by: {roles: [maintainer]}", "by: {roles: [security_officer]}")
    (only,) = found("ops", files)
    assert (only.code, only.location.file) == ("P208", OVERLAY)
    assert found("fund", files) == []  # it matches no tool there


def test_a_rule_that_cannot_match_for_one_of_its_tools_only_is_not_impossible() -> None:
    files = changed(
        OVERLAY, "run.read_untrusted && !tool.reversible", "run.read_untrusted && tool.reversible"
    )
    assert found("retail", files, "P213") == []


def test_bound_arguments_are_the_facts_that_they_are_bound_to() -> None:
    pytest.importorskip("z3")
    files = changed(
        POLICIES["retail"],
        "args.total_minor > limits.small_order_minor",
        "args.total_minor > limits.small_order_minor && args.total_minor != state.cart.total_minor",
    )
    assert [each.code for each in found("retail", files)] == ["P213"]


def test_the_word_of_a_bound_parameter_in_a_description_is_no_order_to_supply_it() -> None:
    files = changed(
        TOOLS["retail"],
        "The address comes from the profile.",
        "Sent to the profile's address, with the order.",
    )
    assert found("retail", files, "M402") == []


@pytest.mark.parametrize(
    "kind", ["{type: enum, values: [open, closed]}", "{type: enum, values: [todo, done]}"]
)
def test_an_honest_parameter_called_status_is_no_claim(kind: str) -> None:
    files = changed(
        TOOLS["retail"], "      shipping:     {", f"      status:       {kind}\n      shipping:     {{"
    )
    assert found("retail", files, "M403", "M408") == []
