"""test/v1 through the real engine: what a turn does, in which order, and what comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.bench import GIVEN, Desk, failures

LEAD = "by: {id: l1, roles: [lead]}"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def holds(desk: Desk, turns: str, given: str = GIVEN) -> int:
    """The number of checks of a case in which every expectation holds."""
    result = desk.case(turns, given)
    assert failures(result) == []
    assert result.verdict == "ok"
    return result.checks


def without_send_once(desk: Desk, result: str) -> None:
    """`send` is denied once `look` of x has brought this result."""
    file = desk.folder / "desk.policy.yaml"
    text = file.read_text(encoding="utf-8")
    assert "when: \"task.kind == 'parcel'\"" in text
    text = text.replace("task.kind == 'parcel'", f"done('look', {{'id': 'x'}}, {result})")
    file.write_text(text, encoding="utf-8")


def test_a_tool_answers_with_the_defaults_of_its_declared_fields(desk: Desk):
    without_send_once(desk, "{'n': 0, 'ok': false, 's': '', 'e': 'red'}")
    holds(
        desk,
        """
- propose: [{call: look, args: {id: x}}]
  expect: {shows: [send], calls: [{outcome: confirmed}]}
- expect: {hides: [send]}
""",
    )


def test_scripted_results_are_what_conditions_read(desk: Desk):
    without_send_once(desk, "{'e': 'blue'}")
    holds(
        desk,
        """
- propose: [{call: look, args: {id: x}}]
- propose: [{call: look, args: {id: x}, result: {e: blue}}]
  expect: {shows: [send]}
- propose: [{call: send, args: {to: a}}]
  expect: {hides: [send], calls: [{outcome: rejected}]}
""",
    )


@pytest.mark.parametrize("outcome", ["failed", "not_executed", "unknown"])
def test_a_write_ends_as_the_test_says(desk: Desk, outcome: str):
    holds(
        desk,
        f"""
- propose: [{{call: send, args: {{to: a}}, outcome: {outcome}}}]
  expect: {{calls: [{{outcome: held, for: [send]}}], run: awaiting_approval}}
- approve: {{call: send, {LEAD}}}
  expect: {{calls: [{{outcome: {outcome}}}]}}
""",
    )


def test_an_unknown_outcome_stays_unknown_until_its_late_answer(desk: Desk):
    """The probe cannot tell, however often it is asked; the answer that comes late settles the call and the finish."""
    holds(
        desk,
        f"""
- propose: [{{call: send, args: {{to: a}}, outcome: unknown, late: {{after: 5m, outcome: confirmed}}}}]
- approve: {{call: send, {LEAD}}}
  expect: {{calls: [{{outcome: unknown}}]}}
- propose: [{{call: finish}}]
  expect: {{calls: [{{outcome: held, why: no_unknown_effects}}], run: awaiting_reconciliation}}
- advance: 4m
  expect: {{run: awaiting_reconciliation}}
- advance: 1m
  expect: {{run: completed}}
""",
    )


def test_the_clock_moves_only_by_advance(desk: Desk):
    """An approval of ten minutes is given after ten minutes, and too late a second after."""
    for delay, outcome, why in (
        ("10m", "confirmed", ""),
        ("10m1s", "not_executed", "nobody decided in time"),
    ):
        said = f", why: {why}" if why else ""
        holds(
            desk,
            f"""
- propose: [{{call: send, args: {{to: a}}}}]
- advance: {delay}
  approve: {{call: send, {LEAD}}}
  expect: {{calls: [{{outcome: {outcome}{said}}}]}}
""",
        )


def test_a_decision_that_does_not_count_leaves_the_call_held(desk: Desk):
    holds(
        desk,
        """
- propose: [{call: send, args: {to: a}}]
- approve: {call: send, by: {id: c1, roles: [lead]}}
  expect: {calls: [{outcome: held, for: [send], why: the requester may not}]}
- approve: {call: send, by: {id: x, roles: [clerk]}}
  expect: {calls: [{outcome: held, why: not eligible}], run: awaiting_approval}
