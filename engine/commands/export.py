"""Owns `agentctl export`: the audit of one Run that can be handed on, with sensitive values masked."""

from __future__ import annotations

import click

from engine.commands.options import run_argument

FORMATS = ("md", "html", "jsonl")


@click.command("export")
@run_argument
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="md", show_default=True, help="The form."
)
@click.option("--db", metavar="URL", help="Database: a path or a URL. Default: `db` of agentctl.yaml.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format jsonl.")
def export_command(run: str, form: str, db: str | None, as_json: bool) -> int:
    """Print the audit of RUN: per effect the proposal, the confirmation, the execution, the receipt.

    A link that the log does not hold is named as missing. What tool specs declare as `sensitive` is masked;
    `jsonl` prints every event, with the hash that the log has of it unmasked.
    """
    from engine.commands.reading import opened, read_run
    from engine.report.audit_page import audit, markdown, page
    from engine.report.forms import dumps, event_json
    from engine.report.masks import Masks
    from engine.runtime.library import PolicyLibrary

    with opened(db) as store:
        state = read_run(store, run).state
        log = list(store.events(state.run))
        policy = PolicyLibrary(store).policy(state.bundle)
    if as_json or form == "jsonl":
        masks = Masks(policy, state)
        for event in log:
            click.echo(dumps({**masks.payload(event, event_json(event)), "hash": event.hash}))
        return 0
    sections = audit(log, state, policy)
    click.echo(markdown(sections) if form == "md" else page(sections))
    return 0
