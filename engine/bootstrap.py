"""Owns the composition: the one file that names adapters and puts a Runtime together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from engine.domain.actors import Principal
from engine.domain.canonical import Json, JsonObject
from engine.domain.errors import SourceError, UsageError
from engine.domain.messages import Message
from engine.domain.policy import ModelUse, Policy
from engine.policy.compiler import load_policy as compile_to_policy
from engine.policy.documents.project import Project, load_project
from engine.policy.files import beside
from engine.ports import Clock, EventStore, InputMeter, ModelGateway, Owner, Secrets, ToolExecutor
from engine.runtime.doctor import (
    Check,
    attempt,
    check_call,
    check_policy,
    check_price,
    check_store,
    installed,
    skipped,
)
from engine.runtime.naming import run_of
from engine.runtime.runtime import Parts, Runtime
from engine.runtime.start import check_engine, check_fields, check_models, check_prices, check_principal

if TYPE_CHECKING:
    from engine.adapters.signed_tokens import SignedTokens
    from engine.policy.case_files import CaseFile
    from engine.policy.documents.test import CasePart
    from engine.runtime.scenario.runner import CaseResult, FileResult

DEFAULT_DB = ".agentctl/agentctl.db"
SCRIPTED = "scripted/"
REPLAY = "replay/"


def open_runtime(
    db: str | None = None,
    *,
    policy: Policy | str | Path | None = None,
    tools: Mapping[str, Callable[..., object]] | ToolExecutor | None = None,
    gateway: ModelGateway | None = None,
    model: str | None = None,
    project: Project | None = None,
    clock: Clock | None = None,
    create: bool = True,
) -> Runtime:
    """A Runtime on a database.

    `db`: a path, a database URL, or `:memory:`; by default what `agentctl.yaml` says, else `.agentctl/agentctl.db`.
    `policy`: a compiled Policy or the path of one. `tools`: callables by the names of the tool specs, or an
    executor of your own; by default the handlers that the specs name. `gateway`: whatever proposes; by default
    the adapter for `model` (a litellm id, `scripted/FILE` or `replay/RUN`), else the policy's primary model.

    Raises PolicyInvalid, StoreError and UsageError.
    """
    settings = project or load_project(Path.cwd())
    compiled = load_policy(policy, settings) if isinstance(policy, str | Path) else policy
    executor = _executor(tools, settings)
    store = open_store(db, settings, create=create)
    asked = _whole(store, model) if model else ""
    named = asked or (compiled.model.primary.id if compiled is not None else "")
    parts = Parts(
        store=store,
        gateway=gateway or open_gateway(named, settings, store),
        executor=executor,
        clock=clock or _clock(),
        owner=_owner(),
        model=named if gateway is None or model else f"gateway/{type(gateway).__name__}",
        secrets=open_secrets(settings),
        meter=None if named.startswith((SCRIPTED, REPLAY)) else _meter(settings),
        instead=asked,
    )
    return Runtime(parts, compiled)


def _whole(store: EventStore, model: str) -> str:
    """`replay/RUN` with the whole id: what is recorded means the same Run later."""
    if not model.startswith(REPLAY):
        return model
    return REPLAY + run_of(store, model.removeprefix(REPLAY))


async def doctor(
    db: str | None = None,
    *,
    policy: str | Path | None = None,
    model: str | None = None,
    project: Project | None = None,
) -> list[Check]:
    """Looks at everything that a Run with a real model needs, and makes one tiny request to the model.

    Never raises for what it finds. Each Check says what was seen and what to do.
    """
    settings = project or load_project(Path.cwd())
    found = [attempt("install", installed), attempt("secrets", lambda: _held(settings))]
    store = attempt("database", lambda: _writable(db, settings))
    compiled: Policy | None = None
    if policy is None:
        checked = skipped("policy", "no policy was named")
    else:
        checked = attempt("policy", lambda: _loaded(policy, settings))
        if checked.verdict == "ok":
            compiled = load_policy(policy, settings)
            checked = check_policy(compiled, _executor(None, settings))
    use = ModelUse(model) if model else compiled.model.primary if compiled else None
    if use is None:
        return [*found, store, checked, skipped("model", "no model was named: use `--model`")]
    opened = attempt("model", lambda: _opened(use.id, db, settings))
    if opened.verdict != "ok" or use.id.startswith((SCRIPTED, REPLAY)):
        return [*found, store, checked, opened]
    gateway = open_gateway(use.id, settings)
    return [*found, store, checked, check_price(gateway, use), await check_call(gateway, use)]


def _loaded(policy: str | Path, project: Project) -> str:
    """Reads the policy once, and the folders of its handlers, for what is wrong with them."""
    _executor(None, project)
    return load_policy(policy, project).id


def _opened(model: str, db: str | None, project: Project) -> str:
    """Opens the gateway once, for what is wrong with it."""
    store = open_store(db, project, create=False) if model.startswith(REPLAY) else None
    try:
        open_gateway(model, project, store)
    finally:
        if store is not None:
            store.close()
    return f"`{model}` can be played back; no provider is asked"


def check_start(
    policy: Policy,
    principal: Principal,
    task: Mapping[str, Json],
    *,
    model: str | None = None,
    project: Project | None = None,
) -> None:
    """Raises what `Runtime.start` would raise, as far as no database is needed to know: none is made for a Run that
    cannot start."""
    settings = project or load_project(Path.cwd())
    check_principal(policy, principal)
    check_fields(policy.task, dict(task), "task")
    check_engine(policy, _executor(None, settings))
    named = model or policy.model.primary.id
    if not named.startswith(REPLAY):
        gateway = open_gateway(named, settings)
        check_models([policy], named)
        check_prices(policy, gateway, named)


def scripted(turns: Sequence[Mapping[str, object]]) -> ModelGateway:
    """A model that plays these turns, each as a script has it."""
    from engine.adapters.scripted_gateway import ScriptedGateway

    return ScriptedGateway.from_turns(turns)


def handler(named: str, project: Project) -> Callable[..., object]:
    """The function behind `python:MODULE:FUNCTION`, searched as the handlers of tools are. Raises UsageError."""
    from engine.adapters.handler_modules import HandlerModules, HandlerNotFound
    from engine.domain.policy import PythonHandler

    kind, _, rest = named.partition(":")
    module, _, function = rest.partition(":")
    if kind != "python" or not module or not function:
        raise UsageError(f"`{named}` names no function", remedy="write python:MODULE:FUNCTION")
    try:
        return HandlerModules([project.root / path for path in project.handlers]).function(
            PythonHandler(module, function)
        )
    except HandlerNotFound as error:
        raise UsageError(str(error), remedy="mend the name, or `handlers` in agentctl.yaml") from error


def open_tokens(project: Project) -> SignedTokens:
    """What verifies signed identities: the issuers of `agentctl.yaml`. Raises UsageError where it names none."""
    from engine.adapters.signed_tokens import Issuer, SignedTokens

    if not project.issuers:
        raise UsageError(
            "no issuer of signed identities is known",
            remedy="name one in agentctl.yaml: `identity: {issuers: [{issuer: …, audience: …, keys: …}]}`",
        )
    return SignedTokens(
        [
            Issuer(each.issuer, each.audience, project.root / each.keys, each.roles_claim)
            for each in project.issuers
        ]
    )


def open_secrets(project: Project) -> Secrets | None:
    """The secrets that this process holds: those of `agentctl.yaml` and the model keys of the environment.

    Raises SourceError for a file that cannot be read, UsageError for a value too short to be looked for.
    """
    from engine.adapters.secrets import registered

    named = {name: (part.env, part.file) for name, part in project.secrets.items()}
    return registered(named, project.root)


def _keys(project: Project) -> dict[str, str]:
    """Secrets by the environment variable that they may stand for: `anthropic_api_key` -> `ANTHROPIC_API_KEY`."""
    from engine.adapters.secrets import RegisteredSecrets

    secrets = open_secrets(project)
    if not isinstance(secrets, RegisteredSecrets):
        return {}
    return {name.upper().replace("-", "_").replace(".", "_"): value for name, value in secrets.values.items()}


def _meter(project: Project) -> InputMeter:
    from engine.adapters.token_counter import ProviderMeter

    return ProviderMeter(key=_keys(project).get("ANTHROPIC_API_KEY"))


def _held(project: Project) -> str:
    """Which secrets are there, by name; one that is not set cannot leak from here."""
    absent = absent_secrets(project)
    said = f"{len(_keys(project))} registered"
    return f"{said}; not set here: {', '.join(absent)}" if absent else said


def absent_secrets(project: Project) -> list[str]:
    """Names of `agentctl.yaml` whose values this process does not hold, sorted: nothing can look for them."""
    held = _keys(project)
    return sorted(
        name for name in project.secrets if name.upper().replace("-", "_").replace(".", "_") not in held
    )


def _writable(db: str | None, project: Project) -> str:
    store = open_store(db, project)
    try:
        check = check_store(store, database_of(db, project))
    finally:
        store.close()
    if check.verdict != "ok":
        raise SourceError(check.said, remedy=check.remedy)
    return check.said


def load_policy(path: str | Path, project: Project | None = None, *, overlays: Sequence[str] = ()) -> Policy:
    """Compiles a policy file. Raises PolicyInvalid with every fault, SourceError if it cannot be read."""
    settings = project or load_project(Path.cwd())
    compiled = compile_to_policy(str(path), extra_overlays=overlays)
    limits = settings.limits.get(compiled.id)
    return compile_to_policy(str(path), extra_overlays=overlays, limits=limits) if limits else compiled


def run_cases(file: str, project: Project | None = None, *, only: str | None = None) -> FileResult:
    """Runs the cases of a test file, or the one that `only` names, each on a store in memory.

    Raises SourceError if a file cannot be read, PolicyInvalid if the test file or its policy has faults.
    """
    from engine.adapters.memory_store import MemoryStore
    from engine.runtime.scenario.runner import run_file

    return run_file(load_cases(file, project), MemoryStore, only)


def load_cases(file: str, project: Project | None = None) -> CaseFile:
    """The cases of a test file, checked against its policy. Raises SourceError and PolicyInvalid."""
    from engine.policy.case_files import read_cases

    settings = project or load_project(Path.cwd())
    return read_cases(file, lambda policy: load_policy(policy, settings))


def play_case(loaded: CaseFile, case: CasePart) -> CaseResult:
    """Plays one case of a loaded file."""
    from engine.adapters.memory_store import MemoryStore
    from engine.runtime.scenario.runner import run_case

    return run_case(loaded.policy, case, MemoryStore())


@dataclass(frozen=True, slots=True)
class Written:
    """A starter test file: where it is, how many cases it has, the rules for which none was found."""

    file: str
    cases: int
    without: tuple[str, ...]


def write_starter(policy: str, target: str | None = None, project: Project | None = None) -> Written:
    """Writes a test file for a policy: the first that it names and that is not there, else beside it.

    Raises UsageError for a file that exists, SourceError if it cannot be written, PolicyInvalid.
    """
    from engine.adapters.memory_store import MemoryStore
    from engine.runtime.scenario.starter import starter

    compiled = load_policy(policy, project)
    named = [Path(beside(policy, name)) for name in compiled.tests]
    beside_it = Path(policy).with_name(f"{compiled.id}.test.yaml")
    file = Path(target) if target else next((each for each in named if not each.exists()), beside_it)
    if file.exists():
        raise UsageError(f"`{file}` exists", remedy=f"name another: `agentctl test --init {policy} FILE`")
    made = starter(compiled, os.path.relpath(policy, file.parent).replace(os.sep, "/"), MemoryStore)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(made.text, encoding="utf-8")
    except OSError as error:
        raise SourceError(
            f"`{file}` cannot be written: {error.strerror or error}", remedy="choose another folder"
        ) from error
    return Written(str(file), made.cases, made.without)


def on_the_wire(messages: Sequence[Message], model: str) -> list[JsonObject]:
    """Neutral messages in the chat form that goes to the model's provider."""
    from engine.adapters.wire.profile import profile_of
    from engine.adapters.wire.projection import to_openai

    return to_openai(messages, model, profile_of(model))


