"""Notes and files live in folders of one's own; nothing outside them can be named."""

from __future__ import annotations

from pathlib import Path

import pytest
from files import tools as files
from notes import tools as notes

from engine import Failed, NotExecuted
from engine.adapters.function_tools import FunctionTools
from engine.policy.compiler import compile_policy
from tests.examples.call_context import call

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENTCTL_NOTES_HOME", str(tmp_path / "notes"))
    monkeypatch.setenv("AGENTCTL_FILES_HOME", str(tmp_path / "files"))
    (tmp_path / "files" / "old").mkdir(parents=True)
    (tmp_path / "files" / "old" / "list.txt").write_text("12 bytes now")
    return tmp_path


def test_every_handler_of_the_policy_fits_its_function() -> None:
    policy = compile_policy(str(ROOT / "policies" / "notes.policy.yaml")).policy
    assert policy is not None
    assert FunctionTools({}, [ROOT / "examples"]).check(list(policy.tools.values())) == []


def test_first_use_makes_a_few_notes_and_finds_the_best_first(folder: Path) -> None:
    found = notes.find_note("sencha TEA", call())["notes"]
    assert [note["id"] for note in found] == ["tea", "shopping"]
    assert notes.find_note("!", call())["notes"] == []


def test_notes_of_ones_own_folder_are_left_as_they_are(folder: Path) -> None:
    (folder / "notes").mkdir()
    (folder / "notes" / "mine.txt").write_text("only this")
    assert [note["id"] for note in notes.find_note("this", call())["notes"]] == ["mine"]
    assert not (folder / "notes" / "tea.txt").exists()


def test_deleted_note_is_gone_and_its_probe_says_so() -> None:
    assert notes.get_note("tea") == {"exists": True}
    first = notes.delete_note("tea", "me")
    assert notes.delete_note("tea", "me") == first
    assert notes.get_note("tea") == {"exists": False}


@pytest.mark.parametrize("note", ["../files/old/list", "", "a b", "tea.txt"])
def test_id_that_is_no_note_fails(note: str) -> None:
    with pytest.raises(Failed, match="not the id"):
        notes.delete_note(note, "me")


def test_deleted_file_is_gone_and_its_probe_says_so(folder: Path) -> None:
    assert files.list_files(call())["files"] == [{"path": "old/list.txt", "bytes": 12}]
    assert files.file_exists("old/list.txt") == {"exists": True}
    assert files.delete_file("old/list.txt") == files.delete_file("old/list.txt")
    assert files.file_exists("old/list.txt") == {"exists": False}
    assert not (folder / "files" / "old" / "list.txt").exists()


@pytest.mark.parametrize("name", ["../notes/tea.txt", "/etc/hosts", "", "old/../../x"])
def test_file_outside_the_folder_is_refused(name: str) -> None:
    with pytest.raises(Failed, match="not a file"):
        files.delete_file(name)


def test_folder_and_link_are_not_deleted(folder: Path) -> None:
    (folder / "files" / "link").symlink_to(folder / "files" / "old" / "list.txt")
    with pytest.raises(Failed, match="`link` is not a file"):
        files.delete_file("link")
    with pytest.raises(NotExecuted, match="`old` cannot be deleted"):
        files.delete_file("old")
    assert files.file_exists("old/list.txt") == {"exists": True}
