"""Owns `agentctl approve`: one person's yes to one stored call, and the Run driven on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.commands.options import drive_options, identity_options, run_argument, store_options

if TYPE_CHECKING:
    from engine.commands.acting import Acting
    from engine.domain.canonical import JsonObject
    from engine.domain.ids import CallId


@click.command("approve")
@run_argument
@click.argument("call", metavar="CALL")
@click.option("--because", default="", metavar="TEXT", help="Why; it is recorded.")
@click.option(
    "--digest", metavar="HEX", help="Digest of the call that you saw; refused if it is another one now."
)
@click.option(
    "--edit",
    "edits",
    metavar="ARG=VALUE",
    multiple=True,
    help="Change an argument that the policy lets you edit.",
)
@click.option(
    "--endorse",
    "endorses",
    metavar="ARG",
    multiple=True,
    help="Vouch for this value in later calls of the tool.",
)
@click.option("--standing", is_flag=True, help="Let the yes cover later calls with the same arguments.")
@click.option("--only-record", is_flag=True, help="Record the decision and leave the driving to `resume`.")
@identity_options
@drive_options
@store_options
def approve_command(
    run: str,
    call: str,
    because: str,
    digest: str | None,
    edits: tuple[str, ...],
    endorses: tuple[str, ...],
    standing: bool,
    only_record: bool,
    identity: str | None,
    roles: tuple[str, ...],
    attrs: tuple[str, ...],  # noqa: ARG001 - no approval asks for attributes, the option is shared
    model: str | None,
    quiet: bool,
    db: str | None,
    as_json: bool,
) -> int:
    """Approve one held call. CALL is named like 3.1; the yes fits this stored call, once, until it expires.

    What the policy's rule declares goes further: --edit changes arguments of this call, --standing covers later
    calls whose arguments all are the same, --endorse gives a value the origin `endorsed` for this tool.
    """
    from engine.commands.acting import driven_on, to_act
    from engine.commands.given import call_of
    from engine.runtime.approvals import Approval

    named = call_of(call)
    with to_act(run, db, model=model) as acting:
        by = acting.actor(identity, roles)
        decision = Approval(digest, _edits(acting, named, edits), endorses, standing, because)
        acting.runtime.approve(acting.run, named, by=by, decision=decision)
        said = f"recorded the approval of {named} by {by.id}"
        return driven_on(acting, said, as_json=as_json, quiet=quiet, by=by, only_record=only_record)


def _edits(acting: Acting, named: CallId, given: tuple[str, ...]) -> JsonObject | None:
    """The edits by the declared types of the tool's parameters; what is not declared is refused later, by name."""
    from engine.commands.given import pairs, typed

    if not given:
        return None
    state = acting.state
    call = state.calls.get(named)
    spec = acting.runtime.library.policy(state.bundle).tools.get(call.tool) if call is not None else None
    types = {name: param.type for name, param in spec.params.items()} if spec is not None else {}
    return typed(pairs(given, "--edit"), types, "--edit")
