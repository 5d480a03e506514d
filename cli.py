"""The command line: which commands there are. Each lives in its own file of `engine/commands/`."""

from __future__ import annotations

import click

from engine.commands.group import Commands
from engine.domain.version import version

MODULES = {
    name: f"engine.commands.{name.replace('-', '_')}"
    for name in (
        "run",
        "resume",
        "reply",
        "cancel",
        "approve",
        "refuse",
        "approvals",
        "reconcile",
        "grants",
        "revoke",
        "source",
        "policy",
        "show",
        "log",
        "state",
        "context",
        "trace",
        "graph",
        "outputs",
        "export",
        "replay",
        "fork",
        "runs",
        "verify",
        "doctor",
        "lint",
        "explain",
        "test",
        "why",
        "contract",
        "schema",
        "crash-test",
        "init",
    )
}


def _version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(f"agentctl {version()}")
        context.exit()


@click.group(
    cls=Commands,
    modules=MODULES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
@click.option(
    "--debug", is_flag=True, help="Print tracebacks: of a fault of agentctl, and of what tools raise."
)
def main(debug: bool) -> None:
    """A runtime for tool-using agents: permissions in YAML, facts in an append-only event log."""
    if debug:
        import logging

        logging.getLogger("agentctl").addHandler(logging.StreamHandler())
        logging.getLogger("agentctl").setLevel(logging.DEBUG)


if __name__ == "__main__":
    main()
