"""Owns `agentctl contract`: the exact tools that the model would be offered."""

from __future__ import annotations

import click

from engine.commands.looking import Wanted, looking_options


@click.command("contract")
@click.argument("policy", metavar="[POLICY]", required=False)
@click.option(
    "--names",
    "form",
    flag_value="names",
    default="names",
    help="A line for each tool, and why the others are absent: the default.",
)
@click.option("--tools", "form", flag_value="tools", help="The array of functions as it is sent, as JSON.")
@click.option(
    "--explain-changes",
    "changes",
    is_flag=True,
    help="Which facts of the policy move the contract, tool by tool.",
)
@looking_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON: digest, tools, absent tools, tokens.")
def contract_command(policy: str | None, form: str, changes: bool, wanted: Wanted, as_json: bool) -> int:
    """Print which tools the model would get, in the order in which they are sent, and why it would not get others.

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
        elif form == "tools":
            click.echo(report.tools_text(made))
        else:
            click.echo("\n".join(report.names_lines(whole)))
    return 0
