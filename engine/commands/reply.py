"""Owns `agentctl reply`: a person's words to a Run, and the Run driven on."""

from __future__ import annotations

import click

from engine.commands.options import drive_options, identity_options, run_argument, store_options


@click.command("reply")
@run_argument
@click.argument("text", metavar="TEXT")
@click.option("--only-record", is_flag=True, help="Record the reply and leave the driving to `resume`.")
@identity_options
@drive_options
@store_options
def reply_command(
    run: str,
    text: str,
    only_record: bool,
    identity: str | None,
    roles: tuple[str, ...],
    attrs: tuple[str, ...],  # noqa: ARG001 - attributes are no part of a reply, the option is shared
    model: str | None,
    quiet: bool,
    db: str | None,
    as_json: bool,
) -> int:
    """Answer a Run and continue it: the open question, or anything else there is to say."""
    from engine.commands.acting import driven_on, to_act
    from engine.domain.errors import UsageError

    if not text.strip():
        raise UsageError("the reply is empty", remedy="say something, or cancel the Run")
    with to_act(run, db, model=model) as acting:
        by = acting.actor(identity, roles)
        acting.runtime.reply(acting.run, text, by=by)
        said = f"recorded the reply of {by.id}"
        return driven_on(acting, said, as_json=as_json, quiet=quiet, by=by, only_record=only_record)
