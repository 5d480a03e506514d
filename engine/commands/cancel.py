"""Owns `agentctl cancel`: asks for the end of a Run, and lets it settle."""

from __future__ import annotations

import click

from engine.commands.options import drive_options, identity_options, run_argument, store_options


@click.command("cancel")
@run_argument
@click.option("--because", default="", metavar="TEXT", help="Why; it is recorded.")
@click.option("--only-record", is_flag=True, help="Record the cancel and leave the settling to `resume`.")
@identity_options
@drive_options
@store_options
def cancel_command(
    run: str,
    because: str,
    only_record: bool,
    identity: str | None,
    roles: tuple[str, ...],
    attrs: tuple[str, ...],  # noqa: ARG001 - attributes are no part of a cancel, the option is shared
    model: str | None,
    quiet: bool,
    db: str | None,
    as_json: bool,
) -> int:
    """Cancel a Run. What is open is settled, what was done and can be undone is undone.

    Exits 0 where the Run is cancelled, as asked.
    """
    from engine.commands.acting import driven_on, to_act
    from engine.commands.driving import ENDED

    with to_act(run, db, model=model) as acting:
        by = acting.actor(identity, roles)
        acting.runtime.cancel(acting.run, by=by, because=because)
        said = f"recorded the cancel of {by.id}"
        code = driven_on(acting, said, as_json=as_json, quiet=quiet, by=by, only_record=only_record)
        ending = acting.state.ending
        return 0 if code == ENDED and ending is not None and ending[0] == "cancelled" else code
