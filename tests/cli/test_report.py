"""What is shown of an event, whatever its kind; text of strangers made safe."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from engine.bootstrap import open_runtime
from engine.commands.project import this_project
from engine.domain.events import BODIES
from engine.domain.ids import RunId
from engine.report.budget import left_line
from engine.report.words import handles, one_line, safe
from tests.cli.conftest import Ask

ENVELOPE = {"event", "seq", "at", "actor"}


def test_no_event_has_a_field_with_a_name_of_the_json_envelope() -> None:
    assert not {kind for kind, body in BODIES.items() if ENVELOPE & set(body.model_fields)}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\rb", "a\\rb"),
        ("left\u202eright", "left\\u202eright"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("Müller ⟦1⟧ 日本", "Müller ⟦1⟧ 日本"),
        ("\x9b2J", "\\x9b2J"),
    ],
)
def test_text_is_shown_without_what_a_terminal_obeys(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_a_long_text_is_cut_to_its_width() -> None:
    assert one_line("word " * 100, 20) == "word word word word…"


def test_handles_are_joined_where_they_follow_each_other() -> None:
    assert handles(["E2", "E3", "E4", "E10", "E12"]) == "E2-E4, E10, E12"


FIELDS = """\
      title: {type: text}
      text: {type: rich_text, max_len: 4000, cites: true}
      figures: {type: list, of: {type: record, fields: {year: {type: int}, event: {type: text}}}, required: false}
"""
ARGUMENTS = """\
args: {title: "When", figures: [{event: built, year: 1871}], text: "<< last('read_note').spans[1].text >>"""


def test_published_fields_are_shown_in_the_order_that_the_policy_declares(notes: Path, agentctl: Ask) -> None:
    policy, played = Path("policies/notes.policy.yaml"), Path("scripts/notes.script.yaml")
    replace(policy, "      text: {type: rich_text, max_len: 4000, cites: true}\n", FIELDS)
    replace(played, "args: {text: \"<< last('read_note').spans[1].text >>", ARGUMENTS)
    said = agentctl("run", str(policy), "When?", "--model", f"scripted/{played}")
    assert said.code == 0, said.out
    shown = [
        "title: When",
        "text: The lighthouse",
        'figures: [\n  {\n    "year": 1871,\n    "event": "built"',
    ]
    places = [said.out.split("== answer ==")[1].index(each) for each in shown]
    assert places == sorted(places)
    ended = agentctl("show", said.run, "--json").json
    assert [*ended["outputs"]["answer"]] == ["title", "text", "figures"]
    with open_runtime(None, project=this_project()) as runtime:
        assert [*runtime.outputs(RunId(said.run))["answer"]] == ["title", "text", "figures"]


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_only_budgets_that_changed_are_said_again() -> None:
    before: dict[str, object] = {
        "turns": 9, "calls": 1, "cost_usd": "0.50", "tokens_input": 10, "wall_time": timedelta(seconds=599),
    }  # fmt: skip
    assert left_line(before) == "9 turns, 1 call, 0.50 USD, 10 input tokens, 9m59s"
    assert left_line({**before, "turns": 8, "wall_time": timedelta(seconds=598)}, before) == "8 turns"
    assert left_line({**before, "tokens_input": 4, "wall_time": timedelta(seconds=539)}, before) == (
        "4 input tokens, 8m59s"
    )
    assert left_line(before, before) == ""