""",
    )


def test_a_refused_call_is_not_executed(desk: Desk):
    holds(
        desk,
        f"""
- propose: [{{call: send, args: {{to: a}}}}]
- refuse: {{call: send, {LEAD}}}
  expect: {{calls: [{{outcome: not_executed, why: refused by l1}}], run: proposing}}
""",
    )


def test_a_decision_is_about_the_oldest_held_call_of_its_tool(desk: Desk):
    holds(
        desk,
        f"""
- propose: [{{call: send, args: {{to: a}}}}, {{call: send, args: {{to: b}}}}]
  expect: {{calls: [{{outcome: held}}, {{outcome: held}}]}}
- refuse: {{call: send, {LEAD}}}
  expect: {{calls: [{{outcome: not_executed}}]}}
- approve: {{call: send, {LEAD}}}
  expect: {{calls: [{{outcome: confirmed}}], run: proposing}}
""",
    )


def test_a_capability_is_granted_by_the_host_or_by_people_and_fences_what_follows(desk: Desk):
    holds(
        desk,
        f"""
- propose: [{{call: request_capability, args: {{capability: archive, shelf: a}}}}, {{call: look, args: {{id: x}}}}]
  expect: {{hides: [file], calls: [{{outcome: granted}}, {{outcome: fenced, why: contract_changed}}]}}
- propose: [{{call: request_capability, args: {{capability: archive, shelf: b}}}}]
  expect: {{shows: [file], calls: [{{outcome: held, for: [archive]}}]}}
- approve: {{call: request_capability, {LEAD}}}
  expect: {{calls: [{{outcome: granted}}]}}
- propose: [{{call: request_capability, args: {{capability: archive, shelf: b}}}}]
- refuse: {{call: request_capability, {LEAD}}}
  expect: {{calls: [{{outcome: not_executed}}]}}
""",
    )


def test_what_is_given_holds_from_the_first_turn(desk: Desk):
    given = (
        "{principal: {id: c1, roles: [clerk]}, task: {kind: parcel}, grant: {archive: {shelf: b}}, "
        "sources: {post: unavailable}, now: '2026-06-30T00:00:00Z'}"
    )
    holds(
        desk,
        """
- propose: [{call: file, args: {id: x}}, {call: send, args: {to: a}}]
  expect: {shows: [file], hides: [send], calls: [{outcome: confirmed}, {outcome: rejected, why: not in the contract}]}
- advance: 1h1s
  expect: {hides: [file]}
""",
        given,
    )


def test_a_source_that_goes_away_hides_its_tools(desk: Desk):
    holds(
        desk,
        """
- propose: [{call: look, args: {id: x}}]
  expect: {shows: [look, send]}
- source: {post: unavailable}
  propose: [{call: send, args: {to: a}}]
  expect: {hides: [send], calls: [{outcome: rejected}]}
""",
    )


def test_a_question_is_held_until_the_reply(desk: Desk):
    holds(
        desk,
        """
- propose: [{call: ask_user, args: {question: "Which one?"}}]
  expect: {calls: [{outcome: held}], run: awaiting_input}
- reply: the first
  expect: {run: proposing}
- propose: [{call: finish}]
  expect: {hides: [ask_user], calls: [{outcome: committed}], run: completed}
""",
    )


def test_a_response_without_calls_waits_for_the_user(desk: Desk):
    holds(desk, "- propose: []\n  expect: {run: awaiting_input}\n- reply: go on\n  expect: {run: proposing}")


def test_bad_arguments_are_sent_as_they_stand(desk: Desk):
    holds(
        desk,
        """
- propose: [{call: look, args: "{not json"}, {call: look, args: [1]}, {call: look, args: {id: 5}}]
  expect: {calls: [{outcome: rejected}, {outcome: rejected}, {outcome: rejected, why: id}]}
