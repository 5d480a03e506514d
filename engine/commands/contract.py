"""Owns `agentctl contract`: the exact tools that the model would be offered."""

from __future__ import annotations

import click

from engine.commands.looking import Wanted, looking_options


@click.command("contract")
@click.argument("policy", metavar="[POLICY]", required=False)
@click.option("--names", is_flag=True, help="One line for each tool, and why the others are absent.")
@click.option(
    "--explain-changes",
    "changes",
    is_flag=True,
    help="Which facts of the policy move the contract, tool by tool.",
)
@looking_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON: digest, tools, absent tools, tokens.")
def contract_command(policy: str | None, names: bool, changes: bool, wanted: Wanted, as_json: bool) -> int:
    """Print tools[] as the model would get it: an array of functions, in the order in which it is sent.

    POLICY is a file, or the id of a policy under `policies`. With --run, the Run's own policy and facts are taken.
    """
    from engine.commands.looking import looked_at
    from engine.policy.contract import plan_of
    from engine.report import contract as report
    from engine.report.forms import dumps

    with looked_at(policy, wanted) as look:
        made = look.vantage.contract(look.now)
        whole = report.Offered(made, look.policies, look.state)
        moved = report.moving_facts(look.policies[0], plan_of(look.policies).readers) if changes else None
        if as_json:
            click.echo(dumps(report.contract_json(whole, moved)))
        elif moved is not None:
            click.echo("\n".join(report.changes_lines(whole, moved)))
        elif names:
            click.echo("\n".join(report.names_lines(whole)))
        else:
            click.echo(report.tools_text(made))
    return 0
