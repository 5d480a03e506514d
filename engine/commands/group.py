"""Owns the frame around every command: loaded when it is named, its errors shown, its exit code kept."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from engine.commands.failures import ReaderGone, end_with, interrupted
from engine.domain.diagnostics import suggest
from engine.domain.errors import UsageError


class Commands(click.Group):
    """A group whose commands are modules, each with the function `NAME_command`, imported when they are named."""

    def __init__(self, *args: Any, modules: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature of click
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the same
        module = self._modules.get(cmd_name)
        if module is None:
            return None
        found = getattr(import_module(module), cmd_name.replace("-", "_") + "_command")
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self._modules and not args[0].startswith("-"):
            raise UsageError(
                f"there is no command `{args[0]}`",
                remedy=suggest(args[0], self._modules, "`agentctl --help` lists them"),
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:  # click would end with 1, which means findings
            raise ReaderGone from error

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs one command line and leaves with its exit code; no error ends in a traceback."""
        words = args[0] if args else kwargs.pop("args", None)
        given: list[str] = list(sys.argv[1:] if words is None else words)
        _never_fail_to_print()
        try:
            code = super().main(given, **{**kwargs, "prog_name": "agentctl", "standalone_mode": False})
        except (KeyboardInterrupt, click.Abort):
            code = interrupted()
        except Exception as error:  # noqa: BLE001 - the one place where every error gets its words and its code
            code = end_with(error, given)
        sys.exit(code if isinstance(code, int) else 0)


def _never_fail_to_print() -> None:
    """A stream that cannot hold a character shows its code instead."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
