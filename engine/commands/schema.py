"""Owns `agentctl schema`: JSON Schemas of the documents, for editors."""

from __future__ import annotations

from pathlib import Path

import click


@click.group("schema")
def schema_command() -> None:
    """JSON Schemas of policies, tool specs, overlays, tests and agentctl.yaml."""


@schema_command.command("export")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def export_command(folder: Path, as_json: bool) -> int:
    """Write the schemas into DIR.

    An editor with yaml-language-server reads them from a first line such as
    `# yaml-language-server: $schema=schemas/policy.v1.json`.
    """
    from engine.domain.errors import SourceError
    from engine.policy.schemas import write_schemas
    from engine.report.forms import dumps

    try:
        written = [str(path) for path in write_schemas(folder)]
    except OSError as error:
        raise SourceError(
            f"`{folder}` cannot be written: {error.strerror or error}", remedy="choose another folder"
        ) from error
    if as_json:
        click.echo(dumps({"schema": "agentctl.schema_export/v1", "files": written}))
    else:
        click.echo("\n".join(written))
    return 0
