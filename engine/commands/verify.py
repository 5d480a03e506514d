"""Owns `agentctl verify`: hashes the log of a Run again and names the first event that does not hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from engine.commands.options import run_argument, store_options

if TYPE_CHECKING:
    from engine.ports import Head

BROKEN = 1
_HEAD = re.compile(r"(\d{1,12}):([0-9a-f]{64})")


@click.command("verify")
@run_argument
@click.option("--witness", metavar="SEQ:HASH", help="A head of this Run that was written down elsewhere.")
@store_options
def verify_command(run: str, witness: str | None, db: str | None, as_json: bool) -> int:
    """Check that nobody changed a log. Prints the head: kept elsewhere, it is a witness for later."""
    from engine.commands.given import run_of
    from engine.commands.reading import opened
    from engine.report.forms import dumps
    from engine.runtime.audit import verify

    with opened(db) as store:
        report = verify(store, run_of(store, run), _witness(witness))
    if as_json:
        broken = {"seq": report.broken.seq, "what": report.broken.what} if report.broken else None
        head = {"seq": report.head.seq, "hash": report.head.hash}
        form = {"schema": "agentctl.verify/v1", "run": report.run, "holds": report.holds, "head": head}
        click.echo(dumps({**form, "broken": broken}))
    elif report.broken is None:
        click.echo(
            f"Run {report.run} holds: {report.head.seq} events, head {report.head.seq}:{report.head.hash}"
        )
    else:
        click.echo(f"Run {report.run} is broken at event {report.broken.seq}: {report.broken.what}")
        click.echo(f"the events before it hold, head {report.head.seq}:{report.head.hash}")
    return 0 if report.holds else BROKEN


def _witness(given: str | None) -> Head | None:
    from engine.domain.errors import UsageError
    from engine.ports import Head

    if given is None:
        return None
    match = _HEAD.fullmatch(given)
    if match is None:
        raise UsageError(f"`{given}` is no head", remedy="write SEQ:HASH as `agentctl verify` prints it")
    return Head(int(match[1]), match[2])
