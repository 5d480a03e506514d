"""Owns `agentctl why`: which rules show or hide a tool, decide a call, or keep a Run from ending."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.commands.looking import Wanted, looking_options

if TYPE_CHECKING:
    from engine.domain.policy import Policy


@click.command("why")
@click.argument("words", metavar="[POLICY] TOOL", nargs=-1, required=True)
@click.option(
    "--args", "args", metavar="JSON", help="A call of the tool, with the arguments that the model supplies."
)
@looking_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def why_command(words: tuple[str, ...], args: str | None, wanted: Wanted, as_json: bool) -> int:
    """Say why TOOL is offered to the model or not, and what becomes of a call of it; `finish` for the gates.

    POLICY is a file, or the id of a policy under `policies`. With --run, the Run's own policy and facts are taken.
    """
    from engine.commands.looking import arguments_of, looked_at
    from engine.lifecycle.why import why
    from engine.report.forms import dumps
    from engine.report.why import why_json, why_lines

    policy, tool = _meant(words)
    with looked_at(policy, wanted) as look:
        _known(look.policies[0], tool)
        answer = why(look.vantage, tool, look.now, arguments_of(args))
        if as_json:
            click.echo(dumps(why_json(answer, look.state, look.policies)))
        else:
            click.echo("\n".join(why_lines(answer, look.state, look.policies)))
    return 0


def _meant(words: tuple[str, ...]) -> tuple[str | None, str]:
    from engine.domain.errors import UsageError

    if len(words) > 2:
        raise UsageError(
            f"there is one word too many: `{words[2]}`", remedy="write `agentctl why POLICY TOOL`"
        )
    return (None, words[0]) if len(words) == 1 else (words[0], words[1])


def _known(policy: Policy, tool: str) -> None:
    from engine.domain.diagnostics import suggest
    from engine.domain.errors import UsageError
    from engine.policy.stages.cases import callable_names

    names = callable_names(policy)
    if tool not in names:
        have = ", ".join(names)
        raise UsageError(
            f"policy `{policy.id}` has no tool `{tool}`", remedy=suggest(tool, names, f"tools: {have}")
        )
