"""Owns what `why` and `contract` look at: a facts file, options over it, or a recorded Run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.domain.canonical import Json, JsonObject
    from engine.domain.policy import Policy
    from engine.policy.documents.facts import FactsDocument
    from engine.policy.documents.project import Project
    from engine.runtime.standpoint import Look, PastCall

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options that say what to look at."""

    facts: str | None
    run: str | None
    turn: int | None
    identity: str | None
    roles: tuple[str, ...]
    attrs: tuple[str, ...]
    task: tuple[str, ...]
    state: tuple[str, ...]
    grants: tuple[str, ...]
    sources: tuple[str, ...]
    db: str | None


def looking_options(function: F) -> F:
    """Facts from a file, from options over it, or from a Run and one of its turns; collected as `wanted`."""

    @wraps(function)
    def collected(**given: Any) -> Any:
        wanted = Wanted(**{name: given.pop(name) for name in Wanted.__slots__})
        return function(wanted=wanted, **given)

    command: Any = collected
    for option in reversed(_OPTIONS):
        command = option(command)
    return cast("F", command)


_OPTIONS = (
    click.option(
        "--facts", metavar="FILE", help="What is given: the keys of `given` in a test, and `history`."
    ),
    click.option("--run", metavar="RUN", help="A recorded Run instead, with its own policy."),
    click.option(
        "--turn", type=click.IntRange(min=1), metavar="N", help="As the Run was when turn N was asked for."
    ),
    click.option(
        "--as", "identity", metavar="ID", help="For whom. Default: the facts, then `local` of agentctl.yaml."
    ),
    click.option("--role", "roles", metavar="ROLE", multiple=True, help="A role of that principal."),
    click.option("--attr", "attrs", metavar="K=V", multiple=True, help="An attribute of that principal."),
    click.option("--task", metavar="K=V", multiple=True, help="A field of the task."),
    click.option("--state", metavar="SLICE.FIELD=V", multiple=True, help="A field of app state."),
    click.option(
        "--grant", "grants", metavar="CAP:K=V,…", multiple=True, help="A capability that is granted."
    ),
    click.option("--source", "sources", metavar="NAME=STATE", multiple=True, help="The state of a source."),
    click.option("--db", metavar="URL", help="Database of the Run. Default: `db` of agentctl.yaml."),
)


@contextmanager
def looked_at(policy: str | None, wanted: Wanted) -> Iterator[Look]:
    """What is looked at. Raises UsageError where neither a policy nor a Run is named, or both are."""
    from engine.domain.errors import UsageError

    if wanted.run is not None:
        stating = [*wanted.task, *wanted.state, *wanted.grants, *wanted.sources]
        if policy is not None or wanted.facts is not None or stating:
            raise UsageError(
                "a recorded Run has its own policy and facts",
                remedy="leave out POLICY, --facts and the options over it",
            )
        with _recorded(wanted) as look:
            yield look
        return
    if policy is None or wanted.turn is not None:
        words = "`POLICY TOOL`, or `TOOL --run RUN`"
        if click.get_current_context().info_name == "contract":
            words = "`POLICY`, or `--run RUN`"
        raise UsageError("no Run is named" if wanted.turn else "no policy is named", remedy=f"write {words}")
    yield _stated(policy, wanted)


@contextmanager
def _recorded(wanted: Wanted) -> Iterator[Look]:
    from datetime import UTC, datetime

    from engine.commands.reading import opened
    from engine.runtime.library import PolicyLibrary
    from engine.runtime.naming import run_of
    from engine.runtime.standpoint import recorded

    with opened(wanted.db) as store:
        run = run_of(store, wanted.run or "")
        yield recorded(store, PolicyLibrary(store), run, wanted.turn, datetime.now(UTC))


def _stated(named: str, wanted: Wanted) -> Look:
    from engine.bootstrap import load_policy
    from engine.commands.policies import policy_file
    from engine.commands.project import this_project
    from engine.policy.facts_files import read_facts_file
    from engine.runtime.standpoint import stated

    project = this_project()
    policy = load_policy(policy_file(named), project)
    document = read_facts_file(wanted.facts, policy) if wanted.facts is not None else None
    return stated(policy, _facts(policy, document, wanted, project))


def _facts(policy: Policy, document: FactsDocument | None, wanted: Wanted, project: Project) -> Any:
    from datetime import UTC, datetime

    from engine.commands.given import grants_of
    from engine.policy.conditions.values import parse_timestamp
    from engine.policy.nodes import plain
    from engine.runtime.standpoint import Stated

    now = parse_timestamp(document.now) if document is not None and document.now else None
    state: dict[str, JsonObject] = plain(document.state) if document is not None else {}
    for name, fields in _state_options(policy, wanted.state).items():
        state[name] = {**state.get(name, {}), **fields}
    grants: dict[str, list[JsonObject]] = {
        name: [plain(params)] for name, params in (document.grant if document is not None else {}).items()
    }
    for name, given in grants_of(policy, wanted.grants).items():
        grants[name] = [*grants.get(name, []), *given]
    return Stated(
        principal=_principal(policy, document, wanted, project),
        now=now if isinstance(now, datetime) else datetime.now(UTC),
        task=_task(policy, document, wanted, project),
        state=state,
        grants=grants,
        sources={
            **(document.sources if document is not None else {}),
            **_source_options(policy, wanted.sources),
        },
        history=_history(document),
    )


