"""Owns `agentctl fork`: a new Run from a prefix of another one's log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.commands.options import identity_options, run_argument, store_options

if TYPE_CHECKING:
    from engine.domain.canonical import Json
    from engine.domain.ids import CallId


@click.command("fork")
@run_argument
@click.option(
    "--at", type=click.IntRange(min=1), required=True, metavar="SEQ", help="The last event that is kept."
)
@click.option(
    "--skip", "skips", metavar="CALL", multiple=True, help="A call there that is not to be executed."
)
@click.option(
    "--replace",
    "replaces",
    metavar="CALL=FILE",
    multiple=True,
    help="A read there, and a file with its answer as JSON.",
)
@identity_options
@store_options
def fork_command(
    run: str,
    at: int,
    skips: tuple[str, ...],
    replaces: tuple[str, ...],
    identity: str | None,
    roles: tuple[str, ...],
    attrs: tuple[str, ...],  # noqa: ARG001 - nothing here asks for attributes, the option is shared
    db: str | None,
    as_json: bool,
) -> int:
    """Start a new Run from the events of RUN up to SEQ; `resume` drives it.

    No effect is repeated: receipts of the prefix stand, calls that were open there are closed, and a write that
    was under way is of unknown outcome unless RUN learned it later. `agentctl log` shows the numbers of events.
    """
    from engine.bootstrap import open_runtime
    from engine.commands.given import call_of
    from engine.commands.identity import who_acts
    from engine.commands.project import this_project
    from engine.commands.reading import db_option
    from engine.report.forms import dumps
    from engine.report.waiting import Ways
    from engine.runtime.forking import Fork
    from engine.runtime.naming import run_of

    project = this_project()
    by = who_acts(project, identity, roles)
    wanted = Fork(at, tuple(call_of(each) for each in skips), _answers(replaces))
    with open_runtime(db, project=project, create=False) as runtime:
        forked = runtime.fork(run_of(runtime.store, run), wanted, by=by)
    later = [str(call) for call in forked.later]
    if as_json:
        closed = [str(call) for call in forked.closed]
        click.echo(dumps({"schema": "agentctl.fork/v1", "run": forked.run, "closed": closed, "later": later}))
        return 0
    click.echo(f"Run {forked.run} starts from event {at} of {run}")
    if later:
        click.echo(f"  sent after that event, unknown to the new Run: {', '.join(later)}")
    click.echo(f"  {Ways(forked.run, db_option(db)).command('resume')}")
    return 0


def _answers(given: tuple[str, ...]) -> dict[CallId, Json]:
    from engine.commands.given import call_of, pairs
    from engine.domain.canonical import NotJson, parse_json
    from engine.domain.errors import SourceError

    found: dict[CallId, Json] = {}
    for name, file in pairs(given, "--replace").items():
        try:
            found[call_of(name)] = parse_json(Path(file).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, NotJson) as error:
            raise SourceError(
                f"`{file}` is no JSON file: {error}", remedy="write the answer as JSON"
            ) from None
    return found
