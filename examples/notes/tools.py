"""Owns the tools of the notes agent: finding, deleting and looking for notes, one `<id>.txt` per note."""

from __future__ import annotations

import re
from pathlib import Path

from done_once import DATA_FOLDER, CallContext, Result, moment_of, place, stamp

from engine import Failed, NotExecuted

NOTES_VARIABLE = "AGENTCTL_NOTES_HOME"

FIRST_NOTES = {
    "tea": "Tea: sencha, 80 degrees, two minutes.\n",
    "shopping": "Shopping: tea, oats, apples, lamp oil.\n",
    "books": "Books to return: two, by Friday.\n",
}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
_WORD = re.compile(r"\w+")


def find_note(words: str, context: CallContext | None = None) -> Result:
    """Notes with any of the words, those with the most words first."""
    wanted = {word.lower() for word in _WORD.findall(words)}
    scored = []
    for file in sorted(_folder().glob("*.txt")):
        text = _text(file)
        score = len(wanted & {word.lower() for word in _WORD.findall(text)})
        if score and _ID.fullmatch(file.stem):
            scored.append((-score, file.stem, text))
    notes = [{"id": name, "text": text} for _, name, text in sorted(scored)]
    return {"notes": notes, "at": stamp(moment_of(context))}


def delete_note(note: str, owner: str) -> Result:
    """Deletes one note. Deleting it twice is deleting it once: a note that is gone is the effect asked for."""
    try:
        _file(note).unlink(missing_ok=True)
    except OSError as error:
        raise NotExecuted(f"the note `{note}` of {owner} cannot be deleted: {error.strerror}") from error
    return {"note": note, "deleted": True}


def get_note(id: str) -> Result:  # noqa: A002 - the name in the tool spec
    """Whether there is a note of this id."""
    return {"exists": _file(id).is_file()}


def _folder() -> Path:
    folder = place(NOTES_VARIABLE, DATA_FOLDER / "notes")
    if not folder.exists():
        try:
            folder.mkdir(parents=True)
            for name, text in FIRST_NOTES.items():
                (folder / f"{name}.txt").write_text(text, encoding="utf-8")
        except OSError as error:
            raise NotExecuted(f"the folder `{folder}` cannot be made: {error.strerror}") from error
    return folder


def _file(note: str) -> Path:
    if not _ID.fullmatch(note):
        raise Failed(f"`{note}` is not the id of a note")
    return _folder() / f"{note}.txt"


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"the note `{file.stem}` cannot be read: {error}") from error
