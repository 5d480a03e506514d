"""Owns the CI stand-in: four named checks over the working copy. The tests run as they are, in no sandbox."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from done_once import CallContext, Result, moment_of, stamp

from engine import Failed
from ops_agent import git
from ops_agent.place import database, worktree

SECONDS = 50
LINE_LENGTH = 110
OUTPUT_CHARACTERS = 4000


def run_check(check: str, context: CallContext | None = None) -> Result:
    """Runs one check and keeps its verdict; `output` ends with what failed."""
    work, ended = worktree(), stamp(moment_of(context))
    found = CHECKS.get(check)
    if found is None:
        raise Failed(f"there is no check `{check}`; there are {', '.join(CHECKS)}")
    faults = found(work)
    verdict, output = "fail" if faults else "pass", "\n".join(faults)[-OUTPUT_CHARACTERS:]
    head = git.run(work, "rev-parse", "HEAD").strip()
    with database().transaction() as ops:
        id_ = f"check-{ops.execute('select count(*) from check_run').fetchone()[0] + 1}"
        ops.execute(
            "insert into check_run values (?, ?, ?, ?, ?, ?)", (id_, check, verdict, head, output, ended)
        )
    return {"check_id": id_, "verdict": verdict, "ended_at": ended, "output": output}


def _unit(work: Path) -> list[str]:
    return _program(work, "-m", "unittest", "discover", "-s", "tests", "-t", ".")


def _lint(work: Path) -> list[str]:
    """Lines that are too long, end in blanks or begin with a tab."""
    return [
        f"{file.relative_to(work)}:{number}: {fault}"
        for file in _sources(work)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for fault in _line_faults(line)
    ]


def _types(work: Path) -> list[str]:
    """Functions that do not say what they take and return."""
    return [
        f"{file.relative_to(work)}:{node.lineno}: `{node.name}` is not annotated"
        for file in _sources(work)
        for node in _functions(file)
        if node.returns is None or any(arg.annotation is None for arg in node.args.args if arg.arg != "self")
    ]


def _build(work: Path) -> list[str]:
    """Files that are not Python."""
    faults = []
    for file in _sources(work):
        try:
            ast.parse(file.read_text(encoding="utf-8"))
        except SyntaxError as error:
            faults.append(f"{file.relative_to(work)}:{error.lineno}: {error.msg}")
    return faults


CHECKS: dict[str, Callable[[Path], list[str]]] = {
    "unit": _unit,
    "lint": _lint,
    "types": _types,
    "build": _build,
}


def _sources(work: Path) -> list[Path]:
    return sorted([*(work / "src").rglob("*.py"), *(work / "tests").rglob("*.py")])


def _functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except SyntaxError:
        return  # the check `build` names it
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _line_faults(line: str) -> list[str]:
    return [
        fault
        for fault, found in (
            (f"longer than {LINE_LENGTH}", len(line) > LINE_LENGTH),
            ("blanks at the end", line != line.rstrip()),
            ("a tab", line.startswith("\t")),
        )
        if found
    ]


def _program(work: Path, *words: str) -> list[str]:
    """What a Python program says where it ends badly; it gets no variable of ours but the path."""
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=work,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [f"no end within {SECONDS} s"]
    return [done.stderr.strip() or f"exit code {done.returncode}"] if done.returncode else []
