"""Owns `agentctl verify`: hashes the log of a Run again and names the first event that does not hold."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.commands.options import run_argument, store_options
from engine.domain.diagnostics import many

if TYPE_CHECKING:
    from engine.domain.ids import RunId
    from engine.ports import EventStore, Head
    from engine.runtime.audit import VerifyReport
    from engine.runtime.secrets_scan import Leak

BROKEN = 1
_HEAD = re.compile(r"(\d{1,12}):([0-9a-f]{64})")


@click.command("verify")
@run_argument
@click.option(
    "--head",
    "file",
    metavar="FILE",
    help="A file outside the database that keeps the head: checked where it is there, written where the log holds.",
)
@click.option("--witness", metavar="SEQ:HASH", help="A head of this Run that was written down elsewhere.")
@click.option("--secrets", is_flag=True, help="Also look for registered secrets in the log.")
@store_options
def verify_command(
    run: str, file: str | None, witness: str | None, secrets: bool, db: str | None, as_json: bool
) -> int:
    """Check that nobody changed a log. Prints the head: kept elsewhere, it is a witness for later."""
    from engine.commands.reading import opened
    from engine.report.forms import dumps
    from engine.runtime.audit import verify
    from engine.runtime.naming import run_of

    with opened(db) as store:
        named = run_of(store, run)
        kept = _kept(file, named) if file is not None else None
        report = verify(store, named, _witness(witness) or kept)
        leaks = _leaks(store, named) if secrets else None
    if file is not None and report.holds:
        _keep(file, report)
    if as_json:
        broken = {"seq": report.broken.seq, "what": report.broken.what} if report.broken else None
        head = {"seq": report.head.seq, "hash": report.head.hash}
        form = {"schema": "agentctl.verify/v1", "run": report.run, "holds": report.holds, "head": head}
        found: dict[str, object] = {}
        if leaks is not None:
            found = {"secrets": [asdict(leak) for leak in leaks], "not_looked_for": _absent()}
        click.echo(dumps({**form, "broken": broken, **found}))
    elif report.broken is None:
        click.echo(
            f"Run {report.run} holds: {many(report.head.seq, 'event')}, head {report.head.seq}:{report.head.hash}"
        )
    else:
        click.echo(f"Run {report.run} is broken at event {report.broken.seq}: {report.broken.what}")
        click.echo(f"the events before it hold, head {report.head.seq}:{report.head.hash}")
    if not as_json and leaks is not None:
        click.echo("\n".join(_leak_lines(leaks, _absent())))
    return 0 if report.holds and not leaks else BROKEN


def _leaks(store: EventStore, run: RunId) -> list[Leak]:
    """Raises UsageError where no secret is registered: nothing would be checked."""
    from engine.bootstrap import open_secrets
    from engine.domain.errors import UsageError
    from engine.policy.documents.project import load_project
    from engine.runtime.secrets_scan import scan

    held = open_secrets(load_project(Path.cwd()))
    if held is None:
        raise UsageError(
            "no secret is registered here", remedy="name them under `secrets` in agentctl.yaml, and set them"
        )
    return scan(store, run, held)


def _absent() -> list[str]:
    from engine.bootstrap import absent_secrets
    from engine.policy.documents.project import load_project

    return absent_secrets(load_project(Path.cwd()))


def _leak_lines(leaks: list[Leak], absent: list[str]) -> list[str]:
    lines = [f"event {leak.seq} ({leak.kind}): secret `{leak.secret}` in {leak.where}" for leak in leaks]
    if not leaks:
        lines = ["no registered secret is in it"]
    if absent:
        names = ", ".join(f"`{name}`" for name in absent)
        lines.append(f"not looked for, since their values are not set here: {names}")
    return lines


def _kept(file: str, run: RunId) -> Head | None:
    """The newest head of this Run in the file, a line each: RUN SEQ:HASH. None where it has none yet."""
    from engine.domain.errors import SourceError

    if not Path(file).exists():
        return None
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"`{file}` cannot be read: {error}", remedy="name the file of heads") from None
    heads = [
        _witness(head.strip()) for name, _, head in (line.partition(" ") for line in lines) if name == run
    ]
    return heads[-1] if heads else None


def _keep(file: str, report: VerifyReport) -> None:
    """Adds the head where it is new; nothing in the file is ever changed."""
    from engine.domain.errors import SourceError

    line = f"{report.run} {report.head.seq}:{report.head.hash}\n"
    try:
        known = Path(file).read_text(encoding="utf-8") if Path(file).exists() else ""
        if line not in known:
            with Path(file).open("a", encoding="utf-8") as heads:
                heads.write(line)
    except OSError as error:
        raise SourceError(
            f"`{file}` cannot be written: {error.strerror or error}", remedy="name another file"
        ) from error


def _witness(given: str | None) -> Head | None:
    from engine.domain.errors import UsageError
    from engine.ports import Head

    if given is None:
        return None
    match = _HEAD.fullmatch(given)
    if match is None:
        raise UsageError(f"`{given}` is no head", remedy="write SEQ:HASH as `agentctl verify` prints it")
    return Head(int(match[1]), match[2])
