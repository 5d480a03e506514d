"""Owns the promises of approvals: one stored call, once, by the right people, in time; and what outlives a call."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from engine.domain.errors import Refused, UsageError
from engine.domain.events import ApprovalGiven
from engine.domain.ids import CallId
from engine.lifecycle.standing import active
from engine.runtime import signals
from engine.runtime.approvals import Approval
from engine.runtime.loading import read_overlay
from tests.durable.shop import COPIES, asking, letter, letters, load, person, post_room
from tests.runtime.bench import LEAD, ME, OTHER_LEAD, Bench, compiled, final, one_result_per_proposal, say

EDITABLE = "by: {roles: [lead]}, expires: 90s, edit: [args.copies]"
STANDING = "by: {roles: [lead]}, expires: 90s, standing: {max_age: 1h, max_calls: 2}"
FIRST = CallId(1, 1)


def approve(bench: Bench, call: CallId, by: Any = LEAD, **decision: Any) -> None:
    bench.runtime().approve(bench.run, call, by=by, decision=Approval(**decision))


# --- edits ------------------------------------------------------------------------------------------------


def test_an_edited_call_runs_as_amended_and_both_digests_are_kept():
    bench = letters(say(letter(copies=12)), final(), approval=EDITABLE)
    bench.drive()
    original = bench.call(1, 1).approval.digest
    approve(bench, FIRST, edits={"copies": 14})
    bench.drive()
    assert bench.shop.ledger == ["letter ann x14"]
    given = bench.of_kind("ApprovalGiven")[0].body
    assert isinstance(given, ApprovalGiven)
    assert given.amendment is not None
    assert given.digest == original != given.amendment.digest
    assert bench.call(1, 1).amended.original_digest == original


def test_the_model_is_told_that_a_person_changed_the_arguments():
    """langchain-ai/langchain#33787: the result says what ran and what was proposed, so nothing looks unmet."""
    bench = letters(say(letter(copies=12)), say(letter(copies=12)), final(), approval=EDITABLE)
    bench.drive()
    approve(bench, FIRST, edits={"copies": 14})
    bench.drive()
    (result,) = bench.results(1)
    told = json.loads(result.text)["amended"]
    assert told["proposed"]["copies"] == 12
    assert told["now"]["copies"] == 14
    assert told["by"] == "lead1"
    again = bench.call(2, 1)
    assert again.status == "held", "the same proposal again is a new call that needs its own approval"
    assert again.approval.shown["amended_before"] == [
        {
            "call": "1.1",
            "proposed": {"to": "ann", "copies": 12},
            "amended": {"to": "ann", "copies": 14},
            "by": "lead1",
        }
    ]


@pytest.mark.parametrize("edits", [{"to": "bob"}, {"tool": "wipe_cache"}, {"copies": 2, "to": "bob"}])
def test_only_declared_arguments_of_the_same_tool_can_be_edited(edits: dict[str, Any]):
    """langchain-ai/langchain#40166: an edit cannot turn the call into another one."""
    bench = letters(say(letter()), final(), approval=EDITABLE)
    bench.drive()
    with pytest.raises(Refused, match="no rule lets an approver edit"):
        approve(bench, FIRST, edits=edits)
    assert bench.kinds.count("DecisionNotEligible") == 1
    assert not bench.of_kind("ApprovalGiven")


@pytest.mark.parametrize("copies", [0, 501, "many", None, 1.5])
def test_an_edited_value_is_checked_against_the_tool_spec(copies: Any):
    bench = letters(say(letter()), final(), approval=EDITABLE)
    bench.drive()
    with pytest.raises(UsageError, match="copies"):
        approve(bench, FIRST, edits={"copies": copies})
    assert bench.status == "awaiting_approval"


def test_an_edited_call_is_decided_again_by_every_rule():
    rule = "id: bulk, effect: deny, tools: [send_letter], when: 'args.copies > 100'"
    bench = letters(say(letter()), final(), approval=EDITABLE, more=(rule,))
    bench.drive()
    approve(bench, FIRST, edits={"copies": 101})
    bench.drive()
    assert bench.outcome(1, 1) == "not_executed"
    assert "bulk" in bench.call(1, 1).receipt.detail
    assert bench.shop.ledger == []


