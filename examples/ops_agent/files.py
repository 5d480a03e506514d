"""Owns the tools that read and change the working copy."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from done_once import CallContext, Result, moment_of, once, stamp

from engine import Failed, NotExecuted
from ops_agent import git
from ops_agent.place import database, known, worktree

MAX_CHARACTERS = 200_000
MAX_HITS = 20


def read_file(path: str, context: CallContext | None = None) -> Result:
    """The text of a file and its blob id, which an edit names as its base."""
    work = worktree()
    text = _text(_inside(work, path), path)
    if len(text) > MAX_CHARACTERS:
        raise Failed(f"`{path}` has {len(text)} characters; at most {MAX_CHARACTERS} are read")
    return {
        "path": path,
        "blob": git.blob_of(work, text),
        "read_at": stamp(moment_of(context)),
        "text": text,
    }


def search_code(text: str, under: str | None = None, context: CallContext | None = None) -> Result:
    """Lines that hold the literal, in tracked files outside `secrets/` and `.env`, the first twenty."""
    work = worktree()
    where = [under] if under else []
    listed = git.run(work, "ls-files", "-z", "--", *where).split("\0")
    hits: list[Result] = []
    for name in sorted(filter(None, listed)):
        if not _closed(name):
            hits += _hits(work, name, text)
    return {
        "matches": len(hits),
        "hits": hits[:MAX_HITS],
        "read_at": stamp(moment_of(context)),
    }


def edit_file(path: str, base: str, content: str, context: CallContext | None = None) -> Result:
    """Replaces the text of a file whose blob is still `base`; the old text stays in the repository's store."""
    work = worktree()
    file = _inside(work, path)

    def edit() -> Result:
        old = _text(file, path)
        found = git.blob_of(work, old, keep=True)
        if found != base:
            raise NotExecuted(f"`{path}` is `{found}` now, not `{base}`; read it again")
        blob = git.blob_of(work, content)
        _replace(file, content)
        return {"path": path, "blob": blob}

    with database().transaction() as ops:
        return once(ops, "edit_file", context, edit)


def restore_file(path: str, blob: str) -> Result:
    """Puts the stored text of a blob back."""
    work = worktree()
    _replace(_inside(work, path), git.text_of(work, blob))
    return {"path": path, "blob": blob}


def repo_state(repo: str) -> Result:
    """How many commits the working copy has, its head, and whether files differ from it."""
    work = worktree()
    known(repo)
    return {
        "version": int(git.run(work, "rev-list", "--count", "HEAD")),
        "head": git.run(work, "rev-parse", "HEAD").strip(),
        "dirty": bool(git.run(work, "status", "--porcelain").strip()),
    }


def _hits(work: Path, name: str, text: str) -> list[Result]:
    try:
        content = _text(_inside(work, name), name)
    except Failed:
        return []
    blob = git.blob_of(work, content) if text in content else ""
    return [
        {"path": name, "line": number, "text": line, "blob": blob}
        for number, line in enumerate(content.splitlines(), 1)
        if text in line
    ]


def _closed(name: str) -> bool:
    """INVARIANT: a search shows nothing of what the policy keeps from `read_file`."""
    return name == ".env" or name.split("/", 1)[0] in ("secrets", ".env")


def _inside(work: Path, path: str) -> Path:
    """The file. Refused: what is outside the working copy or in `.git`, and links, which would get round a policy
    that speaks of paths."""
    file = work / path
    if work not in file.parents or file.resolve() != file or ".git" in file.relative_to(work).parts:
        raise Failed(f"`{path}` is not a file of the working copy")
    return file


def _text(file: Path, path: str) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise Failed(f"there is no file `{path}`") from error
    except (IsADirectoryError, UnicodeDecodeError) as error:
        raise Failed(f"`{path}` is not a text file") from error
    except OSError as error:
        raise Failed(f"`{path}` cannot be read: {error.strerror}") from error


def _replace(file: Path, text: str) -> None:
    """Whole or not at all."""
    try:
        handle, scratch = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".part")
    except OSError as error:
        raise NotExecuted(f"`{file.name}` cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
            out.write(text)
        Path(scratch).chmod(file.stat().st_mode if file.exists() else 0o644)
        Path(scratch).replace(file)
    except OSError as error:
        Path(scratch).unlink(missing_ok=True)
        raise NotExecuted(f"`{file.name}` cannot be written: {error.strerror}") from error
