"""Owns `agentctl run`: a new Run from a policy and a question, driven until it is over or waits."""

from __future__ import annotations

import sys

import click

from engine.commands.options import drive_options, identity_options, store_options


@click.command("run")
@click.argument("policy", metavar="POLICY")
@click.argument("question", metavar="QUESTION")
@click.option(
    "--task", "tasks", metavar="K=V", multiple=True, help="A field of the task; lists and numbers as JSON."
)
@click.option(
    "--grant", "grants", metavar="CAP:K=V,…", multiple=True, help="A capability that is given at the start."
)
@click.option(
    "--overlay", "overlays", metavar="FILE", multiple=True, help="An overlay that restricts the policy."
)
@click.option("--run-id", "run_id", hidden=True, help="The id of the new Run.")
@identity_options
@drive_options
@store_options
def run_command(
    policy: str,
    question: str,
    tasks: tuple[str, ...],
    grants: tuple[str, ...],
    overlays: tuple[str, ...],
    run_id: str | None,
    identity: str | None,
    roles: tuple[str, ...],
    attrs: tuple[str, ...],
    model: str | None,
    quiet: bool,
    db: str | None,
    as_json: bool,
) -> int:
    """Start a Run and drive it. POLICY says what is allowed, QUESTION is the first input (`-`: stdin).

    Prints what happens as it happens, at the end what was published and what the ledger says of every call.
    """
    from engine.bootstrap import check_start, load_policy, open_runtime
    from engine.commands.driving import Surface, announce, drive
    from engine.commands.given import grants_of, principal_of, task_of
    from engine.commands.identity import signed_principal
    from engine.commands.project import this_project
    from engine.commands.reading import db_option

    project = this_project()
    compiled = load_policy(policy, project, overlays=overlays)
    signed = signed_principal(project, compiled, identity, roles, attrs)
    principal = signed or principal_of(compiled, identity, roles, attrs, project.local)
    task = task_of(compiled, tasks, project.task_defaults)
    granted = grants_of(compiled, grants)
    text = _question(question)
    check_start(compiled, principal, task, model=model, project=project)
    with open_runtime(db, policy=compiled, model=model, project=project) as runtime:
        run = runtime.start(text, principal=principal, task=task, grants=granted, run=run_id)
        surface = Surface(as_json, quiet, db_option(db), principal.actor())
        announce(surface, runtime.state(run))
        return drive(runtime, run, surface)


def _question(given: str) -> str:
    from engine.domain.errors import UsageError

    if given == "-":
        raw = sys.stdin.buffer.read()
        try:
            given = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(
                "the question on stdin is not UTF-8 text", remedy="convert it to UTF-8"
            ) from error
    if not given.strip():
        raise UsageError("the question is empty", remedy="say what is to be found out")
    return given
