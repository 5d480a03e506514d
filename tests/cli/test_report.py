"""What is shown of an event, whatever its kind; text of strangers made safe."""

from __future__ import annotations

import pytest

from engine.domain.events import BODIES
from engine.report.words import handles, one_line, safe

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
