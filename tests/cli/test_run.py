"""`run`, `resume`, `reply`, `approve`, `refuse`, `cancel`: what they print, what they end with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Ask, script
from tests.cli.conftest import normal as _normal
from tests.conftest import Golden

RECORDED = Path(__file__).parent / "golden"
FUND = "policies/fund-research.policy.yaml"
NOTES = "policies/notes.policy.yaml"
FUND_DEMO = ("--model", "scripted/examples/fund-research.script.yaml")
NOTES_DEMO = ("--model", "scripted/scripts/notes.script.yaml")
QUESTION = "Is the charge of the largest fund what its fact sheet says?"
MEMO = """\
  - calls: [{tool: request_capability, args: {capability: documents, collection: internal_memo}}]
"""
ASKS = """\
  - text: "Before I go on:"
    calls: [{tool: ask_user, args: {question: "Which lighthouse?"}}]
  - calls: [{tool: search_notes, args: {words: "lighthouse"}}]
  - calls: [{tool: read_note, args: {note: lighthouse}}]
  - calls:
      - {tool: publish_answer, args: {text: "In 1871 [[<< handle('note', 'lighthouse') >>#p2]]."}}
      - {tool: finish}
"""


def test_a_piped_run_prints_plain_lines_and_the_published_note(
    fund: Path, agentctl: Ask, golden: Golden
) -> None:
    said = agentctl("run", FUND, QUESTION, *FUND_DEMO)
    assert said.code == 0
    assert "\x1b" not in said.out
    golden(RECORDED / "run.txt", _normal(said.out))


def test_what_a_run_left_behind_is_shown_logged_and_listed(fund: Path, agentctl: Ask, golden: Golden) -> None:
    run = agentctl("run", FUND, QUESTION, *FUND_DEMO).run
    for command in (("show", run), ("log", run), ("runs",), ("verify", run)):
        said = agentctl(*command)
        assert said.code == 0
        golden(RECORDED / f"{command[0]}.txt", _normal(said.out))


def test_json_lines_are_the_events_and_end_in_one_object(notes: Path, agentctl: Ask) -> None:
    said = agentctl("run", NOTES, "When was it built?", *NOTES_DEMO, "--json")
    *events, last = said.lines
    assert said.code == 0
    assert {"event", "seq", "at", "actor"} <= set(events[0])
    assert {event["run"] for event in events} == {last["run"]}, "known before the end, should it never come"
    assert [event["seq"] for event in events] == list(range(events[0]["seq"], events[-1]["seq"] + 1))
    assert (last["status"], last["turns"], last["exit_code"]) == ("completed", 3, 0)
    assert last["outputs"]["answer"]["text"].startswith("The lighthouse on the point was built in 1871")
    assert (
        last["sources"]["answer"][0] | {"kind": "note", "id": "lighthouse", "span": "p2"}
        == last["sources"]["answer"][0]
    )
    assert [call["tool"] for call in last["calls"]["executed"]] == [
        "search_notes",
        "read_note",
        "publish_answer",
        "finish",
    ]


def test_quiet_leaves_out_the_progress(notes: Path, agentctl: Ask) -> None:
    said = agentctl("run", NOTES, "When was it built?", *NOTES_DEMO, "--quiet")
    assert "turn 1" not in said.out
    assert "== answer ==" in said.out


def test_the_question_may_come_from_stdin_byte_for_byte(notes: Path, agentctl: Ask) -> None:
    said = agentctl("run", NOTES, "-", *NOTES_DEMO, input="When?\n  Ünïcode\n")
    first = agentctl("log", said.run, "--kind", "InputReceived", "--json").lines[0]
    assert first["text"] == "When?\n  Ünïcode\n"


def test_a_question_is_answered_from_another_process(notes: Path, agentctl: Ask, golden: Golden) -> None:
    waiting = agentctl("run", NOTES, "When was it built?", "--model", script(notes, ASKS))
    assert waiting.code == 5
    golden(RECORDED / "waits_for_input.txt", _normal(waiting.out))
    said = agentctl("reply", waiting.run, "The one on the point")
    assert said.code == 0
    golden(RECORDED / "reply.txt", _normal(said.out))


def test_a_reply_may_only_be_recorded_and_driven_later(notes: Path, agentctl: Ask) -> None:
    run = agentctl("run", NOTES, "When was it built?", "--model", script(notes, ASKS)).run
    assert agentctl("reply", run, "The one on the point", "--only-record").code == 0
    assert agentctl("resume", run).code == 0


def test_a_response_without_calls_waits_for_the_user(notes: Path, agentctl: Ask) -> None:
    said = agentctl("run", NOTES, "Hello", "--model", script(notes, '  - text: "Which note do you mean?"\n'))
    assert said.code == 5
    assert "working text:\n  Which note do you mean?" in said.out
    assert f'agentctl reply {said.run} "…"' in said.out


def test_a_held_call_waits_for_the_right_person(fund: Path, agentctl: Ask, golden: Golden) -> None:
    said = agentctl("run", FUND, QUESTION, "--model", script(fund, MEMO))
    assert said.code == 5
    golden(RECORDED / "waits_for_approval.txt", _normal(said.out))
    golden(RECORDED / "approvals.txt", _normal(agentctl("approvals").out))
    assert agentctl("approve", said.run, "1.1").code == 4
    by_compliance = agentctl("approve", said.run, "1.1", "--as", "c1", "--role", "compliance")
    assert "granted by c1" in by_compliance.out + agentctl("log", said.run).out
    assert agentctl("approvals", "--json").json["approvals"] == []


def test_a_refused_call_is_not_executed(fund: Path, agentctl: Ask) -> None:
    run = agentctl("run", FUND, QUESTION, "--model", script(fund, MEMO)).run
    agentctl("refuse", run, "1.1", "--as", "c1", "--role", "compliance", "--because", "not now")
    (refused,) = agentctl("log", run, "--kind", "ApprovalRefused", "--json").lines
    assert refused["because"] == "not now"
    assert refused["actor"]["id"] == "c1"


def test_cancel_settles_the_run(notes: Path, agentctl: Ask) -> None:
    run = agentctl("run", NOTES, "When was it built?", "--model", script(notes, ASKS)).run
    said = agentctl("cancel", run, "--because", "no longer needed")
    assert said.code == 0
    assert f"Run {run} cancelled" in said.out
    assert agentctl("resume", run).code == 4
    assert agentctl("reply", run, "too late").code == 4


def test_a_run_that_ends_without_completing_exits_6(notes: Path, agentctl: Ask) -> None:
    idle = "".join("  - calls: [{tool: nothing_like_it}]\n" for _ in range(5))
    said = agentctl("run", NOTES, "When?", "--model", script(notes, idle))
    assert said.code == 6
    assert "expired" in said.out
    assert "budget:no_progress_turns" in said.out
    assert "Nothing was published." in said.out


def test_a_missing_key_is_one_line_and_the_run_can_be_resumed(notes: Path, agentctl: Ask) -> None:
    said = agentctl("run", NOTES, "When?", "--quiet", "--model", "anthropic/claude-sonnet-4-5-20250929")
    assert said.code == 2
    assert said.out == ""
    first, second = said.err.splitlines()
    assert "`ANTHROPIC_API_KEY` is not set" in first
    assert f"agentctl resume {said.run}" in second


def test_the_same_run_is_never_started_twice(notes: Path, agentctl: Ask) -> None:
    """Certora/AutoProver#192: a second start under one id went on from the first one's state."""
    assert agentctl("run", NOTES, "When?", *NOTES_DEMO, "--run-id", "rfixed").code == 0
    again = agentctl("run", NOTES, "When?", *NOTES_DEMO, "--run-id", "rfixed")
    assert again.code == 2
    assert "rfixed" in again.err


