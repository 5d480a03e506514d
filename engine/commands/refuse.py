"""Owns `agentctl refuse`: one person's no to one stored call, and the Run driven on."""

from __future__ import annotations

import click

from engine.commands.options import drive_options, identity_options, run_argument, store_options


@click.command("refuse")
@run_argument
@click.argument("call", metavar="CALL")
@click.option("--because", default="", metavar="TEXT", help="Why; the model is told.")
@click.option("--only-record", is_flag=True, help="Record the decision and leave the driving to `resume`.")
@identity_options
@drive_options
@store_options
def refuse_command(
    run: str,
    call: str,
    because: str,
    only_record: bool,
    identity: str | None,
    roles: tuple[str, ...],
    attrs: tuple[str, ...],  # noqa: ARG001 - no refusal asks for attributes, the option is shared
    model: str | None,
    quiet: bool,
    db: str | None,
    as_json: bool,
) -> int:
    """Refuse one held call. CALL is named like 3.1; it is not executed, and the model is told."""
    from engine.commands.acting import driven_on, to_act
    from engine.commands.given import call_of

    named = call_of(call)
    with to_act(run, db, model=model) as acting:
        by = acting.actor(identity, roles)
        acting.runtime.refuse(acting.run, named, by=by, because=because)
        said = f"recorded the refusal of {named} by {by.id}"
        return driven_on(acting, said, as_json=as_json, quiet=quiet, by=by, only_record=only_record)
