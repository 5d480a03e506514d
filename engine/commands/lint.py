"""Owns `agentctl lint`: what is wrong with policies, tool specs, overlays and tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from engine.domain.diagnostics import Diagnostic
    from engine.policy.documents.project import LevelPart

CLEAN, FINDINGS, NOTHING_CHECKED = 0, 1, 3


@click.command("lint")
@click.argument("paths", metavar="PATHS…", nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif", "github"]),
    default="text",
    help="How findings are printed.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--pedantic", is_flag=True, help="Warnings that are only likely count for the exit code too.")
@click.option("--certain", is_flag=True, help="Leave out findings that are only likely.")
@click.option("--audit", is_flag=True, help="Ignore suppressions and the levels of agentctl.yaml.")
def lint_command(
    paths: tuple[str, ...], form: str, as_json: bool, pedantic: bool, certain: bool, audit: bool
) -> int:
    """Check policies, tools and tests. Every fault is shown with its place and how to mend it.

    Exits 0 if nothing is wrong (notes do not count), 1 on errors and warnings, 2 if a path cannot be read,
    3 if there was nothing to check.
    """
    _for_a_short_life()
    from engine.domain.diagnostics import Confidence
    from engine.domain.diagnostics import Diagnostic as Found
    from engine.policy.linter import lint
    from engine.report.findings import Checked, counts_for_exit
    from engine.report.formats import FORMATS
    from engine.report.words import PLAIN

    levels, faults = _project()
    report = lint(paths, levels=levels, audit=audit)
    found = [each for each in report.diagnostics if not (certain and each.confidence is Confidence.LIKELY)]
    found = sorted({*found, *faults}, key=Found.sort_key)
    checked = Checked(
        tuple(found),
        report.texts,
        report.files,
        report.rules,
        report.conditions,
        len(report.silenced),
        notes=report.notes,
    )
    text = FORMATS["json" if as_json else form](checked, PLAIN)
    if text:
        click.echo(text)
    if report.files == 0:
        click.echo(f"nothing was checked: no `*.yaml` in {', '.join(paths)}", err=True)
        return NOTHING_CHECKED
    return FINDINGS if any(counts_for_exit(each, pedantic=pedantic) for each in found) else CLEAN


def _for_a_short_life() -> None:
    """What linting makes lives until its process ends: collecting it, and looking for pydantic's plugins, is a tenth
    of the time."""
    if "pydantic" not in sys.modules:
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        gc.disable()


def _project() -> tuple[Mapping[str, LevelPart], Sequence[Diagnostic]]:
    """The levels of the project file, or its faults: they are findings too."""
    from engine.commands.project import this_project
    from engine.domain.errors import PolicyInvalid

    try:
        return this_project().levels, ()
    except PolicyInvalid as invalid:
        return {}, invalid.diagnostics
