"""Owns `agentctl test`: plays the scripted cases of policies through the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.domain.diagnostics import many

if TYPE_CHECKING:
    from engine.domain.errors import SourceError
    from engine.runtime.scenario.runner import FileResult

PASSED, FAILED, NOTHING_TESTED = 0, 1, 3


@click.command("test")
@click.argument("paths", metavar="[PATHS…]", nargs=-1)
@click.option("--case", "only", metavar="ID", help="Run this case only.")
@click.option(
    "--init",
    "starter",
    metavar="POLICY",
    help="Write a starter file: a case for each rule where that is possible.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def test_command(paths: tuple[str, ...], only: str | None, starter: str | None, as_json: bool) -> int:
    """Play test files (test/v1), the tests that policies name, or every `*.test.yaml` in folders.

    Without PATHS: the tests that the policies under `policies` name. No model, tool or person is asked.
    Exits 0 if every case holds, 1 if one fails or checks nothing, 2 if a file cannot be loaded, 3 if there was
    no case.
    """
    if starter is not None:
        return _write_starter(starter, paths, as_json=as_json)
    from engine.policy.case_files import case_files

    results, broken = _run(case_files(paths), only)
    if not (as_json and broken):
        _print(results, as_json=as_json)
    if broken:
        raise _together(broken)
    cases = sum(len(result.cases) for result in results)
    if not cases:
        click.echo(_nothing(results, only), err=True)
        return NOTHING_TESTED
    return FAILED if any(_failed(result) for result in results) else PASSED


def _failed(result: FileResult) -> bool:
    """A file without a case fails too."""
    return bool(result.failed) or (result.whole and not result.cases)


def _run(files: list[str], only: str | None) -> tuple[list[FileResult], list[SourceError]]:
    """Every file is run, also where another cannot be loaded."""
    from engine.bootstrap import run_cases
    from engine.commands.project import this_project
    from engine.domain.errors import SourceError

    project = this_project()
    results: list[FileResult] = []
    broken: list[SourceError] = []
    for file in files:
        try:
            results.append(run_cases(file, project, only=only))
        except SourceError as error:
            broken.append(error)
    return results, broken


def _print(results: list[FileResult], *, as_json: bool) -> None:
    from engine.report.forms import dumps
    from engine.report.scenario import results_json, results_lines

    if as_json:
        click.echo(dumps(results_json(results)))
        return
    shown = [result for result in results if result.cases]
    if shown:
        click.echo("\n".join(results_lines(shown)))
    for result in results:
        if not result.cases and result.whole:
            click.echo(f"{result.file}\n  FAIL it has no case")


def _together(broken: list[SourceError]) -> SourceError:
    """One error for all the files that could not be loaded, with every finding."""
    from engine.domain.errors import PolicyInvalid

    if len(broken) == 1:
        return broken[0]
    found = [each for error in broken if isinstance(error, PolicyInvalid) for each in error.diagnostics]
    said = "; ".join(dict.fromkeys(error.message for error in broken))
    return PolicyInvalid(
        said, remedy="mend them: `agentctl lint` says the same", diagnostics=[*dict.fromkeys(found)]
    )


def _nothing(results: list[FileResult], only: str | None) -> str:
    if only is not None:
        return f"nothing was tested: no file has a case `{only}`"
    if results:
        return f"nothing was tested: no case in {', '.join(result.file for result in results)}"
    return "nothing was tested: no policy names a test file, and there is no `*.test.yaml`"


def _write_starter(policy: str, paths: tuple[str, ...], *, as_json: bool) -> int:
    from engine.bootstrap import write_starter
    from engine.commands.policies import policy_file
    from engine.commands.project import this_project
    from engine.report.forms import dumps

    made = write_starter(policy_file(policy), paths[0] if paths else None, this_project())
    if as_json:
        form = {
            "schema": "agentctl.test_init/v1",
            "file": made.file,
            "cases": made.cases,
            "without": [*made.without],
        }
        click.echo(dumps(form))
        return PASSED
    click.echo(
        f"wrote {made.file}: {many(made.cases, 'case')}, each expects what the policy does now. Read them."
    )
    for rule in made.without:
        click.echo(f"  no case was found for `{rule}`: write one")
    return PASSED
