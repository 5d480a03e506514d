"""Owns the beginning of a Run: who may start it, on what task, and that nothing it needs is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from engine.domain import events as e
from engine.domain.actors import HOST, Principal
from engine.domain.canonical import Json, JsonObject, NotJson, clean_text
from engine.domain.diagnostics import suggest
from engine.domain.errors import NotBuiltYet, Refused, UsageError
from engine.domain.ids import RunId, new_run_id
from engine.domain.policy import ModelUse, Policy
from engine.domain.state import RunState
from engine.domain.types import Field
from engine.domain.version import version
from engine.lifecycle.fold import fold
from engine.policy.allowed_models import refused_by
from engine.policy.not_built import not_built
from engine.policy.values import Fault, read_fields
from engine.ports import Append, Clock, EventStore, ModelGateway, ToolExecutor
from engine.runtime.journal import SAY_IT_PLAINLY, summary_of
from engine.runtime.library import PolicyLibrary, bundle_text
from engine.runtime.loading import restrictions
from engine.runtime.outlook import PLAYED

INPUT_LIMIT = 1_000_000
"""Code points of one user input."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a Run is started with. `grants` are capabilities given at the start, with their parameters."""

    policy: Policy
    input: str
    principal: Principal
    task: Mapping[str, Json]
    model: str
    grants: Mapping[str, Sequence[JsonObject]] = field(default_factory=dict)
    state: Mapping[str, JsonObject] = field(default_factory=dict)
    """Slice -> what the application says it holds at the start."""
    run: RunId | None = None


def start_run(
    store: EventStore, library: PolicyLibrary, executor: ToolExecutor, clock: Clock, beginning: Beginning
) -> RunId:
    """Appends the first events of a new Run. Raises Refused, UsageError or NotBuiltYet before anything is stored."""
    check_engine(beginning.policy, executor)
    return record_start(store, library, clock, beginning)


def record_start(store: EventStore, library: PolicyLibrary, clock: Clock, beginning: Beginning) -> RunId:
    """The same without asking whether the policy's handlers are there. Raises Refused or UsageError."""
    policy = beginning.policy
    check_principal(policy, beginning.principal)
    task = check_fields(policy.task, dict(beginning.task), "task")
    check_input(beginning.input, "input")
    run = beginning.run or new_run_id()
    bundle = library.add(policy)
    loaded = restrictions(store, library, policy)
    blobs = {bundle: bundle_text(policy)}
    for _, texts in loaded:
        blobs.update(texts)
    bodies = [
        e.RunStarted(
            engine=version(),
            policy=policy.id,
            policy_version=policy.version,
            policy_digest=policy.digest,
            bundle=bundle,
            principal=beginning.principal,
            task=task,
            model=beginning.model,
        ),
        e.InputReceived(text=beginning.input),
        *(body for body, _ in loaded),
        *_grants(beginning, clock),
        *_slices(beginning),
    ]
    _append(store, clock, run, bodies, beginning.principal, blobs)
    return run


def check_input(text: str, what: str) -> None:
    """Raises UsageError for a user's text that is too long or cannot be stored as it is."""
    if len(text) > INPUT_LIMIT:
        raise UsageError(
            f"the {what} has {len(text)} characters, more than {INPUT_LIMIT}",
            remedy="put long material into a file that a tool reads",
        )
    if clean_text(text)[1]:
        raise UsageError(f"the {what} is no valid Unicode text", remedy=SAY_IT_PLAINLY)


def check_prices(policy: Policy, gateway: ModelGateway, model: str) -> None:
    """Raises UsageError for a model without a known price: a money budget cannot be kept with it."""
    if model.startswith(PLAYED):
        return
    primary = policy.model.primary if model in ("", policy.model.primary.id) else ModelUse(model)
    for use in (primary, *policy.model.fallbacks):
        if gateway.price(use, 1, 1) is None:
            raise UsageError(
                f"model `{use.id}` has no known price, and the policy has a budget of {policy.budgets.cost_usd} USD",
                remedy="check the id, or state its price per million tokens in agentctl.yaml: "
                f"`prices: {{{use.id}: {{input: …, output: …}}}}`",
            )


def check_models(policies: Sequence[Policy], model: str) -> None:
    """Raises Refused for a model that an overlay does not allow. Models that play back proposals are exempt."""
    if model.startswith(PLAYED):
        return
    own = policies[0].model
    used = [model or own.primary.id, *(use.id for use in own.fallbacks), *([own.fast.id] if own.fast else [])]
    for name in used:
        overlay = refused_by(policies, name)
        if overlay is not None:
            raise Refused(
                f"overlay `{overlay.id}` does not allow model `{name}`",
                remedy=f"it allows: {', '.join(overlay.model_allowed or ()) or 'none'}",
            )


