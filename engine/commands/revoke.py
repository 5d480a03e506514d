"""Owns `agentctl revoke`: takes back a grant, a standing approval or an endorsement; it holds at once."""

from __future__ import annotations

import click

from engine.commands.options import identity_options, run_argument, store_options


@click.command("revoke")
@run_argument
@click.argument("grant", metavar="GRANT")
@click.option("--because", default="", metavar="TEXT", help="Why; it is recorded.")
@identity_options
@store_options
def revoke_command(
    run: str,
    grant: str,
    because: str,
    identity: str | None,
    roles: tuple[str, ...],
    attrs: tuple[str, ...],  # noqa: ARG001 - nothing here asks for attributes, the option is shared
    db: str | None,
    as_json: bool,
) -> int:
    """Take back GRANT (such as G1) of RUN. Calls that need it are refused from now on.

    The roles of the capability's `revoke` may, the approvers' roles of a yes, and for whom the Run works.
    """
    from engine.commands.acting import to_act
    from engine.report.forms import dumps

    with to_act(run, db, drives=False) as acting:
        by = acting.actor(identity, roles)
        acting.runtime.revoke(acting.run, grant, by=by, because=because)
        said = f"recorded that {by.id} revokes {grant}"
        if as_json:
            click.echo(dumps({"run": acting.run, "status": acting.state.status, "recorded": said}))
        else:
            click.echo(said)
    return 0