def test_an_edit_that_another_rule_wants_people_for_waits_for_them():
    rule = (
        "id: bulk, effect: require, tools: [send_letter], when: 'args.copies > 100', "
        "approval: {by: {roles: [lead]}, not_requester: true, quorum: 2, expires: 1h}"
    )
    bench = letters(say(letter()), final(), approval=EDITABLE, more=(rule,))
    bench.drive()
    approve(bench, FIRST, edits={"copies": 200})
    bench.drive()
    assert bench.status == "awaiting_approval"
    assert bench.call(1, 1).approval.missing() == ("bulk",)
    bench.approve(1, 1, LEAD)
    bench.approve(1, 1, OTHER_LEAD)
    bench.drive()
    assert bench.shop.ledger == ["letter ann x200"]


def test_who_approved_the_original_did_not_approve_the_amended_call():
    bench = letters(say(letter()), final(), approval=f"{EDITABLE}, quorum: 2")
    bench.drive()
    approve(bench, FIRST, LEAD)
    approve(bench, FIRST, OTHER_LEAD, edits={"copies": 9})
    bench.drive()
    assert bench.status == "awaiting_approval"
    approve(bench, FIRST, LEAD)
    bench.drive()
    assert bench.shop.ledger == ["letter ann x9"]


def test_an_approval_of_what_was_shown_before_the_edit_is_refused():
    bench = letters(say(letter()), final(), approval=f"{EDITABLE}, quorum: 2")
    bench.drive()
    seen = bench.call(1, 1).approval.digest
    approve(bench, FIRST, OTHER_LEAD, edits={"copies": 9})
    with pytest.raises(Refused, match="another one than was shown"):
        approve(bench, FIRST, LEAD, digest=seen)


# --- who --------------------------------------------------------------------------------------------------


def test_a_quorum_counts_different_people_and_nobody_twice():
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 90s, quorum: 2")
    bench.drive()
    bench.approve(1, 1, LEAD)
    bench.approve(1, 1, LEAD)
    bench.drive()
    assert bench.status == "awaiting_approval"
    bench.approve(1, 1, OTHER_LEAD)
    bench.drive()
    assert bench.shop.ledger == ["letter ann x1"]
    assert bench.call(1, 1).approved_by == "lead1, lead2"


@pytest.mark.parametrize(
    "by", [person("", "lead"), person("u1", "lead"), person("x", "clerk"), person("x")], ids=repr
)
def test_an_approval_without_an_eligible_approver_changes_nothing_and_is_recorded(by: Any):
    """microsoft/autogen#5891: the log answers who allowed it, and who tried."""
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 90s, not_requester: true")
    bench.drive()
    with pytest.raises(Refused):
        bench.approve(1, 1, by)
    tried = bench.of_kind("DecisionNotEligible")[0]
    assert tried.actor == by
    bench.drive()
    assert bench.status == "awaiting_approval"


def test_the_same_id_from_another_issuer_is_not_the_requester():
    only_me = "by: {roles: [clerk], same_principal: true}, expires: 90s"
    bench = letters(say(letter()), final(), approval=only_me)
    bench.drive()
    with pytest.raises(Refused, match="only `u1` may"):
        bench.approve(1, 1, person("u1", "clerk", issuer="https://elsewhere"))
    bench.approve(1, 1, ME)
    bench.drive()
    assert bench.shop.ledger == ["letter ann x1"]


def test_a_policy_can_demand_signed_approvers():
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 90s, signed: true")
    bench.drive()
    for issuer in ("local", ""):
        with pytest.raises(Refused, match="needs a signed identity"):
            bench.approve(1, 1, person("lead1", "lead", issuer=issuer))
    bench.approve(1, 1, person("lead1", "lead", issuer="https://idp"))
    bench.drive()
    assert bench.shop.ledger == ["letter ann x1"]