""",
    )


def test_the_deciding_deny_is_named_and_no_rule_is_none(desk: Desk):
    given = "{principal: {id: c1, roles: [clerk]}, task: {kind: parcel}}"
    result = desk.case("- propose: [{call: send, args: {to: a}}]\n  expect: {hides: [send]}", given)
    assert (result.verdict, result.decided) == ("ok", frozenset({"no-parcels"}))


def test_compensations_and_probes_run_without_a_handler(desk: Desk):
    holds(
        desk,
        """
- propose: [{call: request_capability, args: {capability: archive, shelf: a}}]
- propose: [{call: file, args: {id: x}}]
  expect: {calls: [{outcome: confirmed}]}
- propose: [{call: finish}]
  expect: {calls: [{outcome: committed}], run: completed}
""",
    )


def test_a_budget_ends_the_run(desk: Desk):
    look = "- propose: [{call: look, args: {id: x}}]\n"
    holds(desk, f"{look * 6}  expect: {{run: expired}}")


# --- what fails a case --------------------------------------------------------------------------------------


def test_a_turn_that_proposes_while_the_run_waits_fails(desk: Desk):
    result = desk.case(
        """
- propose: [{call: send, args: {to: a}}]
  expect: {calls: [{outcome: held}]}
- propose: [{call: look, args: {id: x}}]
  expect: {calls: [{outcome: confirmed}]}
"""
    )
    assert result.verdict == "FAIL"
    assert failures(result)[-1] == "the model is not asked: the Run waits for approval: 1.1 send"


def test_a_decision_about_a_call_that_is_not_held_fails(desk: Desk):
    result = desk.case(f"- approve: {{call: send, {LEAD}}}\n  expect: {{calls: [{{outcome: confirmed}}]}}")
    assert failures(result) == ["no call of `send` is held"]


def test_nothing_can_happen_after_the_end(desk: Desk):
    result = desk.case("- propose: [{call: finish}]\n  expect: {run: completed}\n- reply: more")
    assert result.verdict == "FAIL"
    assert "completed and takes no reply" in failures(result)[0]


def test_a_principal_that_may_not_start_fails_the_case(desk: Desk):
    result = desk.case(
        "- expect: {shows: [look]}", "{principal: {id: l1, roles: [lead]}, task: {kind: letter}}"
    )
    assert "the Run cannot start: `l1` may not start" in failures(result)[0]


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ("shows: [file]", "`file` is not shown: no rule permits it: `file`"),
        ("hides: [look]", "`look` is shown"),
        ("calls: [{outcome: failed}]", "1.1 `look` is confirmed, not failed"),
        ("calls: [{rule: no-parcels}]", "1.1 `look`: no deny decided, not `no-parcels`"),
        ("calls: [{for: [send]}]", "1.1 `look` waits for no approval, not for `send`"),
        ("calls: [{why: budget}]", "1.1 `look`: `budget` is not in its reason, it has none"),
        ("calls: []", "`calls` says nothing of 1.1 `look`"),
        ("calls: [{outcome: confirmed}, {outcome: held}]", "there is no call 2: the turn has 1"),
        ("run: completed", "the Run is proposing, not completed"),
    ],
)
def test_every_expectation_is_checked(desk: Desk, expect: str, message: str):
    result = desk.case(f"- propose: [{{call: look, args: {{id: x}}}}]\n  expect: {{{expect}}}")
    assert result.verdict == "FAIL"
    (failure,) = result.failures
    assert failure.message.startswith(message)
    assert (failure.place.line, failure.turn) == (8, 1)


def test_a_case_without_a_check_is_empty(desk: Desk):
    result = desk.case("- propose: [{call: look, args: {id: x}}]\n  expect: {calls: [{}]}")
    assert (result.checks, result.verdict) == (0, "EMPTY")


def test_rules_that_decided_nothing_are_named(desk: Desk):
    result = desk.play(
        f"cases:\n  - id: it\n    given: {GIVEN}\n    turns:\n"
        "      - {propose: [{call: look, args: {id: x}}], expect: {run: proposing}}\n"
    )
    assert [rule.id for rule in result.untested] == ["send", "file", "no-parcels"]
