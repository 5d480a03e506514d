"""Owns `agentctl policy`: makes newer versions of policies and overlays known to the store and to every open Run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.commands.options import identity_options, store_options
from engine.domain.diagnostics import many

if TYPE_CHECKING:
    from engine.runtime.loading import Loading


@click.group("policy")
def policy_command() -> None:
    """Versions of policies and overlays that are in force."""


@policy_command.command("load")
@click.argument("file", metavar="FILE")
@click.option("--drain", is_flag=True, help="End the open Runs of this policy in order: settle, undo, stop.")
@identity_options
@store_options
def load_command(
    file: str,
    drain: bool,
    identity: str | None,
    roles: tuple[str, ...],
    attrs: tuple[str, ...],  # noqa: ARG001 - nothing here asks for attributes, the option is shared
    db: str | None,
    as_json: bool,
) -> int:
    """Load FILE, a policy or an overlay: from now on it restricts every open Run that it is about, and new ones.

    It never widens what a Run may do. A file with faults is refused, and what was loaded before stays.
    """
    from engine.bootstrap import load_policy, open_runtime
    from engine.commands.identity import who_acts
    from engine.commands.project import this_project
    from engine.domain.errors import UsageError
    from engine.policy.files import DiskFiles, declared
    from engine.runtime.loading import read_overlay

    project = this_project()
    by = who_acts(project, identity, roles)
    text = DiskFiles().read(file)
    kind = declared(text)
    if kind not in ("policy/v1", "overlay/v1"):
        raise UsageError(
            f"`{file}` is no policy and no overlay" + (f", but {kind}" if kind else ""),
            remedy="load a file that starts with `agentctl: policy/v1` or `agentctl: overlay/v1`",
        )
    overlay = read_overlay(file, text) if kind == "overlay/v1" else None
    if overlay is not None and drain:
        raise UsageError("an overlay drains nothing", remedy="load a policy with `--drain`")
    policy = load_policy(file, project) if overlay is None else None
    with open_runtime(db, project=project) as runtime:
        if policy is not None:
            loading = runtime.load_policy(policy, by=by, drain=drain)
        else:
            assert overlay is not None
            loading = runtime.load_overlay(overlay, by=by)
    _say(loading, as_json=as_json)
    return 0


def _say(loading: Loading, *, as_json: bool) -> None:
    from engine.report.forms import dumps

    kind = "overlay" if loading.overlay else "policy"
    if as_json:
        form = {"schema": "agentctl.loaded/v1", "kind": kind, "id": loading.id, "version": loading.version}
        runs = {"restricted": [*loading.restricted], "unchanged": [*loading.unchanged]}
        click.echo(dumps({**form, "digest": loading.digest, **runs}))
        return
    said = f"loaded {kind} {loading.id} v{loading.version}, digest {loading.digest[:16]}"
    lines = [
        f"{said}: {many(len(loading.restricted), 'open Run is', 'open Runs are')} restricted by it at once"
    ]
    click.echo("\n".join([*lines, *(f"  {run}" for run in loading.restricted)]))
