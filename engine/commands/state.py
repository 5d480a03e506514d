"""Owns `agentctl state`: what a slice of app state holds, said or read by an application."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.commands.options import run_argument, store_options

if TYPE_CHECKING:
    from engine.domain.canonical import JsonObject
    from engine.domain.policy import StateSlice
    from engine.domain.state import RunState


@click.group("state")
def state_command() -> None:
    """Read or set a slice of a Run's app state."""


@state_command.command("get")
@run_argument
@click.argument("name", metavar="SLICE")
@store_options
def get_command(run: str, name: str, db: str | None, as_json: bool) -> int:
    """Print what SLICE of RUN holds, with its version, its time and who said so."""
    from engine.commands.reading import opened, read_run
    from engine.report.forms import dumps

    with opened(db) as store:
        state = read_run(store, run).state
    form = _form(state, name)
    click.echo(dumps(form) if as_json else _lines(form))
    return 0


@state_command.command("set")
@run_argument
@click.argument("name", metavar="SLICE")
@click.argument("value", metavar="JSON|@FILE|K=V…", nargs=-1, required=True)
@click.option(
    "--expected-version", type=int, metavar="N", help="Refuse unless SLICE is at version N (0: not set)."
)
@click.option("--as", "identity", metavar="ID", default="application", show_default=True, help="Who says so.")
@store_options
def set_command(
    run: str,
    name: str,
    value: tuple[str, ...],
    expected_version: int | None,
    identity: str,
    db: str | None,
    as_json: bool,
) -> int:
    """Say what SLICE of RUN holds now. `K=V` changes single fields; the Host gives the version."""
    from engine.bootstrap import open_runtime
    from engine.commands.project import this_project
    from engine.domain.actors import Actor
    from engine.report.forms import dumps
    from engine.runtime.naming import run_of

    by = Actor(type="application", id=identity, issuer="local")
    with open_runtime(db, project=this_project(), create=False) as runtime:
        meant = run_of(runtime.store, run)
        state = runtime.state(meant)
        given = _given(value, runtime.library.policy(state.bundle).state.get(name), state, name)
        after = runtime.update_state(meant, name, given, by=by, expected_version=expected_version)
    form = _form(after, name)
    click.echo(dumps(form) if as_json else f"state {name} is at version {form['version']}")
    return 0


def _given(value: tuple[str, ...], declared: StateSlice | None, state: RunState, name: str) -> JsonObject:
    """A whole object, or single fields over what the slice holds."""
    from pathlib import Path

    from engine.commands.given import pairs, typed
    from engine.domain.canonical import NotJson, parse_json
    from engine.domain.errors import SourceError, UsageError

    text = value[0]
    if len(value) > 1 or (not text.lstrip().startswith("{") and not text.startswith("@")):
        types = {key: field.type for key, field in declared.fields.items()} if declared is not None else {}
        held = state.state[name].value if name in state.state else {}
        return {**held, **typed(pairs(value, name), types, name)}
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(f"`{value[0][1:]}` cannot be read", remedy="name a file of JSON") from error
    try:
        read = parse_json(text)
    except NotJson as error:
        raise UsageError(
            f"the value of `{name}` is no JSON: {error}", remedy='write `{"field": value}`'
        ) from error
    if not isinstance(read, dict):
        raise UsageError(f"the value of `{name}` is no object", remedy='write `{"field": value}`')
    return read


def _form(state: RunState, name: str) -> JsonObject:
    from engine.domain.diagnostics import suggest
    from engine.domain.errors import UsageError
    from engine.domain.events import timestamp

    held = state.state.get(name)
    if held is None:
        known = ", ".join(state.state) or "none"
        raise UsageError(
            f"Run `{state.run}` has no state `{name}` recorded",
            remedy=suggest(name, state.state, f"recorded are: {known}"),
        )
    return {
        "schema": "agentctl.state/v1",
        "slice": name,
        "version": held.version,
        "at": timestamp(held.at),
        "by": held.by.id or "the Host",
        "value": held.value,
    }


def _lines(form: JsonObject) -> str:
    import json

    from engine.report.words import safe

    head = f"state {form['slice']}, version {form['version']}, {form['at']}, by {form['by']}"
    return f"{head}\n{safe(json.dumps(form['value'], ensure_ascii=False, indent=2))}"
