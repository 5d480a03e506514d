"""Owns the options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from engine.commands.identity import remember

F = TypeVar("F", bound=Callable[..., Any])
_DELTAS = "agentctl.deltas"


def store_options(function: F) -> F:
    """`--db` and `--json`: every command that touches a store has both."""
    function = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)
    return click.option(
        "--db", metavar="URL", help="Database: a path or a URL. Default: `db` of agentctl.yaml."
    )(function)


def identity_options(function: F) -> F:
    """`--as`, `--role`, `--attr`, or `--token`: who acts; `local` of agentctl.yaml where nobody is named."""
    function = click.option(
        "--token",
        metavar="SOURCE",
        callback=remember,
        expose_value=False,
        help="A signed identity: a file with the token, `env`, or `env:NAME`.",
    )(function)
    function = click.option(
        "--attr", "attrs", metavar="K=V", multiple=True, help="An attribute of who acts."
    )(function)
    function = click.option("--role", "roles", metavar="ROLE", multiple=True, help="A role of who acts.")(
        function
    )
    return click.option(
        "--as", "identity", metavar="ID", help="Who acts. Default: `local` of agentctl.yaml."
    )(function)


def _remember_deltas(context: click.Context, _: click.Parameter, asked: bool) -> None:
    context.meta[_DELTAS] = asked


def deltas_asked() -> bool:
    """Whether the command line that runs now was given `--deltas`."""
    return bool(click.get_current_context().meta.get(_DELTAS))


def drive_options(function: F) -> F:
    """`--model`, `--quiet` and `--deltas`: for commands that drive a Run."""
    function = click.option(
        "--deltas",
        is_flag=True,
        callback=_remember_deltas,
        expose_value=False,
        help="Print working text as it comes, as on a terminal; with --json as objects between the events.",
    )(function)
    function = click.option("--quiet", is_flag=True, help="Print no progress, only how it ends.")(function)
    return click.option(
        "--model",
        metavar="M",
        help="A litellm model id, or scripted/FILE. Default: what the policy or the Run says.",
    )(function)


def run_argument(function: F) -> F:
    """A Run: its id, an unambiguous prefix of it, or `last`."""
    return click.argument("run", metavar="RUN")(function)