# --- when -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("milliseconds", "in_time"), [(89_999, True), (90_000, True), (90_001, False)])
def test_an_approval_counts_up_to_the_very_millisecond_of_its_expiry(milliseconds: int, in_time: bool):
    """artokun/comfyui-mcp#2440: the deadline compares the Host's clock and is inclusive."""
    bench = letters(say(letter()), say(letter("bob")), final(), approval="by: {roles: [lead]}, expires: 90s")
    bench.drive()
    bench.clock.time += timedelta(milliseconds=milliseconds)
    if in_time:
        bench.approve(1, 1)
        bench.drive()
        assert bench.shop.ledger == ["letter ann x1"]
        return
    with pytest.raises(Refused, match="expired"):
        bench.approve(1, 1)
    bench.drive()
    assert bench.call(1, 1).receipt.denial == "expired"
    assert bench.call(2, 1).approval.given == [], "a late yes is not spent by the next call"
    assert bench.shop.ledger == []


def test_refused_expired_undecided_and_never_asked_are_told_apart():
    deny = "id: none-to-eve, effect: deny, tools: [send_letter], when: \"args.to == 'eve'\""
    bench = letters(
        say(letter("ann")), say(letter("bob")), say(letter("eve")), say(letter("dan")),
        approval="by: {roles: [lead]}, expires: 90s", more=(deny,),
    )  # fmt: skip
    bench.drive()
    bench.refuse(1, 1, because="too early")
    bench.drive()
    bench.clock.advance(seconds=91)
    bench.drive()
    assert bench.outcome(3, 1) == "rejected"
    assert bench.call(3, 1).refusal.code == "denied"
    assert bench.call(3, 1).approval is None
    said = [json.loads(bench.results(turn)[0].text) for turn in (1, 2, 3)]
    assert said[0]["denial"] == "refused"
    assert said[0]["message"] == "refused by lead1: too early"
    assert said[1]["denial"] == "expired"
    assert said[1]["message"] == "expired: nobody decided in time"
    assert "denial" not in said[2]
    bench.cancel()
    bench.drive()
    assert bench.call(4, 1).receipt.denial == "undecided"
    one_result_per_proposal(bench.log)


# --- standing approvals -----------------------------------------------------------------------------------


def test_a_standing_approval_covers_the_same_call_later_as_often_as_it_says():
    bench = letters(*[say(letter())] * 4, final(), approval=STANDING)
    bench.drive()
    approve(bench, FIRST, standing=True)
    bench.drive()
    assert bench.shop.ledger == ["letter ann x1"] * 3
    assert bench.call(2, 1).approved_by == "standing approval S1 of lead1"
    assert bench.outcome(4, 1) == "held"
    assert [event.body.because for event in bench.of_kind("StandingEnded")] == ["calls"]


@pytest.mark.parametrize("other", [letter("bob"), letter(copies=2)], ids=["to", "copies"])
def test_a_standing_approval_covers_no_other_argument(other: Any):
    bench = letters(say(letter()), say(other), final(), approval=STANDING)
    bench.drive()
    approve(bench, FIRST, standing=True)
    bench.drive()
    assert bench.status == "awaiting_approval"
    assert bench.shop.ledger == ["letter ann x1"]


def test_a_standing_approval_of_one_rule_does_not_answer_for_another():
    rule = (
        "id: again, effect: require, tools: [send_letter], when: \"count('send_letter') > 0\", "
        "approval: {by: {roles: [lead]}, expires: 1h}"
    )
    bench = letters(say(letter()), say(letter()), final(), approval=STANDING, more=(rule,))
    bench.drive()
    approve(bench, FIRST, standing=True)
    bench.drive()
    assert bench.status == "awaiting_approval"


