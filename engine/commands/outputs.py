"""Owns `agentctl outputs`: what a Run published, as documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.commands.options import run_argument, store_options

if TYPE_CHECKING:
    from engine.domain import events as e
    from engine.domain.policy import Policy
    from engine.domain.state import RunState

_ENDINGS = {"md": "md", "html": "html", "json": "json"}


@click.command("outputs")
@run_argument
@click.option(
    "--format", "form", type=click.Choice(list(_ENDINGS)), default="md", show_default=True, help="The form."
)
@click.option("--out", metavar="DIR", help="Write one file per output into DIR instead of printing.")
@store_options
def outputs_command(run: str, form: str, out: str | None, db: str | None, as_json: bool) -> int:
    """Print what RUN published, with its sources, by the policy's templates or built-in ones."""
    from engine.commands.reading import opened, read_run

    with opened(db) as store:
        read = read_run(store, run)
        policy = _policy(store, read.state)
    chosen = "json" if as_json else form
    texts = {body.output: _text(body, read.state, policy, chosen) for body in read.outputs}
    if not texts:
        click.echo("nothing was published", err=True)
    for name, text in texts.items():
        if out is None:
            click.echo(text.rstrip("\n"))
        else:
            click.echo(str(_written(Path(out) / f"{name}.{_ENDINGS[chosen]}", text)))
    return 0


def _policy(store: object, state: RunState) -> Policy | None:
    """The Run's policy for its templates; without it the built-in ones serve."""
    from engine.domain.errors import AgentctlError
    from engine.runtime.library import PolicyLibrary

    try:
        return PolicyLibrary(store).policy(state.bundle)  # type: ignore[arg-type]  # `opened` yields a store
    except AgentctlError:
        return None


def _text(body: e.OutputPublished, state: RunState, policy: Policy | None, form: str) -> str:
    from engine.report.documents import document
    from engine.report.forms import dumps
    from engine.report.publications import sources_of

    if form == "json":
        publication = state.publications[body.output]
        return dumps(
            {
                "schema": "agentctl.output/v1",
                "output": body.output,
                "fields": body.rendered,
                "sources": sources_of(body, state),
                "figures": [figure.model_dump(mode="json") for figure in body.figures],
                "flags": publication.flags,
                "digest": body.digest,
            }
        )
    declared = policy.outputs.get(body.output) if policy is not None else None
    templates = declared.templates if declared is not None else {}
    if form == "html":
        return document(body, state, "html", templates.get("html"))
    return document(body, state, "markdown", templates.get("markdown"))


def _written(file: Path, text: str) -> Path:
    from engine.domain.errors import SourceError

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SourceError(
            f"`{file}` cannot be written: {error.strerror}", remedy="name another folder"
        ) from error
    return file