def test_text_of_a_model_cannot_steer_the_terminal(notes: Path, agentctl: Ask) -> None:
    turns = '  - text: "\\e[2J\\e]0;owned\\a now"\n'
    said = agentctl("run", NOTES, "Hello", "--model", script(notes, turns))
    assert "\x1b" not in said.out
    assert "\\x1b[2J" in said.out


def test_commands_to_continue_repeat_the_database(notes: Path, agentctl: Ask) -> None:
    said = agentctl("run", NOTES, "When?", "--model", script(notes, ASKS), "--db", "other.db")
    assert f'agentctl reply {said.run} "…" --db other.db' in said.out
    assert agentctl("runs", "--db", "other.db", "--json").json["runs"][0]["status"] == "awaiting_input"


@pytest.mark.parametrize(
    ("words", "task"),
    [
        ((), {"portfolio_id": "p1", "as_of": "2026-06-30T00:00:00Z", "depth": "full"}),
        (
            ("--task", "depth=brief"),
            {"portfolio_id": "p1", "as_of": "2026-06-30T00:00:00Z", "depth": "brief"},
        ),
    ],
)
def test_task_fields_are_typed_over_the_defaults(
    fund: Path, agentctl: Ask, words: tuple[str, ...], task: dict[str, str]
) -> None:
    said = agentctl("run", FUND, QUESTION, "--model", script(fund, MEMO), *words)
    assert agentctl("log", said.run, "--kind", "RunStarted", "--json").lines[0]["task"] == task