def open_store(db: str | None, project: Project, *, create: bool = True) -> EventStore:
    """The event store for a path, a database URL or `:memory:`."""
    url = database_of(db, project)
    if url == ":memory:":
        from engine.adapters.memory_store import MemoryStore

        return MemoryStore()
    from engine.adapters.sql_store import SqlStore

    return SqlStore.open(url, create=create)


def database_of(db: str | None, project: Project) -> str:
    """What is opened: the option, else the project's `db`, else the default beside the project file."""
    if db:
        return db
    url = project.db or DEFAULT_DB
    if ":" in url or Path(url).is_absolute():
        return url
    return str(project.root / url)


def open_gateway(model: str, project: Project, store: EventStore | None = None) -> ModelGateway:
    """The adapter for a model id; nothing heavy is loaded before the first proposal."""
    if model.startswith(SCRIPTED):
        from engine.adapters.scripted_gateway import ScriptedGateway

        return ScriptedGateway.from_file(model.removeprefix(SCRIPTED))
    if model.startswith(REPLAY):
        from engine.adapters.replay_gateway import ReplayGateway

        if store is None:
            raise UsageError(f"`{model}` needs the database of that Run", remedy="use it with `agentctl run`")
        return ReplayGateway.of(store, run_of(store, model.removeprefix(REPLAY)))
    _refuse_files(model)
    from engine.adapters.litellm_gateway import LitellmGateway
    from engine.adapters.litellm_prices import Price

    prices = {
        name: Price(
            Decimal(price.input),
            Decimal(price.output),
            None if price.cached_input is None else Decimal(price.cached_input),
        )
        for name, price in project.prices.items()
    }
    return LitellmGateway(prices=prices, keys=_keys(project))


def _refuse_files(model: str) -> None:
    """A script without its prefix, or a prefix without what it plays, is no model of a provider."""
    if f"{model}/" in (SCRIPTED, REPLAY):
        raise UsageError(f"`{model}` does not say what to play", remedy="write scripted/FILE or replay/RUN")
    if model.endswith((".yaml", ".yml")) and Path(model).is_file():
        raise UsageError(f"`{model}` is a file, not a model", remedy=f"to play a script: scripted/{model}")


def _executor(
    tools: Mapping[str, Callable[..., object]] | ToolExecutor | None, project: Project
) -> ToolExecutor:
    if tools is not None and not isinstance(tools, Mapping):
        return tools
    from engine.adapters.function_tools import FunctionTools

    paths = [project.root / path for path in project.handlers]
    for path in paths:
        if not path.is_dir():
            raise SourceError(
                f"`handlers` names `{path}`, which is no folder", remedy="mend `handlers` in agentctl.yaml"
            )
    return FunctionTools(tools, paths)


def _clock() -> Clock:
    from engine.adapters.system_clock import SystemClock

    return SystemClock()


def _owner() -> Owner:
    from engine.adapters.processes import this_process

    return this_process("agentctl")
