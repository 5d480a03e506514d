"""Owns where the operations example lives: one folder with the repository, the working copy and a database."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from pathlib import Path

from done_once import DATA_FOLDER, Store, place

from engine import Failed
from ops_agent import git, seed

HOME_VARIABLE = "AGENTCTL_OPS_HOME"
DATABASE_FILE = "ops.sqlite"

SCHEMA = (
    "create table issue (number int primary key, issue_id text, title text, body text, updated_at text)",
    "create table comment (number int, author text, body text)",
    "create table pull_request (number integer primary key, repo text, branch text, title text, body text,"
    " head text, state text, opened_at text, unique (repo, branch))",
    "create table check_run (id text primary key, name text, verdict text, head text, output text, ended_at text)",
    "create table service (cluster text, name text, healthy int, restarts int, started_at text,"
    " primary key (cluster, name))",
    "create table host_command (id integer primary key, argv text, output text, run text, ran_at text)",
)

_SETTING_UP = threading.Lock()


def _seed(connection: sqlite3.Connection) -> None:
    connection.executemany("insert into issue values (?, ?, ?, ?, ?)", seed.ISSUES)
    connection.executemany("insert into comment values (?, ?, ?)", seed.COMMENTS)
    connection.executemany("insert into service values (?, ?, ?, 0, ?)", seed.SERVICES)


def home() -> Path:
    """The folder that `AGENTCTL_OPS_HOME` names, else `.agentctl/ops`."""
    return place(HOME_VARIABLE, DATA_FOLDER / "ops").resolve()


def worktree() -> Path:
    """The working copy, made on first use."""
    return setup(home())


def database() -> Store:
    """Issues, pull requests, checks, services and the log of the maintenance host."""
    return Store("", home() / DATABASE_FILE, SCHEMA, _seed)


def known(repo: str) -> None:
    """Raises Failed for any repository but the one that is here."""
    if repo != seed.REPOSITORY:
        raise Failed(f"there is no repository `{repo}`, only `{seed.REPOSITORY}`")


def setup(folder: Path) -> Path:
    """Makes the bare repository `origin.git` and its clone `work` in `folder`, once. Returns the clone."""
    work = folder / "work"
    with _SETTING_UP:
        if not work.is_dir():
            scratch = folder / "setup"
            shutil.rmtree(scratch, ignore_errors=True)
            shutil.rmtree(folder / "origin.git", ignore_errors=True)
            scratch.mkdir(parents=True)
            _write(scratch, seed.FILES)
            git.run(scratch, "init", "--quiet", "--initial-branch=main")
            git.run(scratch, "add", "--all")
            git.run(scratch, "commit", "--quiet", "--message=First commit")
            git.run(folder, "clone", "--quiet", "--bare", str(scratch), "origin.git")
            git.run(scratch, "remote", "add", "origin", str(folder / "origin.git"))
            scratch.rename(work)
    return work


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