def test_who_runs_it_comes_from_the_flags_over_the_project_file(fund: Path, agentctl: Ask) -> None:
    said = agentctl(
        "run", FUND, QUESTION, "--model", script(fund, MEMO), "--as", "a2", "--role", "analyst",
        "--attr", "desk=wealth",
    )  # fmt: skip
    started = agentctl("log", said.run, "--kind", "RunStarted", "--json").lines[0]
    assert started["principal"]["id"] == "a2"
    assert started["principal"]["attrs"] == {"desk": "wealth"}
    assert started["principal"]["roles"] == ["analyst"]


def test_show_in_json_has_the_facts(notes: Path, agentctl: Ask) -> None:
    run = agentctl("run", NOTES, "When?", *NOTES_DEMO).run
    shown = agentctl("show", run[:14], "--json").json
    assert (shown["run"], shown["status"], shown["policy"]["id"]) == (run, "completed", "notes")
    assert shown["budgets_left"]["turns"] == 7
    assert json.dumps(shown)


def test_the_log_is_filtered_by_kind_tool_and_outcome(notes: Path, agentctl: Ask) -> None:
    run = agentctl("run", NOTES, "When?", *NOTES_DEMO).run

    def kinds(*words: str) -> list[str]:
        return [event["event"] for event in agentctl("log", run, "--json", *words).lines]

    assert kinds("--tool", "read_note") == ["ModelTurnRecorded", "ExecutionStarted", "ReceiptRecorded"]
    assert kinds("--outcome", "confirmed") == ["ReceiptRecorded", "ReceiptRecorded"]
    assert kinds("--outcome", "committed") == ["OutputPublished"]
    assert kinds("--kind", "RunStarted", "--kind", "RunCompleted") == ["RunStarted", "RunCompleted"]
    assert kinds("--outcome", "unknown") == []


def test_resume_goes_on_with_the_recorded_model_or_with_another(notes: Path, agentctl: Ask) -> None:
    run = agentctl("run", NOTES, "When?", "--model", "anthropic/claude-sonnet-4-5-20250929").run
    assert agentctl("resume", run).code == 2
    said = agentctl("resume", run, *NOTES_DEMO)
    assert said.code == 0
    turns = agentctl("log", run, "--kind", "ModelAttemptStarted", "--json").lines
    assert {turn["model"] for turn in turns} == {"anthropic/claude-sonnet-4-5-20250929", NOTES_DEMO[1]}


def test_the_newest_run_is_called_last_wherever_a_run_is_named(notes: Path, agentctl: Ask) -> None:
    first = agentctl("run", NOTES, "When was it built?", *NOTES_DEMO).run
    second = agentctl("run", NOTES, "When was it built?", "--model", script(notes, ASKS)).run
    assert agentctl("reply", "last", "The one on the point").code == 0
    for words in (("show",), ("log",), ("outputs",), ("verify",), ("replay",), ("grants",), ("context",)):
        said = agentctl(*words, "last")
        assert said.code == 0
        assert first not in said.out
    assert agentctl("trace", "last", "3.1").code == agentctl("contract", "--run", "last").code == 0
    assert agentctl("show", "last").run == second
    played = agentctl("run", NOTES, "Again?", "--model", "replay/last")
    (started,) = agentctl("log", played.run, "--kind", "RunStarted", "--json").lines
    assert started["model"] == f"replay/{second}"


def test_there_is_no_last_run_in_an_empty_database(notes: Path, agentctl: Ask) -> None:
    assert agentctl("run", NOTES, "q", "--model", "replay/last").code == 2
    said = agentctl("show", "last")
    assert said.code == 2
    assert "there is no last Run: this database holds none" in said.err
