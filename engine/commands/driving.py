"""Owns the driving of one Run from the command line: signals, progress, prompts, the report at the end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

import click

from engine.commands.failures import INTERRUPTED
from engine.commands.options import deltas_asked
from engine.commands.prompts import answered
from engine.commands.reading import Read, policies_of, read_run
from engine.domain.actors import Actor
from engine.domain.diagnostics import many
from engine.domain.ids import RunId
from engine.domain.state import RunState
from engine.lifecycle import steps
from engine.policy import budgets
from engine.report.ending import ending_json, ending_lines
from engine.report.forms import dumps
from engine.report.json_lines import JsonLines
from engine.report.progress import Progress
from engine.report.waiting import REMEDIES, Ways
from engine.report.words import Style, one_line

if TYPE_CHECKING:
    from engine.runtime.driver import Driven
    from engine.runtime.journal import Observer
    from engine.runtime.runtime import Runtime

COMPLETED, UNREACHABLE, WAITS, ENDED = 0, 2, 5, 6


@dataclass(frozen=True, slots=True)
class Surface:
    """How a command shows a Run, and who answers at its prompts."""

    as_json: bool
    quiet: bool
    options: str
    """What a command that continues must repeat (`--db URL`)."""
    by: Actor | None = None
    """Who may answer questions and decide at the prompt; None: nobody is asked."""

    @property
    def style(self) -> Style:
        return Style(sys.stdout.isatty() and not os.environ.get("NO_COLOR"))

    @property
    def interactive(self) -> bool:
        return self.by is not None and not self.as_json and sys.stdin.isatty() and sys.stdout.isatty()

    def ways(self, run: RunId) -> Ways:
        return Ways(run, self.options)


def announce(surface: Surface, state: RunState) -> None:
    """The first line of a drive: which Run, for whom, under which policy, with which model."""
    if surface.as_json or surface.quiet:
        return
    who = state.principal
    roles = ", ".join(who.roles) if who else ""
    click.echo(
        f"Run {state.run}: {state.policy} v{state.policy_version} for {who.id if who else '-'} ({roles}), "
        f"model {state.model}" + (f", after {many(len(state.turns), 'turn')}" if state.turns else "")
    )


def drive(runtime: Runtime, run: RunId, surface: Surface) -> int:
    """Drives until the Run is over, waits for somebody, or is interrupted; prints it; returns the exit code."""
    observer, on_text = _ears(runtime, surface)
    while True:
        with _stoppable(runtime, surface.ways(run).command("resume")) as asked:
            driven = asyncio.run(_drive(runtime, run, observer, on_text, asked))
        if (
            driven is None
            or driven.interrupted
            or not (surface.interactive and answered(runtime, driven.state, surface.by))
        ):
            return _report(runtime, run, driven, surface)


async def _drive(
    runtime: Runtime,
    run: RunId,
    observer: Observer | None,
    on_text: Callable[[str], None] | None,
    asked: list[int],
) -> Driven | None:
    """None: a signal came before the drive began."""
    if asked:
        return None
    return await runtime.drive(run, observers=[observer] if observer is not None else [], on_text=on_text)


@contextmanager
def _stoppable(runtime: Runtime, resume: str) -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM stop once; a second one ends the process, which the log survives."""
    asked: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        if asked:
            os.write(2, f"interrupted; `{resume}` continues it\n".encode())
            os._exit(INTERRUPTED)
        asked.append(number)
        os.write(2, b"stopping: running tools may still answer; once more ends at once\n")
        runtime.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ears(runtime: Runtime, surface: Surface) -> tuple[Observer | None, Callable[[str], None] | None]:
    """Who sees the events, and who hears working text as it comes: on a terminal, or where it was asked for."""
    asked = deltas_asked()
    if surface.as_json:
        lines = JsonLines(click.echo)
        return lines, lines.hear if asked else None
    if surface.quiet:
        return None, None
    live = asked or sys.stdout.isatty()
    progress = Progress(
        click.echo,
        lambda state: list(policies_of(runtime.library, state)),
        lambda state: budgets.of(policies_of(runtime.library, state)),
        surface.style,
        partial(click.echo, nl=False) if live else None,
    )
    return progress, progress.hear if live else None


# --- the end ----------------------------------------------------------------------------------------------


def _report(runtime: Runtime, run: RunId, driven: Driven | None, surface: Surface) -> int:
    read = read_run(runtime.store, run)
    code = _exit_code(read.state, driven)
    ways = surface.ways(run)
    if surface.as_json:
        click.echo(dumps(_last_object(read, driven, ways, code)))
        return code
    if code == INTERRUPTED:
        click.echo(f"interrupted; `{ways.command('resume')}` continues it", err=True)
        return code
    if driven is not None and code == UNREACHABLE and isinstance(driven.step, steps.Stop):
        _unreachable(driven.step, ways)
        return code
    for line in ending_lines(read.state, read.outputs, ways, surface.style):
        click.echo(line)
    return code


def _last_object(read: Read, driven: Driven | None, ways: Ways, code: int) -> dict[str, object]:
    last: dict[str, object] = {**ending_json(read.state, read.outputs, ways), "exit_code": code}
    if code == UNREACHABLE and driven is not None and isinstance(driven.step, steps.Stop):
        last["error"] = driven.step.message
        last["next"] = [ways.command("resume")]
    if code == INTERRUPTED:
        last["next"] = [ways.command("resume")]
    return last


def _exit_code(state: RunState, driven: Driven | None) -> int:
    if state.ending is not None:
        return COMPLETED if state.ending[0] == "completed" else ENDED
    if driven is None:
        return INTERRUPTED
    if isinstance(driven.step, steps.Stop):
        return UNREACHABLE
    if isinstance(driven.step, steps.Wait):
        return WAITS
    return INTERRUPTED


def _unreachable(step: steps.Stop, ways: Ways) -> None:
    remedy = REMEDIES.get(step.error, "mend what it says")
    click.echo(f"error: the model could not be reached: {one_line(step.message, 600)}", err=True)
    click.echo(f"  = help: {remedy}; `{ways.command('resume')}` continues the Run", err=True)
