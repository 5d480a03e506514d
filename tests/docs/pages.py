"""Owns what is read off a Markdown page: the blocks that are run, the paths and test names that are named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FENCE = re.compile(r"^```(\w*)\s*$")
OWN_PROCESS = "<!-- in a process of its own -->"
ELIDED = "…"


@dataclass
class Step:
    """One command of a page and what it printed, without the last line break."""

    command: str
    output: list[str]
    own_process: bool = False


@dataclass
class Block:
    """A fenced block: lines `start` to `end` of its page, without the fences."""

    language: str
    start: int
    end: int
    lines: list[str]
    own_process: bool = False
    steps: list[Step] = field(default_factory=list)


@dataclass
class Page:
    path: Path
    lines: list[str]
    blocks: list[Block]

    @property
    def prose(self) -> str:
        """The page without its fenced blocks."""
        inside = {number for block in self.blocks for number in range(block.start - 1, block.end + 1)}
        return "\n".join(line for number, line in enumerate(self.lines) if number not in inside)


def read_page(path: Path) -> Page:
    lines = path.read_text(encoding="utf-8").split("\n")
    blocks = list(_blocks(lines))
    for block in blocks:
        if block.language == "console":
            block.steps = _steps(block)
    return Page(path, lines, blocks)


def _blocks(lines: list[str]) -> Iterator[Block]:
    opened: tuple[int, str] | None = None
    for number, line in enumerate(lines):
        found = FENCE.match(line)
        if found is None:
            continue
        if opened is None:
            opened = number, found[1]
            continue
        start, language = opened
        above = next((each for each in reversed(lines[:start]) if each.strip()), "")
        yield Block(language, start + 1, number, lines[start + 1 : number], above == OWN_PROCESS)
        opened = None


def _steps(block: Block) -> list[Step]:
    """`$ ` begins a command, `> ` continues it, everything else is output."""
    steps: list[Step] = []
    for line in block.lines:
        if line.startswith("$ "):
            steps.append(Step(line[2:], [], block.own_process))
        elif line.startswith("> ") and steps and not steps[-1].output:
            steps[-1].command += "\n" + line[2:]
        else:
            steps[-1].output.append(line)
    return steps


def written(steps: list[Step]) -> list[str]:
    """The lines of a console block with these steps."""
    lines = []
    for step in steps:
        first, *more = step.command.split("\n")
        lines += [f"$ {first}", *(f"> {line}" for line in more), *step.output]
    return lines


def rewrite(page: Page) -> None:
    """Writes the page with what its blocks hold now."""
    lines = list(page.lines)
    for block in reversed(page.blocks):
        lines[block.start : block.end] = block.lines
    page.path.write_text("\n".join(lines), encoding="utf-8")