@pytest.mark.parametrize(("milliseconds", "stands"), [(3_600_000, True), (3_600_001, False)])
def test_a_standing_approval_ends_by_time(milliseconds: int, stands: bool):
    bench = letters(
        say(letter()), say(("ask_user", {"question": "?"})), say(letter()), final(), approval=STANDING
    )
    bench.drive()
    approve(bench, FIRST, standing=True)
    bench.drive()
    bench.clock.time += timedelta(milliseconds=milliseconds)
    bench.reply("go on")
    bench.drive()
    assert bench.shop.ledger == ["letter ann x1"] * (2 if stands else 1)
    assert (bench.status == "completed") is stands


def test_a_standing_approval_that_ran_out_covers_nothing_before_its_end_is_recorded():
    bench = letters(say(letter()), say(letter()), final(), approval=STANDING)
    bench.drive()
    approve(bench, FIRST, standing=True)
    (standing,) = bench.state.standing.values()
    assert standing.expires_at is not None
    assert active(standing, standing.expires_at)
    assert not active(standing, standing.expires_at + timedelta(milliseconds=1))
    assert not active(replace(standing, calls_left=0), bench.clock.now())


def test_a_rule_that_allows_no_standing_approval_gives_none():
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 90s")
    bench.drive()
    with pytest.raises(Refused, match="no rule lets an approval stand"):
        approve(bench, FIRST, standing=True)


def test_a_standing_approval_needs_as_many_people_as_the_call():
    bench = letters(say(letter()), say(letter()), final(), approval=f"{STANDING}, quorum: 2")
    bench.drive()
    approve(bench, FIRST, LEAD, standing=True)
    approve(bench, FIRST, OTHER_LEAD)
    bench.drive()
    assert not bench.of_kind("StandingGranted")
    assert bench.status == "awaiting_approval"


def test_a_refusal_of_one_call_wins_over_a_standing_approval():
    """openai/openai-agents-python#4429: refusal before approval before standing approval."""
    read = ("get_stock", {"sku": 1})
    bench = letters(say(letter()), say(read, letter(), letter()), final(), approval=STANDING)

    async def get_stock(sku: int) -> object:
        bench.refuse(2, 2, because="not this one")
        return {"left": 1, "level": "L1"}

    bench.shop.special["get_stock"] = get_stock
    bench.drive()
    approve(bench, FIRST, standing=True)
    bench.drive()
    assert bench.outcomes(2) == ["confirmed", "not_executed", "confirmed"]
    assert bench.call(2, 2).receipt.denial == "refused"
    assert bench.shop.ledger == ["letter ann x1"] * 2


def test_a_refusal_wins_over_an_approval_until_the_call_starts():
    bench = letters(say(letter()), final(), approval=STANDING)
    bench.drive()
    bench.approve(1, 1)
    bench.refuse(1, 1, OTHER_LEAD)
    bench.refuse(1, 1, OTHER_LEAD)
    assert len(bench.of_kind("ApprovalRefused")) == 1
    with pytest.raises(Refused, match="refused already"):
        bench.approve(1, 1)
    bench.drive()
    assert bench.shop.ledger == []


def test_a_tightened_policy_is_not_answered_by_a_standing_approval():
    bench = letters(say(letter()), say(letter()), final(), approval=STANDING)
    bench.drive()
    approve(bench, FIRST, standing=True)
    newer = asking(f"{STANDING}, quorum: 2").replace("version: 1", "version: 2")

    load(bench, compiled(newer, COPIES))
    bench.drive()
    assert bench.shop.ledger == []
    assert bench.status == "awaiting_approval"


# --- endorsements -----------------------------------------------------------------------------------------

VOUCHED = (
    "id: known-people, effect: require, tools: [send_letter], unless: \"'endorsed' in origin(args.to)\", "
    "approval: {by: {roles: [lead]}, expires: 10m, endorse: [args.to]}"
)


def vouching(*turns: Any) -> Bench:
    allow = (
        "id: free, effect: allow, roles: [clerk], tools: [send_letter], "
        "unattended: {because: test, max_per_run: 9}"
    )
    policy = asking("by: {roles: [lead]}, expires: 90s", allow, VOUCHED)
    lines = [line for line in policy.splitlines() if "id: letters" not in line]

    return Bench(*turns, policy="\n".join(lines), tools=COPIES, shop=post_room())


