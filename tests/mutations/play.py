"""Owns the play of one mutation: the fault is put into a copy of the package, and the named tests run against it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.mutations.listed import MUTATIONS, Mutation

ROOT = Path(__file__).parent.parent.parent
COPIED = ("engine", "tests", "policies", "tool_specs", "examples")
FILES = ("cli.py", "pyproject.toml", "agentctl.yaml")
SOME_FAILED = 1


class Played(NamedTuple):
    status: int
    """As pytest ends: 0 all passed, 1 some failed, anything else is no verdict."""
    said: str


def listed() -> list[Mutation]:
    return [mutation for group in MUTATIONS.values() for mutation in group]


def times_found(mutation: Mutation, root: Path = ROOT) -> int:
    return (root / mutation.file).read_text(encoding="utf-8").count(mutation.old)


class Copy:
    """The package and its tests in a folder of their own; one fault at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        leave = shutil.ignore_patterns("node_modules", ".hypothesis", ".pytest_cache")
        for name in COPIED:
            shutil.copytree(ROOT / name, folder / name, ignore=leave)
        for name in FILES:
            shutil.copy2(ROOT / name, folder / name)

    def play(self, mutation: Mutation) -> Played:
        """Runs the tests of the mutation against the package with its fault, then takes the fault out again."""
        file = self._folder / mutation.file
        was = file.read_text(encoding="utf-8")
        file.write_text(was.replace(mutation.old, mutation.new), encoding="utf-8")
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            compiled.unlink()
        try:
            return self.run(*mutation.tests)
        finally:
            file.write_text(was, encoding="utf-8")

    def run(self, *tests: str) -> Played:
        """No bytecode is written: what was compiled with a fault must not outlive it."""
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=line", *tests],
            cwd=self._folder, capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(self._folder)},
        )  # fmt: skip
        return Played(done.returncode, done.stdout[-3000:] + done.stderr[-1000:])


def page() -> str:
    """`docs/mutations.md`."""
    lines = [
        "# Hand mutations",
        "",
        "Each line is a small fault put by hand into a gate, a fence or a binding, and the test that turns red when",
        "the fault is there. `pytest -m slow tests/mutations` plays them all; the default run checks that each still",
        "applies to the source. This page is written by `pytest tests/mutations --update-golden` from",
        "`tests/mutations/listed.py`.",
        "",
        f"{len(listed())} mutations.",
    ]
    for section, group in MUTATIONS.items():
        lines += [
            "",
            f"## {section}",
            "",
            "| What the fault breaks | In | Test that turns red |",
            "|---|---|---|",
        ]
        lines += [_row(mutation) for mutation in group]
    return "\n".join(lines) + "\n"


def _row(mutation: Mutation) -> str:
    tests = "<br>".join(f"`{test.removeprefix('tests/')}`" for test in mutation.tests)
    return f"| {mutation.breaks} | `{mutation.file}` | {tests} |"
