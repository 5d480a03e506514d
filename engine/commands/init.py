"""Owns `agentctl init`: writes the smallest agent that lints and runs."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from shlex import quote

import click

FILES = {
    "agentctl.yaml": "agentctl.yaml",
    "policies/notes.policy.yaml": "policy.yaml",
    "policies/prompts/notes.md.j2": "prompt.md.j2",
    "tool_specs/notes.tools.yaml": "tools.yaml",
    "tools/notes.py": "notes.py.txt",
    "notes/lighthouse.md": "lighthouse.md",
    "scripts/notes.script.yaml": "script.yaml",
    "tests/policies/notes.test.yaml": "test.yaml",
    ".gitignore": "gitignore",
}
"""File that is written -> template in `engine/scaffold/`."""


@click.command("init")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def init_command(folder: Path, as_json: bool) -> int:
    """Write a smallest working agent. DIR gets a policy, a tool spec, a Python tool, a script, a test."""
    from engine.domain.errors import SourceError
    from engine.report.forms import dumps

    _check(folder)
    try:
        for name, template in FILES.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            text = (files("engine") / "scaffold" / template).read_text(encoding="utf-8")
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SourceError(
            f"`{folder}` cannot be written: {error.strerror or error}", remedy="choose another folder"
        ) from error
    if as_json:
        click.echo(dumps({"schema": "agentctl.init/v1", "folder": str(folder), "files": [*FILES]}))
    else:
        click.echo("\n".join(_said(folder)))
    return 0


def _check(folder: Path) -> None:
    from engine.domain.errors import UsageError

    if folder.exists() and not folder.is_dir():
        raise UsageError(f"`{folder}` is a file", remedy="name a folder that is empty or not there")
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"`{folder}` is not empty", remedy="name a folder that is empty or not there")


def _said(folder: Path) -> list[str]:
    return [
        *(f"  {folder / name}" for name in FILES),
        "",
        f"cd {quote(str(folder))}",
        "agentctl lint .",
        "agentctl test",
        'agentctl run policies/notes.policy.yaml "When was the lighthouse built?" '
        "--model scripted/scripts/notes.script.yaml",
    ]