def test_an_endorsed_value_counts_for_its_tool_and_for_no_other_value():
    bench = vouching(say(letter("ann-1")), say(letter("ann-1", 7)), say(letter("bob-2")), final())
    bench.drive()
    approve(bench, FIRST, endorses=("args.to",))
    bench.drive()
    assert bench.shop.ledger == ["letter ann-1 x1", "letter ann-1 x7"]
    assert bench.outcome(3, 1) == "held"
    started = bench.of_kind("ExecutionStarted")[1].body
    assert [(edge.arg, edge.origin) for edge in started.edges if edge.arg == "to"] == [("to", "endorsed")]


@pytest.mark.parametrize(("seconds", "stands"), [(600, True), (601, False)])
def test_an_endorsement_lasts_as_long_as_the_approval_could(seconds: int, stands: bool):
    ask = say(("ask_user", {"question": "?"}))
    bench = vouching(say(letter("ann-1")), ask, say(letter("ann-1")), final())
    bench.drive()
    approve(bench, FIRST, endorses=("to",))
    bench.drive()
    bench.clock.advance(seconds=seconds)
    bench.reply("go on")
    bench.drive()
    assert (bench.status == "completed") is stands
    assert bool(bench.of_kind("EndorsementEnded")) is not stands


def test_only_declared_arguments_can_be_endorsed():
    bench = vouching(say(letter("ann-1")), final())
    bench.drive()
    with pytest.raises(Refused, match="no rule lets an approver endorse `copies`"):
        approve(bench, FIRST, endorses=("copies",))


# --- what an approval is bound to ---------------------------------------------------------------------------


def test_two_calls_with_one_provider_id_are_approved_apart():
    """pydantic/pydantic-ai#5761: one approval never fits both."""
    import dataclasses

    both = say(letter("ann"), letter("bob", 500))
    same = dataclasses.replace(
        both, calls=tuple(dataclasses.replace(call, provider_id="x") for call in both.calls)
    )
    bench = letters(same, final(), approval="by: {roles: [lead]}, expires: 90s")
    bench.drive()
    bench.approve(1, 1)
    bench.drive()
    assert bench.shop.ledger == ["letter ann x1"]
    assert bench.outcomes(1) == ["confirmed", "held"]


@pytest.mark.parametrize("call", ["9.9", "x", "1.1.1", ""])
def test_a_decision_about_a_call_that_was_never_proposed_names_no_call_and_is_recorded(call: str):
    """vercel/ai#15947: what a client names is matched to the stored calls and is never an input."""
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 90s")
    bench.drive()
    for decide in (bench.runtime().approve, bench.runtime().refuse):
        with pytest.raises(UsageError, match="has no call"):
            decide(bench.run, call, by=LEAD)
    assert bench.kinds.count("DecisionNotEligible") == 2


def test_a_pending_approval_outlives_the_process_and_its_driver():
    """qf-studio/pilot#4411: nothing of the wait is in memory."""
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 90s")
    bench.drive()
    waiting = bench.runtime().state(bench.run).calls[FIRST]
    assert waiting.args == {"to": "ann", "copies": 1}
    bench.approve(1, 1)
    bench.drive()
    assert bench.shop.ledger == ["letter ann x1"]


def test_an_approved_call_under_a_tightened_policy_waits_for_the_second_person():
    """openai/openai-agents-python#4896: the newer version holds at execution; the first yes still counts."""
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 90s")
    bench.drive()
    bench.approve(1, 1)

    newer = asking("by: {roles: [lead]}, expires: 90s, quorum: 2").replace("version: 1", "version: 2")
    load(bench, compiled(newer, COPIES))
    bench.drive()
    assert bench.shop.ledger == []
    assert bench.call(1, 1).approval.missing() == ("letters (version 2)",)
    bench.approve(1, 1, OTHER_LEAD)
    bench.drive()
    assert bench.shop.ledger == ["letter ann x1"]
    assert bench.call(1, 1).approved_by == "lead1, lead2"