def check_engine(policy: Policy, executor: ToolExecutor) -> None:
    """Raises NotBuiltYet for what this engine does not run, UsageError for handlers that are not there."""
    missing = not_built(policy)
    if missing:
        raise NotBuiltYet(
            "this policy uses what agentctl does not run yet: " + "; ".join(missing),
            remedy="remove it from the policy, or wait for the version that has it",
        )
    faults = executor.check(list(policy.tools.values()))
    if faults:
        raise UsageError(
            "tools cannot be run: " + "; ".join(faults),
            remedy="mend the code, `handler` in the tool spec or `handlers` in agentctl.yaml",
        )


def check_principal(policy: Policy, principal: Principal) -> None:
    """The roles must be the policy's, one of them must be allowed to start, the attributes must fit."""
    for role in principal.roles:
        if role not in policy.roles:
            raise UsageError(
                f"the policy has no role `{role}`",
                remedy=suggest(role, policy.roles, f"roles: {', '.join(sorted(policy.roles))}"),
            )
    if not policy.may_start & set(principal.roles):
        raise Refused(
            f"`{principal.id}` may not start this Run: its roles are {', '.join(principal.roles) or 'none'}",
            remedy=f"name who may with `--as ID --role ROLE`: {', '.join(sorted(policy.may_start))}",
        )
    fields = {name: Field(type_) for name, type_ in policy.attrs.items()}
    check_fields(fields, dict(principal.attrs), "principal")


def check_fields(fields: Mapping[str, Field], given: JsonObject, what: str) -> JsonObject:
    """The values as the Host keeps them. Raises UsageError that names every field that does not fit."""
    faults: list[Fault] = []
    values = read_fields(given, fields, "", faults)
    if faults:
        known = ", ".join(f"{name}: {field.type}" for name, field in fields.items()) or "none"
        raise UsageError(
            f"{what}: " + "; ".join(fault.message for fault in faults), remedy=f"the policy declares {known}"
        )
    return values


def _grants(beginning: Beginning, clock: Clock) -> list[e.Body]:
    """Capabilities given at the start, each by a branch of the policy that says so."""
    granted: list[e.Body] = []
    for name, given in beginning.grants.items():
        capability = beginning.policy.capabilities.get(name)
        if capability is None or not any(branch.at_start for branch in capability.approve):
            raise Refused(
                f"capability `{name}` is not granted at the start",
                remedy="the policy needs `approve: [{at: start, by: starter}]` for it",
            )
        fields = {param: Field(type_) for param, type_ in capability.params.items()}
        for params in given:
            granted.append(
                e.CapabilityGranted(
                    grant=f"G{len(granted) + 1}",
                    capability=name,
                    params=check_fields(fields, dict(params), f"grant {name}"),
                    by="start",
                    expires_at=_after(clock, capability.expires_after),
                    calls=capability.expires_calls,
                )
            )
    return granted


def _slices(beginning: Beginning) -> list[e.Body]:
    """The application's state at the start, each slice at version 1."""
    found: list[e.Body] = []
    for name, value in beginning.state.items():
        declared = beginning.policy.state.get(name)
        if declared is None:
            raise UsageError(
                f"policy `{beginning.policy.id}` has no state `{name}`",
                remedy=suggest(name, beginning.policy.state, "leave it out"),
            )
        checked = check_fields(declared.fields, dict(value), f"state {name}")
        found.append(e.StateUpdated(slice=name, value=checked, version=1, by=beginning.principal.id))
    return found


def _after(clock: Clock, delay: timedelta | None) -> datetime | None:
    return None if delay is None else clock.now() + delay


def _append(
    store: EventStore,
    clock: Clock,
    run: RunId,
    bodies: Sequence[e.Body],
    principal: Principal,
    blobs: Mapping[str, str],
) -> None:
    log: list[e.Event] = []
    for body in bodies:
        actor = principal.actor() if isinstance(body, e.RunStarted | e.InputReceived) else HOST
        previous = log[-1].hash if log else e.GENESIS
        try:
            log.append(e.seal(run, len(log) + 1, clock.now(), actor, 0, body, previous))
        except NotJson as error:
            raise UsageError(f"the Run cannot be stored: {error}", remedy=SAY_IT_PLAINLY) from error
    state: RunState = fold(run, log)
    store.append(Append(run, 0, log, None, blobs, summary_of(state)))