def _principal(policy: Policy, document: FactsDocument | None, wanted: Wanted, project: Project) -> Any:
    """Options over the file; without either, `local` of agentctl.yaml."""
    from engine.commands.given import principal_of
    from engine.policy.documents.project import LocalPart
    from engine.policy.stages.cases import attributes

    stated = document.principal if document is not None else None
    local = project.local
    if stated is not None:
        local = LocalPart(id=stated.id, roles=stated.roles, attrs=attributes(stated))
    return principal_of(policy, wanted.identity, wanted.roles, wanted.attrs, local)


def _task(policy: Policy, document: FactsDocument | None, wanted: Wanted, project: Project) -> JsonObject:
    from engine.commands.given import task_of
    from engine.policy.nodes import plain

    stated = plain(document.task) if document is not None else {}
    defaults: Mapping[str, Mapping[str, Any]] = (
        {policy.id: stated} if document is not None else project.task_defaults
    )
    found = task_of(policy, wanted.task, defaults)
    return _declared(found, {name: field.type for name, field in policy.task.items()}, "--task")


def _declared(given: JsonObject, types: Mapping[str, Any], option: str) -> JsonObject:
    """The values, each of its declared type. Raises UsageError."""
    from engine.domain.diagnostics import suggest
    from engine.domain.errors import UsageError
    from engine.policy.values import Fault, read_value

    faults: list[Fault] = []
    for name, value in given.items():
        if name not in types:
            have = ", ".join(types) or "none"
            raise UsageError(
                f"`{option} {name}` is not declared", remedy=suggest(name, types, f"declared: {have}")
            )
        read_value(value, types[name], name, faults)
    if faults:
        name = faults[0].field.partition(".")[0].partition("[")[0]
        raise UsageError(f"`{option}`: {faults[0].message}", remedy=f"`{name}` is declared as {types[name]}")
    return given


def _state_options(policy: Policy, given: Sequence[str]) -> dict[str, JsonObject]:
    from engine.commands.given import pairs, typed
    from engine.domain.diagnostics import suggest
    from engine.domain.errors import UsageError

    found: dict[str, JsonObject] = {}
    for path, text in pairs(given, "--state").items():
        name, _, key = path.partition(".")
        slice_ = policy.state.get(name)
        if slice_ is None:
            have = ", ".join(policy.state) or "none"
            raise UsageError(
                f"there is no state slice `{name}`", remedy=suggest(name, policy.state, f"slices: {have}")
            )
        types = {field: declared.type for field, declared in slice_.fields.items()}
        found.setdefault(name, {}).update(_declared(typed({key: text}, types, "--state"), types, "--state"))
    return found


def _source_options(policy: Policy, given: Sequence[str]) -> dict[str, Any]:
    from engine.commands.given import pairs
    from engine.domain.diagnostics import suggest
    from engine.domain.errors import UsageError

    states = ("available", "degraded", "unavailable", "unauthorized")
    found = pairs(given, "--source")
    for name, state in found.items():
        if name not in policy.sources:
            have = ", ".join(policy.sources) or "none"
            raise UsageError(
                f"there is no source `{name}`", remedy=suggest(name, policy.sources, f"sources: {have}")
            )
        if state not in states:
            raise UsageError(
                f"`{state}` is no state of a source", remedy=suggest(state, states, ", ".join(states))
            )
    return dict(found)


def _history(document: FactsDocument | None) -> list[PastCall]:
    from engine.domain.calls import Outcome
    from engine.policy.nodes import plain
    from engine.runtime.scenario.tools import Answer
    from engine.runtime.standpoint import PastCall

    return [
        PastCall(
            past.call,
            plain(past.args),
            Answer(Outcome(past.outcome), plain(past.result), past.is_written("result")),
        )
        for past in (document.history if document is not None else ())
    ]


def arguments_of(text: str | None) -> dict[str, Json] | None:
    """`--args`. Raises UsageError for what is no JSON object."""
    from engine.domain.canonical import NotJson, parse_json
    from engine.domain.errors import UsageError

    if text is None:
        return None
    try:
        found = parse_json(text)
    except NotJson:
        found = None
    if not isinstance(found, dict):
        raise UsageError(
            f"`--args {text}` is no JSON object", remedy='write it as `--args \'{"name": "value"}\'`'
        )
    return found
