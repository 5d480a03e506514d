"""Owns `agentctl reconcile`: an operator's word about a call of unknown outcome, and the Run driven on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.commands.options import drive_options, identity_options, run_argument, store_options

if TYPE_CHECKING:
    from engine.domain.canonical import Json

OUTCOMES = ("confirmed", "not_executed", "failed")


@click.command("reconcile")
@run_argument
@click.argument("call", metavar="CALL")
@click.option("--outcome", type=click.Choice(OUTCOMES), required=True, help="What became of it.")
@click.option("--because", required=True, metavar="TEXT", help="How you know; the model is told.")
@click.option("--result", metavar="JSON", help="What the tool would have answered, if you know that too.")
@click.option("--only-record", is_flag=True, help="Record it and leave the driving to `resume`.")
@identity_options
@drive_options
@store_options
def reconcile_command(
    run: str,
    call: str,
    outcome: str,
    because: str,
    result: str | None,
    only_record: bool,
    identity: str | None,
    roles: tuple[str, ...],
    attrs: tuple[str, ...],  # noqa: ARG001 - nothing here asks for attributes, the option is shared
    model: str | None,
    quiet: bool,
    db: str | None,
    as_json: bool,
) -> int:
    """Say what became of CALL (such as 3.1) of RUN, whose outcome nobody could tell.

    `confirmed`: its effect happened. `not_executed`: nothing was done. `failed`: it was tried, and has no effect
    beyond what is known. Also for a Run that is over.
    """
    from engine.commands.acting import driven_on, to_act
    from engine.commands.given import call_of
    from engine.domain.calls import Outcome
    from engine.runtime.reconcile import Finding

    named = call_of(call)
    with to_act(run, db, model=model) as acting:
        by = acting.actor(identity, roles)
        finding = Finding(Outcome(outcome), because, _result(result))
        state = acting.runtime.reconcile(acting.run, named, by=by, finding=finding)
        said = f"recorded that {named} is {outcome.replace('_', ' ')}, says {by.id}"
        only_record = only_record or state.terminal
        return driven_on(acting, said, as_json=as_json, quiet=quiet, by=by, only_record=only_record)


def _result(text: str | None) -> Json:
    from engine.domain.canonical import NotJson, parse_json
    from engine.domain.errors import UsageError

    if text is None:
        return None
    try:
        return parse_json(text)
    except NotJson as error:
        raise UsageError(
            f"`--result` is no JSON: {error}", remedy='write it as JSON, such as {"id": "T1"}'
        ) from error
