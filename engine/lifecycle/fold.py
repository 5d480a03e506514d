"""Owns the fold: one event changes RunState in one way, and nothing else ever writes it.

INVARIANT: state = fold(log); folding twice gives equal states (tests/lifecycle/test_fold.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from engine.domain import events as e
from engine.domain.calls import CallStatus
from engine.domain.ids import RunId
from engine.domain.state import (
    AttemptState,
    CompactionState,
    ContractState,
    DraftState,
    GrantState,
    PublicationState,
    RunState,
    SliceState,
    TurnState,
)
from engine.lifecycle import fold_calls, fold_evidence, fold_standing
from engine.lifecycle.fold_standing import move_epoch
from engine.lifecycle.machine import next_status


def fold(run: RunId, log: Iterable[e.Event], state: RunState | None = None) -> RunState:
    """Folds events onto `state` (a fresh one by default) and returns it."""
    folded = state if state is not None else RunState(run)
    for event in log:
        apply(folded, event)
    return folded


def apply(state: RunState, event: e.Event) -> None:
    """Folds one event. Constant time, whatever the length of the Run."""
    body = event.body
    state.status = next_status(state.status, body)
    _count_time(state, event)
    change = _CHANGES.get(type(body))
    if change is not None:
        change(state, event, body)
    if not event.claim_epoch or isinstance(body, e.ReceiptRecorded | e.ApprovalExpired | e.GrantExpired):
        state.news = True
    state.seq = event.seq
    state.head = event.hash
    state.updated_at = event.recorded_at


def _count_time(state: RunState, event: e.Event) -> None:
    """Wall time is the time between events of one claim, whatever people append between, unless it was parked."""
    if not event.claim_epoch:
        return
    if event.claim_epoch == state.last_epoch and not state.parked and state.worked_at is not None:
        state.spent.wall_seconds += max(0.0, (event.recorded_at - state.worked_at).total_seconds())
    state.last_epoch, state.worked_at = event.claim_epoch, event.recorded_at
    state.parked = isinstance(event.body, e.RunParked)


def _run_started(state: RunState, event: e.Event, body: e.RunStarted) -> None:
    state.policy, state.policy_version, state.policy_digest = (
        body.policy,
        body.policy_version,
        body.policy_digest,
    )
    state.principal, state.task, state.model = body.principal, body.task, body.model
    state.started_at = event.recorded_at
    state.bundle = body.bundle
    state.forked_from = body.forked_from
    state.spent.wall_seconds = body.worked_seconds


def _input_received(state: RunState, event: e.Event, body: e.InputReceived) -> None:
    state.said.append(body.text)
    if body.answers is not None and fold_calls.answered(state, event, body.answers, body.text):
        state.asked = None
        return
    state.inputs.append((event.seq, body.text))
    state.spent.silent_turns = 0
    state.spent.idle_turns = 0


def _run_parked(state: RunState, event: e.Event, body: e.RunParked) -> None:
    state.waiting_for = body.waiting_for
    state.news = False


def _run_resumed(state: RunState, event: e.Event, body: e.RunResumed) -> None:
    state.waiting_for = ""


def _cancel_requested(state: RunState, event: e.Event, body: e.CancelRequested) -> None:
    state.cancel_requested = body.because


def _settling_started(state: RunState, event: e.Event, body: e.SettlingStarted) -> None:
    state.settling = (body.ending, body.reason)
    state.finish_call = body.call
    state.waiting_for = ""


def _ended(state: RunState, event: e.Event, body: e.Ending) -> None:
    state.ending = (state.status, body.reason, body.message)
    if isinstance(body, e.RunCompleted) and body.call is not None:
        fold_calls.close(state, body.call, CallStatus.COMMITTED)


def _contract_compiled(state: RunState, event: e.Event, body: e.ContractCompiled) -> None:
    state.contract = ContractState(body.digest, body.epoch, frozenset(body.tools))


def _attempt_started(state: RunState, event: e.Event, body: e.ModelAttemptStarted) -> None:
    state.waiting_for = ""
    state.attempts = body.attempt
    state.attempt = AttemptState(
        body.turn,
        body.attempt,
        body.model,
        body.contract,
        body.epoch,
        body.reserved,
        event.recorded_at,
        event.seq,
    )
    state.left_out = body.left_out


def _attempt_failed(state: RunState, event: e.Event, body: e.ModelAttemptFailed) -> None:
    if state.attempt is not None:
        _charge(state, body.usage, body.cost_usd, state.attempt.reserved)
    state.attempt = None
    state.spent.attempts_failed += 1
    state.last_failure = (body.error, body.message, body.retry_after, event.recorded_at)


def _charge(state: RunState, usage: e.Usage | None, cost: Any, reserved: e.Reservation) -> None:
    """What nobody told of an attempt is charged as it was reserved; an attempt without tokens costs nothing."""
    spent = state.spent
    spent.input_tokens += usage.input_tokens if usage else reserved.input_tokens
    spent.output_tokens += usage.output_tokens if usage else reserved.output_tokens
    if cost is not None:
        spent.cost_usd += cost
    elif usage is not None and not usage.input_tokens and not usage.output_tokens:
        return
    elif reserved.cost_usd is not None:
        spent.cost_usd += reserved.cost_usd
    else:
        spent.cost_unknown = True


def _turn_recorded(state: RunState, event: e.Event, body: e.ModelTurnRecorded) -> None:
    reserved = state.attempt.reserved if state.attempt else e.Reservation()
    asked = state.attempt.seq if state.attempt else event.seq
    _charge(state, body.usage, body.cost_usd, reserved)
    offered = state.contract.tools if state.contract else frozenset()
    turn = TurnState(body.turn, body, body.epoch, asked, offered)
    state.turns.append(turn)
    state.attempt, state.attempts, state.last_failure = None, 0, None
    spent = state.spent
    spent.turns += 1
    spent.attempts_failed = 0
    spent.silent_turns = 0 if body.proposals else spent.silent_turns + 1
    spent.idle_turns += 1 if body.proposals else 0
    fold_calls.propose(state, event, turn)


def _input_omitted(state: RunState, event: e.Event, body: e.InputOmitted) -> None:
    state.omitted_inputs.update(body.inputs)


def _compaction_started(state: RunState, event: e.Event, body: e.CompactionStarted) -> None:
    state.compacting = body.reserved


def _compacted(state: RunState, event: e.Event, body: e.ContextCompacted) -> None:
    _charge(state, body.usage, body.cost_usd, state.compacting or e.Reservation())
    state.compacting = None
    reads = "read_results" in body.covers
    state.compactions.append(CompactionState(body.upto, body.model, body.summary, reads))


def _compaction_failed(state: RunState, event: e.Event, body: e.CompactionFailed) -> None:
    _charge(state, body.usage, body.cost_usd, state.compacting or e.Reservation())
    state.compacting = None
    state.compaction_failed = len(state.turns)


def _granted(state: RunState, event: e.Event, body: e.CapabilityGranted) -> None:
    state.grants[body.grant] = GrantState(
        body.grant, body.capability, body.params, body.by, event.recorded_at, body.expires_at, body.calls
    )
    state.open_grants[body.grant] = None
    move_epoch(state, f"granted {body.capability}")
    if body.call is not None:
        fold_calls.close(state, body.call, CallStatus.GRANTED)
        fold_calls.executed(state, body.call)


def _denied(state: RunState, event: e.Event, body: e.CapabilityDenied) -> None:
    call = state.calls[body.call]
    call.refusal = e.RefusalRecord(code="denied", message=body.because)
    fold_calls.close(state, body.call, CallStatus.REJECTED)


def _grant_expired(state: RunState, event: e.Event, body: e.GrantExpired) -> None:
    state.grants[body.grant].ended = "expired"
    state.open_grants.pop(body.grant, None)
    move_epoch(state, f"expired {state.grants[body.grant].capability}")


def _grant_revoked(state: RunState, event: e.Event, body: e.GrantRevoked) -> None:
    grant = state.grants[body.grant]
    grant.ended = "revoked"
    state.open_grants.pop(body.grant, None)
    for handle in grant.evidence:
        fold_evidence.supersede(state, handle, f"the grant of {grant.capability} was revoked")
    move_epoch(state, f"revoked {grant.capability}")


def _source_changed(state: RunState, event: e.Event, body: e.SourceStateChanged) -> None:
    state.sources[body.source] = body.state
    if body.state in ("unavailable", "unauthorized"):
        rests_on = {handle for publication in state.publications.values() for handle in publication.evidence}
        for handle in sorted(rests_on):
            if state.evidence[handle].source == body.source:
                fold_evidence.flag(state, handle, f"source {body.source} is {body.state}")
    move_epoch(state, f"source {body.source} is {body.state}")


def _state_updated(state: RunState, event: e.Event, body: e.StateUpdated) -> None:
    fold_calls.concluded(state, body.slice)
    held = state.state.get(body.slice)
    printed = held.printed if held is not None else {}
    if "version" in body.value:
        printed[body.version] = body.value["version"]
    state.state[body.slice] = SliceState(
        body.value, body.version, event.recorded_at, event.actor, event.seq, printed
    )


def restricted_as(name: str, *, overlay: bool) -> str:
    """The key in `restricted_by`: an overlay may have the name of a policy."""
    return f"overlay {name}" if overlay else name


def _policy_loaded(state: RunState, event: e.Event, body: e.PolicyLoaded) -> None:
    state.restricted_by[restricted_as(body.policy, overlay=body.overlay)] = body.bundle
    state.draining = state.draining or body.drain
    move_epoch(state, f"loaded policy version {body.version}")


def _draft_kept(state: RunState, event: e.Event, body: e.DraftKept) -> None:
    state.drafts[body.handle] = DraftState(body.handle, body.output, body.fields)


def _published(state: RunState, event: e.Event, body: e.OutputPublished) -> None:
    cited = tuple(dict.fromkeys(citation.evidence for citation in body.citations))
    rests_on = tuple(dict.fromkeys((*cited, *(figure.evidence for figure in body.figures))))
    state.publications[body.output] = PublicationState(
        body.output, body.call, body.fields, body.rendered, cited, event.recorded_at, body.digest, rests_on
    )
    fold_calls.close(state, body.call, CallStatus.COMMITTED)
    fold_calls.executed(state, body.call)


def _alerted(state: RunState, event: e.Event, body: e.OperatorAlerted) -> None:
    state.alerts.append((body.code, body.message))


_CHANGES: dict[type[e.Body], Callable[[RunState, e.Event, Any], None]] = {
    e.RunStarted: _run_started,
    e.InputReceived: _input_received,
    e.RunParked: _run_parked,
    e.RunResumed: _run_resumed,
    e.CancelRequested: _cancel_requested,
    e.SettlingStarted: _settling_started,
    e.RunCompleted: _ended,
    e.RunFailed: _ended,
    e.RunCancelled: _ended,
    e.RunExpired: _ended,
    e.ContractCompiled: _contract_compiled,
    e.ModelAttemptStarted: _attempt_started,
    e.ModelAttemptFailed: _attempt_failed,
    e.ModelTurnRecorded: _turn_recorded,
    e.InputOmitted: _input_omitted,
    e.CompactionStarted: _compaction_started,
    e.ContextCompacted: _compacted,
    e.CompactionFailed: _compaction_failed,
    e.CapabilityGranted: _granted,
    e.CapabilityDenied: _denied,
    e.GrantExpired: _grant_expired,
    e.GrantRevoked: _grant_revoked,
    e.SourceStateChanged: _source_changed,
    e.StateUpdated: _state_updated,
    e.PolicyLoaded: _policy_loaded,
    e.DraftKept: _draft_kept,
    e.OutputPublished: _published,
    e.OperatorAlerted: _alerted,
    **fold_calls.CHANGES,
    **fold_standing.CHANGES,
}
