"""Owns `agentctl explain`: the page of a rule of the linter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from engine.policy.rules import Rule


@click.command("explain")
@click.argument("rule", metavar="[CODE|NAME]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain_command(rule: str | None, as_json: bool) -> int:
    """Explain what a rule of `lint` catches, why, and how the file looks before and after.

    Without a rule, list them all.
    """
    from engine.report.forms import dumps
    from engine.report.rules import rule_json, rule_list

    if rule is None:
        rows = rule_list()
        listed = dumps({"schema": "agentctl.rules/v1", "rules": [dict(row._asdict()) for row in rows]})
        click.echo(listed if as_json else "\n".join(row.line for row in rows))
        return 0
    found = _rule(rule)
    if as_json:
        click.echo(dumps(rule_json(found)))
        return 0
    from engine.policy.pages import page

    click.echo(page(found), nl=False)
    return 0


def _rule(word: str) -> Rule:
    from engine.domain.diagnostics import suggest
    from engine.domain.errors import UsageError
    from engine.policy.catalogue import load_rule
    from engine.policy.codes import CODES

    found = load_rule(word.upper()) or load_rule(word.lower())
    if found is None:
        names = [*CODES, *(code.name for code in CODES.values())]
        raise UsageError(
            f"there is no rule `{word}`", remedy=suggest(word, names, "`agentctl explain` lists them")
        )
    return found