def test_one_person_who_said_yes_twice_is_not_two_of_the_people_that_a_newer_policy_wants():
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 90s, quorum: 2")
    bench.drive()
    for by in (LEAD, LEAD, OTHER_LEAD):
        bench.approve(1, 1, by)

    newer = asking("by: {roles: [lead]}, expires: 90s, quorum: 3").replace("version: 1", "version: 2")
    load(bench, compiled(newer, COPIES))
    bench.drive()
    assert bench.shop.ledger == []
    assert bench.status == "awaiting_approval"


def test_a_yes_to_a_request_that_names_another_call_lets_nothing_run():
    """Whoever writes a request into the log: what was agreed to is compared with what would run."""
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 90s")
    bench.drive()
    (asked,) = bench.of_kind("ApprovalRequested")
    forged = asked.body.model_copy(update={"digest": "0" * 64})
    signals.append(bench.store, bench.clock, bench.run, ME, lambda state: [forged])
    bench.approve(1, 1)
    bench.drive()
    assert bench.shop.ledger == []
    assert bench.status == "awaiting_approval"
    bench.approve(1, 1)
    bench.drive()
    assert bench.shop.ledger == ["letter ann x1"]


def test_a_call_that_the_newer_policy_denies_is_not_executed_whoever_approved_it():
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 90s")
    bench.drive()
    bench.approve(1, 1)

    deny = "id: stop, effect: deny, tools: [send_letter]"
    newer = asking("by: {roles: [lead]}, expires: 90s", deny).replace("version: 1", "version: 2")
    load(bench, compiled(newer, COPIES))
    bench.drive()
    assert bench.shop.ledger == []
    assert bench.outcome(1, 1) == "not_executed"
    assert "version 2" in bench.call(1, 1).receipt.detail


def test_a_request_that_was_once_seen_expired_stays_so_though_the_clock_is_set_back():
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 90s")
    bench.drive()
    bench.clock.advance(seconds=91)
    with pytest.raises(Refused, match="expired"):
        bench.runtime().approve(bench.run, CallId(1, 1), by=LEAD)
    bench.clock.advance(seconds=-60)
    with pytest.raises(Refused):
        bench.runtime().approve(bench.run, CallId(1, 1), by=LEAD)
    bench.drive()
    receipt = bench.call(1, 1).receipt
    assert receipt is not None
    assert (receipt.denial, bench.shop.ledger) == ("expired", [])
    bench.verified()


def test_rules_of_one_name_in_several_overlays_are_each_satisfied_by_their_own_people():
    """A clerk's yes for one overlay is none of the two yeses of leads that another one asks for."""
    overlay = (
        "agentctl: overlay/v1\nid: {id}\nversion: 1\nowner: me\npermissions:\n"
        "  - {{id: check, effect: require, tools: [send_letter], "
        "approval: {{by: {{roles: [{role}]}}, expires: 1h, quorum: {quorum}}}}}\n"
    )
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 1h")
    for name, role, quorum in (("a", "lead", 1), ("b", "clerk", 1), ("c", "lead", 2)):
        text = overlay.format(id=name, role=role, quorum=quorum)
        bench.runtime().load_overlay(read_overlay(f"{name}.overlay.yaml", text), by=LEAD)
    bench.drive()
    approval = bench.call(1, 1).approval
    assert approval is not None
    rules = [need.rule for need in approval.requirements]
    assert rules == ["letters", "check", "check (version 1)", "check (version 1, 2)"]
    for by in (person("ann", "clerk"), LEAD):
        bench.runtime().approve(bench.run, CallId(1, 1), by=by)
    bench.drive()
    assert bench.shop.ledger == [], "one lead is not two"
    bench.runtime().approve(bench.run, CallId(1, 1), by=OTHER_LEAD)
    bench.drive()
    assert bench.shop.ledger == ["letter ann x1"]
