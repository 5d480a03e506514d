"""Owns `agentctl doctor`: looks at what a Run with a real model needs, and says what to do where something fails."""

from __future__ import annotations

import click

from engine.commands.options import store_options

FOUND = 1
_SIGNS = {"ok": "ok", "failed": "FAILED", "skipped": "skipped"}


@click.command("doctor")
@click.option("--model", metavar="M", help="A litellm model id. Default: the primary model of the policy.")
@click.option("--policy", metavar="FILE", help="A policy whose handlers and model are looked at.")
@store_options
def doctor_command(model: str | None, policy: str | None, db: str | None, as_json: bool) -> int:
    """Check install, database, policy, price and key, with one tiny request to the model."""
    import asyncio

    from engine.bootstrap import doctor
    from engine.report.forms import dumps

    checks = asyncio.run(doctor(db, policy=policy, model=model))
    if as_json:
        found = [
            {"name": one.name, "verdict": one.verdict, "said": one.said, "remedy": one.remedy}
            for one in checks
        ]
        click.echo(dumps({"schema": "agentctl.doctor/v1", "checks": found}))
    else:
        for one in checks:
            click.echo(f"{_SIGNS[one.verdict]:8} {one.name}: {one.said}")
            if one.remedy:
                click.echo(f"         = help: {one.remedy}")
    return FOUND if any(one.verdict == "failed" for one in checks) else 0
