"""Owns the forge stand-in: issues to read, pull requests to open and close, in a local database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from done_once import CallContext, Result, moment_of, once, stamp

from engine import Failed, NotExecuted
from ops_agent import git
from ops_agent.place import database, known, worktree


def read_issue(number: int) -> Result:
    """An issue and its comments, as strangers wrote them."""
    with database().transaction() as ops:
        issue = ops.execute("select * from issue where number = ?", (number,)).fetchone()
        comments = ops.execute("select author, body from comment where number = ?", (number,)).fetchall()
    if issue is None:
        raise Failed(f"there is no issue {number}")
    return dict(issue) | {"comments": [dict(comment) for comment in comments]}


def open_pull_request(
    repo: str, branch: str, title: str, body: str, context: CallContext | None = None
) -> Result:
    """Commits the working copy, pushes it to a new branch of `origin`, and opens a pull request for it.

    A branch that a call pushed before it died, without its pull request, is overwritten.
    """
    known(repo)
    work = worktree()
    with database().transaction() as ops:

        def open_() -> Result:
            if _by_branch(ops, branch) is not None:
                raise NotExecuted(f"there is a pull request of `{branch}` already")
            head = _push(work, branch, title)
            row = (repo, branch, title, body, head, stamp(moment_of(context)))
            done = ops.execute(
                "insert into pull_request (repo, branch, title, body, head, state, opened_at)"
                " values (?, ?, ?, ?, ?, 'open', ?)",
                row,
            )
            return {"number": int(done.lastrowid or 0), "branch": branch, "head": head}

        return once(ops, "open_pull_request", context, open_)


def find_pull_request(key: str) -> Result:
    """Whether there is a pull request of this branch."""
    with database().transaction() as ops:
        return {"found": _by_branch(ops, key) is not None}


def close_pull_request(number: int) -> Result:
    """Closes an open pull request and deletes its branch; a closed one stays closed."""
    work = worktree()
    with database().transaction() as ops:
        row = ops.execute("select * from pull_request where number = ?", (number,)).fetchone()
        if row is None:
            raise Failed(f"there is no pull request {number}")
        if row["state"] == "open":
            ops.execute("update pull_request set state = 'closed' where number = ?", (number,))
            git.run(work, "push", "--quiet", "origin", "--delete", row["branch"])
    return {"number": number, "state": "closed"}


def _push(folder: Path, branch: str, title: str) -> str:
    """The pushed commit: the working copy on top of its head, while `main` and the files stay as they are."""
    try:
        git.run(folder, "add", "--all")
        tree = git.run(folder, "write-tree").strip()
        git.run(folder, "reset", "--quiet")
        head = git.run(folder, "rev-parse", "HEAD").strip()
        if tree == git.run(folder, "rev-parse", "HEAD^{tree}").strip():
            raise NotExecuted("the working copy has no change to propose")
        commit = git.run(folder, "commit-tree", tree, "-p", head, "-m", title).strip()
        git.run(folder, "push", "--quiet", "--force", "origin", f"{commit}:refs/heads/{branch}")
    except git.GitRefused as error:
        raise NotExecuted(str(error)) from error
    return commit


def _by_branch(ops: sqlite3.Connection, branch: str) -> sqlite3.Row | None:
    return ops.execute(  # type: ignore[no-any-return]  # sqlite3 types rows as Any
        "select * from pull_request where branch = ?", (branch,)
    ).fetchone()
