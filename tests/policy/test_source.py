"""The strict YAML profile: what is refused, where, and where each character of a value stands."""

from __future__ import annotations

import pytest

from engine.domain.errors import SourceError
from engine.policy.files import decode
from engine.policy.nodes import Scalar, walk
from engine.policy.places import positions
from engine.policy.source import parse
from tests.policy.examples import texts

REFUSED = [
    ("a: [1, 2\nb: 3\n", "Y101", 2, 2),
    ("when: args.kind == 'a: b'\n", "Y101", 1, 22),
    ("\ta: 1\n", "Y101", 1, 1),
    ("a: x\x00y\n", "Y101", 1, 5),
    ("\ufeffa: b\n", "Y101", 1, 1),
    ("? [a]\n: c\n", "Y101", 1, 3),
    ("a: " + "[" * 40 + "]" * 40 + "\n", "Y101", 1, 36),
    ("when: !has(args.note)\n", "Y102", 1, 7),
    ("when: !principal.suspended && x\n", "Y102", 1, 7),
    ("when: !has(args['x'])\n", "Y102", 1, 7),
    ("a: !!str x\n", "Y102", 1, 4),
    ("a: 1\nb: 2\na: 3\n", "Y103", 3, 1),
    ("b: &t {q: 1}\n", "Y104", 1, 4),
    ("c: *t\n", "Y104", 1, 4),
    ("d: {<<: {a: 1}}\n", "Y104", 1, 5),
    ("---\na: 1\n---\nb: 2\n", "Y104", 3, 1),
    ("", "Y105", 1, 1),
    ("# nothing but a comment\n", "Y105", 1, 1),
    ("- a\n", "Y105", 1, 1),
]


@pytest.mark.parametrize(("text", "code", "line", "column"), REFUSED)
def test_a_fault_of_the_profile_is_found_at_its_place(text: str, code: str, line: int, column: int) -> None:
    (found,) = parse("f.yaml", text).faults
    assert (found.code, found.location.line, found.location.column) == (code, line, column)
    assert found.help


def test_a_quoted_condition_is_suggested_whole() -> None:
    (found,) = parse("f.yaml", "when: !principal.suspended && x\n").faults
    assert found.help == 'put the whole value in quotes: "!principal.suspended && x"'


@pytest.mark.parametrize("word", ["NO", "off", "yes", "0755", "12:30:45", "1_000", "0o17", "0b11"])
def test_a_word_that_older_readers_take_for_another_value_needs_quotes(word: str) -> None:
    """home-assistant/core#69955: a country code that became false."""
    (found,) = parse("f.yaml", f"a: {word}\nno: 3\n").faults
    assert found.code == "Y205"
    assert "YAML 1.2" in found.message
    assert "YAML 1.1" in found.message
    assert not parse("f.yaml", f'a: "{word}"\n').faults


def test_scalars_follow_the_yaml_1_2_core_schema() -> None:
    document = parse("f.yaml", "a: true\nb: ~\nc: 12\nd: -1.5\ne: 2026-01-01\nf: 0x1F\ng: tea\nh: '12'\n")
    assert document.data() == {
        "a": True,
        "b": None,
        "c": 12,
        "d": -1.5,
        "e": "2026-01-01",
        "f": 31,
        "g": "tea",
        "h": "12",
    }


def test_all_faults_of_a_file_are_found_at_once_in_order() -> None:
    found = parse("f.yaml", "x: {a: 1, a: 2}\nb: &t {q: 1}\nc: *t\nd: {<<: 1}\n").faults
    assert [each.code for each in found] == ["Y103", "Y104", "Y104", "Y104"]


STYLES = """\
plain: one two
wrapped: one
   two
single: 'it''s
   folded

   twice'
double: "x \\u00e9 \\
   joined\\n end"
folded: >
  one &&
  two

  three
   more
  last
literal: |
  one
    two

  three
"""


@pytest.mark.parametrize(
    "text", [STYLES, STYLES.replace("\n", "\r\n"), *texts().values()], ids=range(2 + len(texts()))
)
def test_every_character_of_a_value_has_its_place(text: str) -> None:
    """Characters are those of the file; only escapes and folded line breaks differ."""
    document = parse("f.yaml", text)
    for _, node in walk(document.root) if document.root else ():
        if isinstance(node, Scalar) and node.text:
            found = positions(text, node.start, node.end, node.style, node.text)
            assert len(set(found)) == len(found) == len(node.text) + 1
            for char, index in zip(node.text, found, strict=False):
                assert text[index] in (char, "\\", "\n", "\r")


def test_a_place_inside_a_folded_value_is_on_its_own_line() -> None:
    document = parse("f.yaml", "when: >\n  size(x) > 0 &&\n  args.y\n")
    node = document.root.entries["when"].value if document.root else None
    assert isinstance(node, Scalar)
    start = node.text.index("args")
    assert node.part(start, start + 6)[1:] == (3, 3, 9)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"a: \xff\n", "not UTF-8"),
        (b"\xff\xfea\x00", "UTF-16"),
        (b"a\x00:\x00", "UTF-16"),
        (b"\xef\xbb\xbfa: 1", "byte order mark"),
        (b"a" * 2_000_001, "bytes"),
    ],
)
def test_a_file_that_is_not_utf8_is_refused_with_a_remedy(raw: bytes, said: str) -> None:
    with pytest.raises(SourceError, match=said) as caught:
        decode("f.yaml", raw)
    assert caught.value.remedy
