"""Owns the terminal session in which a page's commands are run, and the comparison with what the page shows.

`agentctl` runs in this process (a real one where the page asks for it), everything else in bash. A Run has another id
each time: the page's ids stand for the real ones in the order in which they appear.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from cli import main
from tests.docs.pages import ELIDED, ROOT, Step

RUN = re.compile(r"\br[0-9a-hjkmnp-tv-z]{16}\b")
_CHANGING = (
    (RUN, "RUN"),
    (re.compile(r"20[2-9]\d-\d\d-\d\d \d\d:\d\d(:\d\d(\.\d{3})?( UTC)?)?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{40,64}\b"), "HASH"),
    (re.compile(r"\b[0-9a-f]{12}([0-9a-f]{4})?\b"), "HASH"),
    (re.compile(r"\b(\d+h)?(\d+m)?\d\ds\b"), "SPAN"),
    (re.compile(r"\b\d\.\ds\b"), "SPAN"),
)


def normal(line: str) -> str:
    """A line without what differs from one session to the next: ids, times, digests."""
    for pattern, word in _CHANGING:
        line = pattern.sub(word, line)
    return line.rstrip()


class Session:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.real: dict[str, str] = {}
        """Run id of the page -> Run id of this session."""
        self.variables: dict[str, str] = {}
        self._shim(folder / ".bin/agentctl")

    def play(self, step: Step) -> list[str]:
        """What the command prints, with the ids of the page where they are known."""
        command = RUN.sub(lambda found: self.real.get(found[0], found[0]), step.command)
        printed = self._run(command, step.own_process)
        self._learn(step.output, printed)
        shown = {real: page for page, real in self.real.items()}
        return [RUN.sub(lambda found: shown.get(found[0], found[0]), line) for line in printed.splitlines()]

    def _learn(self, shown: list[str], printed: str) -> None:
        fresh = [each for each in _ids("\n".join(shown)) if each not in self.real]
        news = [each for each in _ids(printed) if each not in self.real.values()]
        self.real.update(zip(fresh, news, strict=False))

    def _run(self, command: str, own_process: bool) -> str:
        if found := re.fullmatch(r"(\w+)=(\S+)", command):
            self.variables[found[1]] = found[2]
            return ""
        if found := re.fullmatch(r"cd (\S+)", command):
            self.folder = (self.folder / found[1]).resolve()
            os.chdir(self.folder)
            return ""
        if own_process or not command.startswith("agentctl "):
            return self._bash(command)
        words, _, rest = command.partition(" | ")
        words, _, echo = words.partition("; ")
        code, out = self._here(words)
        if rest:
            out = self._bash(rest, out)
        return out + f"{code}\n" if echo == "echo $?" else out

    def _here(self, command: str) -> tuple[int, str]:
        for name, value in self.variables.items():
            command = command.replace(f"${name}", value)
        result = CliRunner().invoke(main, shlex.split(command)[1:])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.output

    def _bash(self, command: str, given: str = "") -> str:
        first = self.folder
        while not (first / ".bin").is_dir():
            first = first.parent
        env = {
            **os.environ,
            **self.variables,
            "PATH": f"{first / '.bin'}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
        }
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=env,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        return re.sub(r"^bash: line \d+: +\d+ (Killed) .*$", r"\1", ran.stdout, flags=re.MULTILINE)

    def _shim(self, path: Path) -> None:
        path.parent.mkdir()
        path.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} {ROOT / "cli.py"} "$@"\n')
        path.chmod(0o755)


def _ids(text: str) -> list[str]:
    return list(dict.fromkeys(RUN.findall(text)))


def agrees(shown: list[str], printed: list[str]) -> bool:
    """Whether the page shows what was printed; a line `…` of the page stands for any number of lines."""
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if line == ELIDED else re.escape(normal(line)) + "\n" for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{normal(line)}\n" for line in printed)) is not None


def merged(shown: list[str], printed: list[str]) -> list[str]:
    """What the page is to show: its own lines where they still hold, `…` where it left something out."""
    matcher = difflib.SequenceMatcher(
        None, [normal(line) for line in shown], [normal(line) for line in printed], autojunk=False
    )
    lines: list[str] = []
    for kind, start, end, first, last in matcher.get_opcodes():
        if kind == "equal" or shown[start:end] == [ELIDED]:
            lines += shown[start:end]
        else:
            lines += printed[first:last]
    return lines
