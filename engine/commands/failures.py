"""Owns what is printed when a command fails: one message with its remedy, and the exit code."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import click

from engine.domain.diagnostics import Diagnostic
from engine.domain.errors import AgentctlError, PolicyInvalid, UsageError

INTERRUPTED = 130
FAULT = 70
_QUOTED = re.compile(r"'([^']*)'")


class ReaderGone(Exception):
    """Whoever read our output went away; the Run, if one was driven, can be resumed."""


def end_with(error: Exception, args: Sequence[str]) -> int:
    """Prints `error` and returns the exit code. With `--json` it is an object on stdout too."""
    if isinstance(error, ReaderGone):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERRUPTED
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return 2
    known = _known(error, args)
    if known is None:
        return _fault(error, args)
    _say(known.message, known.remedy, known.exit_code, _diagnostics(known), as_json=_wants_json(args))
    return known.exit_code


def interrupted() -> int:
    click.echo("interrupted", err=True)
    return INTERRUPTED


def _known(error: Exception, args: Sequence[str]) -> AgentctlError | None:
    """Errors of ours as they are, those of click and of pipes in our words."""
    if isinstance(error, AgentctlError):
        return error
    if isinstance(error, click.NoSuchOption):
        return UsageError(f"there is no option `{error.option_name}`", remedy=_near(error, args))
    if isinstance(error, click.ClickException):
        said = _QUOTED.sub(r"`\1`", error.format_message().strip().rstrip("."))
        return UsageError(said[:1].lower() + said[1:], remedy=_usage(error, args))
    return None


def _near(error: click.NoSuchOption, args: Sequence[str]) -> str:
    near = sorted(error.possibilities or ())
    return f"did you mean `{near[0]}`?" if near else _usage(error, args)


def _usage(error: click.ClickException, args: Sequence[str]) -> str:
    """Where click does not say which command it was, the first word names it."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    named = next((word for word in args if not word.startswith("-")), "")
    path = context.command_path if context is not None else f"agentctl {named}".rstrip()
    return f"`{path} --help` shows how it is called"


def _diagnostics(error: AgentctlError) -> tuple[Diagnostic, ...]:
    return error.diagnostics if isinstance(error, PolicyInvalid) else ()


def _say(
    message: str, remedy: str, code: int, diagnostics: tuple[Diagnostic, ...] = (), *, as_json: bool
) -> None:
    from engine.report.findings import finding_text
    from engine.report.forms import dumps, error_json
    from engine.report.words import safe

    if as_json:
        click.echo(dumps(error_json(message, remedy, code, diagnostics)))
    texts = {found.location.file: _text(found.location.file) for found in diagnostics}
    for found in diagnostics:
        click.echo(finding_text(found, texts) + "\n", err=True)
    click.echo(f"error: {safe(message)}", err=True)
    click.echo(f"  = help: {safe(remedy)}", err=True)


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


def _wants_json(args: Sequence[str]) -> bool:
    words = list(args[: args.index("--")] if "--" in args else args)
    return "--json" in words or "--format=json" in words or ("--format", "json") in pairwise(words)


# --- faults of ours ---------------------------------------------------------------------------------------


def _fault(error: Exception, args: Sequence[str]) -> int:
    """What nobody foresaw: one line, and the traceback in a file."""
    import traceback

    text = "".join(traceback.format_exception(error))
    message = f"a fault of agentctl: {type(error).__name__}: {error}".splitlines()[0]
    remedy = f"please report it with `{_kept(text)}`; the Run, if there is one, can be resumed"
    _say(message, remedy, FAULT, as_json=_wants_json(args))
    if "--debug" in args:
        click.echo(text, err=True)
    return FAULT


def _kept(text: str) -> str:
    """The name of the file that holds the traceback."""
    import tempfile
    from datetime import UTC, datetime

    name = f"fault-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.log"
    for folder in (Path(".agentctl"), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError:
            continue
        return str(folder / name)
    return "--debug"
