"""Owns `agentctl approve`: one person's yes to one stored call, and the Run driven on."""

from __future__ import annotations

import click

from engine.commands.options import drive_options, identity_options, run_argument, store_options


@click.command("approve")
@run_argument
@click.argument("call", metavar="CALL")
@click.option("--because", default="", metavar="TEXT", help="Why; it is recorded.")
@click.option(
    "--digest", metavar="HEX", help="Digest of the call that you saw; refused if it is another one now."
)
@click.option("--only-record", is_flag=True, help="Record the decision and leave the driving to `resume`.")
@identity_options
@drive_options
@store_options
def approve_command(
    run: str,
    call: str,
    because: str,
    digest: str | None,
    only_record: bool,
    identity: str | None,
    roles: tuple[str, ...],
    attrs: tuple[str, ...],  # noqa: ARG001 - no approval asks for attributes, the option is shared
    model: str | None,
    quiet: bool,
    db: str | None,
    as_json: bool,
) -> int:
    """Approve CALL (such as 3.1) of RUN. The yes fits this stored call, once, until it expires."""
    from engine.commands.acting import driven_on, to_act
    from engine.commands.given import call_of
    from engine.runtime.approvals import Approval

    named = call_of(call)
    with to_act(run, db, model=model) as acting:
        by = acting.actor(identity, roles)
        acting.runtime.approve(acting.run, named, by=by, decision=Approval(digest=digest, because=because))
        said = f"recorded the approval of {named} by {by.id}"
        return driven_on(acting, said, as_json=as_json, quiet=quiet, by=by, only_record=only_record)
