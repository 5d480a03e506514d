"""Owns the calls of the `git` program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from engine import Failed, NotExecuted

SECONDS = 30
_SETTINGS = (
    "user.name=ops agent",
    "user.email=ops-agent@example.org",
    "commit.gpgsign=false",
    "core.hooksPath=",
)


class GitRefused(Failed):
    """git ended with an error; the text is what it said."""


def run(folder: Path, *words: str, stdin: str | None = None) -> str:
    """What git prints. Raises GitRefused; NotExecuted where there is no git."""
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | quiet
    try:
        done = subprocess.run(
            ["git", *settings, *words],
            cwd=folder,
            env=environment,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise NotExecuted("the program `git` is not installed") from error
    if done.returncode:
        raise GitRefused(f"git {words[0]}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def blob_of(folder: Path, text: str, keep: bool = False) -> str:
    """The blob id of a text; `keep` also stores it in the repository."""
    return run(folder, "hash-object", *(["-w"] if keep else []), "--stdin", stdin=text).strip()


def text_of(folder: Path, blob: str) -> str:
    """The stored text of a blob. Raises Failed where the repository does not have it."""
    try:
        return run(folder, "cat-file", "blob", blob)
    except GitRefused as error:
        raise Failed(f"the repository has no blob `{blob}`") from error
