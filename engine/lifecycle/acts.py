"""Owns the facts that follow from a verdict: what is recorded, and what is dispatched, for one call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from engine.domain import events as e
from engine.domain.calls import Outcome
from engine.domain.canonical import Json, JsonObject, digest_of
from engine.domain.facts import Unknown
from engine.domain.ids import CallId
from engine.domain.policy import Kind, Policy, ToolSpec
from engine.domain.state import CallState, RunState, TurnState
from engine.domain.types import Field, Trust
from engine.lifecycle.fold_evidence import SOURCELESS
from engine.lifecycle.present import Present
from engine.lifecycle.provenance import edges_of
from engine.lifecycle.steps import Execute, Record, Step
from engine.policy.binding import host_arguments
from engine.policy.freshness import slices_of, stale
from engine.policy.verdicts import Builtin, Hold, Reject, Run
from engine.policy.view import as_json, look

Denial: TypeAlias = Literal["refused", "expired", "undecided"]


def rejected(call: CallState, verdict: Reject) -> Iterator[e.Body]:
    yield from alerts(verdict.alerts)
    yield e.CallRejected(call=call.id, tool=call.tool, refusal=verdict.refusal, args=verdict.args)


def alerts(messages: tuple[str, ...]) -> Iterator[e.Body]:
    for message in messages:
        yield e.OperatorAlerted(code="condition-failed", message=message)


def hold(state: RunState, call: CallState, verdict: Hold) -> Iterator[e.Body]:
    """The call waits for people; the request is bound to what is stored and to what they are shown.

    What people changed in earlier calls of the tool is shown beside it.
    """
    yield from alerts(verdict.alerts)
    shown = {**verdict.shown, **_amended_before(state, call)}
    yield e.CallHeld(
        call=call.id,
        tool=call.tool,
        tool_kind=None if verdict.spec is None else verdict.spec.kind,
        reason="approval" if verdict.spec is not None else "publication",
        waits_for=tuple(need.rule for need in verdict.requirements),
        args=verdict.args,
    )
    yield e.ApprovalRequested(
        call=call.id,
        digest=verdict.digest,
        requirements=verdict.requirements,
        shown=shown,
        shown_digest=digest_of(shown),
    )


def _amended_before(state: RunState, call: CallState) -> JsonObject:
    before: list[Json] = [
        {"call": str(other.id), "proposed": was.original_args, "amended": other.args, "by": was.by}
        for other in (state.calls[id_] for id_ in state.amended)
        if other.tool == call.tool and other.id != call.id and (was := other.amended) is not None
    ]
    return {"amended_before": before} if before else {}


def queued(call: CallState, verdict: Run | Hold | Builtin) -> Iterator[e.Body]:
    yield from alerts(() if isinstance(verdict, Builtin) else verdict.alerts)
    yield e.CallHeld(
        call=call.id,
        tool=call.tool,
        tool_kind=None if isinstance(verdict, Builtin) or verdict.spec is None else verdict.spec.kind,
        reason="queued",
        args=verdict.args,
        detail="an earlier call of the same response is held",
    )


def execute(
    present: Present,
    turn: TurnState,
    call: CallState,
    verdict: Run | Hold,
    approved_by: str | None = None,
    standing: tuple[str, ...] = (),
) -> Step:
    """Refreshes the state that the rules want fresh, checks it, then dispatches."""
    policy, state = present.policy, present.state
    for name in slices_of(verdict.matched):
        slice_ = policy.state.get(name)
        if slice_ is None or slice_.refresh is None or call.refreshed.get(name) in present.refreshes:
            continue
        tool = policy.tools[slice_.refresh]
        args = host_arguments(tool, {}, call, present.facts[0])
        if args is None:
            break
        purpose = e.HostPurpose(purpose="refresh", subject=call.id, slice=name)
        return Execute((host_start(state, tool, args, purpose, policy),))
    changed = not_as_shown(present, turn, call, verdict)
    if changed is not None:
        return Record((not_executed(call, changed),))
    start = started(present, call, verdict, approved_by)
    if standing:
        start = start.model_copy(update={"standing": standing})
    return Execute((start,), tuple(alerts(verdict.alerts)))


def not_as_shown(present: Present, turn: TurnState, call: CallState, verdict: Run | Hold) -> str | None:
    """Why the call may not be sent on the state of now; None if it may."""
    unread = next(_unread(present.state, call, verdict), None)
    if unread is not None:
        return f"state {unread} could not be read again, so whether it changed is unknown"
    fault = stale(verdict.matched, present.state, turn.recorded.state_versions, present.now)
    if fault is not None:
        return f"{fault.message} since the model saw it"
    moved = _moved(present, call, verdict)
    return None if moved is None else f"{moved} changed since the call was stored"


def _unread(state: RunState, call: CallState, verdict: Run | Hold) -> Iterator[str]:
    """Slices whose version a rule compares, and whose refresh for this call brought no value."""
    for rule in verdict.matched:
        for fresh in rule.fresh:
            refresh = call.refreshed.get(fresh.state)
            if fresh.same_version_as_proposal and refresh is not None:
                receipt = state.calls[refresh].receipt
                if receipt is None or receipt.outcome is not Outcome.CONFIRMED:
                    yield fresh.state


def _moved(present: Present, call: CallState, verdict: Run | Hold) -> str | None:
    """The app state or grant that a parameter of a held call is bound to, if it is another by now: what people said
    yes to is not what would be done."""
    assert verdict.spec is not None
    for param in verdict.spec.bound_params:
        if call.args is None or not str(param.bind).startswith(("state.", "grant.")):
            continue
        now = look(present.facts[0], str(param.bind))
        if isinstance(now, Unknown) or as_json(now) != verdict.args.get(param.name):
            return str(param.bind) if param.required or param.name in verdict.args else None
    return None


def started(
    present: Present,
    call: CallState,
    verdict: Run | Hold,
    approved_by: str | None = None,
    cache_key: str | None = None,
) -> e.ExecutionStarted:
    """The dispatch of an admitted call, durable before anything is sent."""
    spec, policy = verdict.spec, present.policy
    assert spec is not None
    if isinstance(verdict, Run):
        approved_by = approved_by or verdict.approved_by
    return e.ExecutionStarted(
        call=call.id,
        tool=spec.name,
        tool_kind=spec.kind,
        attempt=call.attempts + 1,
        args=verdict.args,
        args_digest=digest_of(verdict.args),
        policy_digest=policy.digest,
        idempotency_key=verdict.idempotency_key,
        approved_by=approved_by,
        source=spec.source,
        effects=spec.effects,
        reversible=spec.reversible,
        normalised=verdict.normalised,
        holds=spec.holds is not None,
        hold_ttl=spec.holds.ttl.total_seconds() if spec.holds and spec.holds.ttl else None,
        consumed_by=spec.holds.consumed_by if spec.holds else None,
        untrusted=_brings_untrusted(policy, spec),
        labels=_labels_of(spec),
        grants=verdict.grants,
        edges=edges_of(present.provenance, spec, verdict.args, present.state),
        cache_key=cache_key,
        outdated_by=_outdated_by(spec) if spec.kind is Kind.READ else (),
    )


def _outdated_by(spec: ToolSpec) -> tuple[str, ...]:
    """What makes an answer out of date: the declared effects, else any write on the same source."""
    if spec.cache is not None and spec.cache.invalidated_by is not None:
        return spec.cache.invalidated_by or ("nothing",)
    return (f"source:{spec.source or SOURCELESS}",)


def _brings_untrusted(policy: Policy, spec: ToolSpec) -> bool:
    source = policy.sources.get(spec.source) if spec.source else None
    from_strangers = source is not None and source.trust is Trust.UNTRUSTED
    return from_strangers or any(_untrusted(field) for field in spec.result.values())


def _labels_of(spec: ToolSpec) -> tuple[str, ...]:
    return tuple(sorted(spec.labels.union(*map(_labels, spec.result.values()))))


def _labels(field: Field) -> frozenset[str]:
    """Those of the field and of every field that it holds."""
    inner = field.type.of or field.type
    return frozenset(field.labels).union(*map(_labels, inner.fields.values()))


def _untrusted(field: Field) -> bool:
    """The field, or one that it holds, is of untrusted trust."""
    inner = field.type.of or field.type
    return field.trust is Trust.UNTRUSTED or any(_untrusted(each) for each in inner.fields.values())


def host_start(
    state: RunState, spec: ToolSpec, args: JsonObject, purpose: e.HostPurpose, policy: Policy | None = None
) -> e.ExecutionStarted:
    """A call of the Host: no proposal, so no rule, fence or budget applies to it; it has a receipt all the same.

    Its key names the effect that it is about: what a Run and its fork share is undone once, whoever comes first. With
    the `policy` given, what it brings to a slice that the model is shown is labelled like any other answer.
    """
    subject = state.calls.get(purpose.subject) if purpose.subject is not None else None
    about = subject.idempotency_key if subject is not None else None
    key = digest_of([about or [state.run, list(purpose.subject or ())], spec.name, purpose.purpose, args])
    return e.ExecutionStarted(
        call=CallId(0, state.host_calls + 1),
        tool=spec.name,
        tool_kind=spec.kind,
        args=args,
        args_digest=digest_of(args),
        policy_digest=state.policy_digest,
        idempotency_key=None if spec.idempotency is None else key,
        source=spec.source,
        effects=spec.effects,
        reversible=spec.reversible,
        untrusted=policy is not None and _is_shown(policy, purpose) and _brings_untrusted(policy, spec),
        labels=_labels_of(spec) if policy is not None and _is_shown(policy, purpose) else (),
        host=purpose,
    )


def _is_shown(policy: Policy, purpose: e.HostPurpose) -> bool:
    return any(projection.slice == purpose.slice for projection in policy.projections)


def not_executed(call: CallState, why: str, denial: Denial | None = None) -> e.ReceiptRecorded:
    """A held or queued call that will not run: known not to be executed, and why."""
    return e.ReceiptRecorded(
        call=call.id,
        tool=call.tool,
        outcome=Outcome.NOT_EXECUTED,
        settled_by="host",
        detail=why,
        denial=denial,
    )


def held_behind_twin(state: RunState, call: CallState, verdict: Run | Hold) -> tuple[e.Body, ...]:
    """Held while an earlier call with the same idempotency key is open or of unknown outcome."""
    assert verdict.spec is not None
    twin = open_twin(state, call.id, verdict.idempotency_key)
    if twin is None:
        return ()
    return (
        e.CallHeld(
            call=call.id,
            tool=call.tool,
            tool_kind=verdict.spec.kind,
            reason="equal_key",
            args=verdict.args,
            detail=str(twin),
        ),
    )


def open_twin(state: RunState, call: CallId, key: str | None) -> CallId | None:
    """The first other call with this key that is started without a receipt, or whose outcome is unknown."""
    if key is None:
        return None
    others = [other for other in state.unsettled.by_key.get(key, ()) if other != call]
    return min(others, key=lambda other: other in state.unknown_calls, default=None)


def capability_of(call: CallState) -> str:
    """The name that a held request for a capability asks for."""
    return str((call.args or {}).get("capability", ""))


def decided_against(call: CallState) -> e.ReceiptRecorded:
    """Refused, or nobody decided in time: told apart by a word of the receipt and in its reason."""
    assert call.approval is not None
    denial: Denial = "refused" if call.approval.decided == "refused" else "expired"
    return not_executed(call, call.approval.because, denial)
