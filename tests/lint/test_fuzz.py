"""Random edits of the example policies: lint always answers, and no unknown key passes in silence."""

from __future__ import annotations

from random import Random

import pytest

from engine.policy.files import MemoryFiles
from engine.policy.linter import LintReport, lint
from engine.policy.nodes import Table, walk
from engine.policy.source import parse
from tests.policy.examples import POLICIES, texts

YAMLS = sorted(name for name in texts() if name.endswith(".yaml") and "/" in name)
WORDS = [
    "!x",
    "&a",
    "*a",
    "<<",
    "{",
    "}",
    "[",
    "]",
    ":",
    "- ",
    "#",
    '"',
    "'",
    "|",
    "\t",
    "\0",
    "no",
    "1e9",
    "0x1F",
    "~",
]
WORDS += [
    "é",
    "\u2028",
    "😀",
    "args.x",
    "done('x')",
    "kind: read",
    "when: ",
    "allow",
    "-1",
    "99999999999999999999",
]
FREE = {"principal", "task", "state", "grant", "args", "result", "set", "by"}
"""Keys of a test file under which the names are those of the policy, which the test run itself checks."""


def edited(rng: Random, text: str) -> str:
    """The text with one change that a slip of the hand could make, or a worse one."""
    at = rng.randrange(len(text) + 1)
    to = min(len(text), at + rng.choice([1, 1, 2, 5, 30]))
    lines = text.split("\n")
    line = rng.randrange(len(lines))
    match rng.randrange(8):
        case 0:
            return text[:at] + text[to:]
        case 1:
            return text[:at] + rng.choice(WORDS) + text[at:]
        case 2:
            return text[:at] + rng.choice(WORDS) + text[to:]
        case 3:
            return "\n".join([*lines[:line], *lines[line + 1 :]])
        case 4:
            return "\n".join([*lines[: line + 1], *lines[line:]])
        case 5:
            return "\n".join([*lines[:line], rng.choice([" ", "  ", "\t"]) + lines[line], *lines[line + 1 :]])
        case 6:
            words = text.split(" ")
            one, two = rng.randrange(len(words)), rng.randrange(len(words))
            words[one], words[two] = words[two], words[one]
            return " ".join(words)
        case _:
            return text[:at] + text[at:to].swapcase()[::-1] + text[to:]


def one(files: dict[str, str], name: str) -> LintReport:
    """Lints the policy that a file belongs to."""
    policy = next(
        (path for path in POLICIES.values() if path.split("/")[0] == name.split("/")[0]), POLICIES["fund"]
    )
    return lint([policy], files=MemoryFiles(files))


def slips(seed: int, count: int) -> None:
    rng = Random(seed)
    for _ in range(count):
        name = rng.choice(YAMLS)
        text = texts()[name]
        for _ in range(rng.choice([1, 1, 2, 4])):
            text = edited(rng, text)
        for each in one({**texts(), name: text}, name).diagnostics:
            assert each.help
            assert each.message


def with_unknown_key(rng: Random, name: str) -> tuple[str, str]:
    """A file with a key that nobody knows in one of its mappings, and that key."""
    text = texts()[name]
    root = parse(name, text).root
    assert root is not None
    tables = [node for path, node in walk(root) if isinstance(node, Table) and not (_is_free(name, path))]
    table = rng.choice([each for each in tables if each.entries])
    key = rng.choice(["zzq", "Effect", "x-zzq", "tols", "whenn", "alow"])
    value = rng.choice(["1", "x", "[x]", "{x: 1}", "true", '"x"'])
    if text[table.start] == "{":
        return f"{text[: table.start + 1]}{key}: {value}, {text[table.start + 1 :]}", key
    first = next(iter(table.entries.values())).key
    indent = " " * (first.location.column - 1)
    return f"{text[: first.start]}{key}: {value}\n{indent}{text[first.start :]}", key


def _is_free(name: str, path: tuple[str | int, ...]) -> bool:
    return ".test." in name and any(step in FREE for step in path)


def unknown_keys(seed: int, count: int) -> None:
    rng = Random(seed)
    for _ in range(count):
        name = rng.choice(YAMLS)
        text, key = with_unknown_key(rng, name)
        found = one({**texts(), name: text}, name).diagnostics
        told = [each for each in found if each.location.file == name and f"`{key}`" in each.message]
        near = [
            each
            for each in found
            if each.location.file == name and text.splitlines()[each.location.line - 1].count(f"{key}:")
        ]
        assert told or near, f"{key} in {name} was accepted:\n{text}"


def test_random_edits_never_end_in_a_traceback() -> None:
    slips(1, 200)


@pytest.mark.parametrize("name", ["delete_notes", "delete_note.xe"])
def test_a_tool_that_was_renamed_under_its_rules_is_named(name: str) -> None:
    file = "mini/notes.tools.yaml"
    renamed = {**texts(), file: texts()[file].replace("  delete_note:", f"  {name}:")}
    found = one(renamed, file).diagnostics
    assert [each for each in found if each.severity == "error" and "`delete_note`" in each.message]


def test_no_unknown_key_is_silently_accepted() -> None:
    unknown_keys(2, 100)


@pytest.mark.slow
def test_ten_thousand_random_edits() -> None:
    slips(3, 7_000)
    unknown_keys(4, 3_000)
