"""Owns the part of the fold that concerns calls, their approvals, receipts, holds and evidence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from heapq import heappop, heappush
from typing import Any

from engine.domain import events as e
from engine.domain.actors import Actor
from engine.domain.calls import CallStatus, Outcome
from engine.domain.facts import PastCall, ToolHistory
from engine.domain.ids import CallId
from engine.domain.policy import Kind
from engine.domain.state import (
    ApprovalState,
    CallState,
    Notice,
    ReceiptState,
    RunState,
    TurnState,
    unattended_tool,
)
from engine.lifecycle import fold_evidence, fold_unsettled
from engine.lifecycle.fold_standing import amend, use_standing, vouch


def propose(state: RunState, event: e.Event, turn: TurnState) -> None:
    for proposal in turn.recorded.proposals:
        call = CallId(turn.number, proposal.ordinal)
        turn.calls.append(call)
        state.calls[call] = CallState(call, proposal.tool, None, CallStatus.PROPOSED, proposal, event.seq)
        state.open_calls[call] = None
        state.spent.calls += 1


def close(state: RunState, call: CallId, status: CallStatus) -> None:
    state.calls[call].status = status
    state.open_calls.pop(call, None)
    if state.finish_call == call and status is not CallStatus.COMMITTED:
        state.finish_call = None


def executed(state: RunState, call: CallId) -> None:
    """Something of that response was executed: it made progress, as far as a Host can tell."""
    state.spent.invalid_in_a_row = 0
    if 0 < call.turn <= len(state.turns):
        state.turns[call.turn - 1].executed = True
    if call.turn == len(state.turns):
        state.spent.idle_turns = 0


def concluded(state: RunState, about: CallId | str) -> None:
    """The Host drew its conclusion about a call of unknown outcome, or about a state slice."""
    for id_ in list(state.unjudged):
        host = state.calls[id_].host
        if host is None or about == (host.subject if host.purpose == "probe" else host.slice):
            del state.unjudged[id_]


def answered(state: RunState, event: e.Event, call: CallId, text: str) -> bool:
    """The reply is the result of the question. False if that question is no longer open."""
    asked = state.calls.get(call)
    if asked is None or asked.status is not CallStatus.HELD:
        return False
    asked.receipt = ReceiptState(
        Outcome.CONFIRMED, "host", event.recorded_at, result=e.StoredResult(value=text, size=len(text))
    )
    close(state, call, CallStatus.SETTLED)
    return True


def _rejected(state: RunState, event: e.Event, body: e.CallRejected) -> None:
    call = state.calls[body.call]
    call.refusal, call.args = body.refusal, body.args
    close(state, body.call, CallStatus.REJECTED)
    state.spent.invalid_in_a_row += 1


def _fenced(state: RunState, event: e.Event, body: e.CallFenced) -> None:
    """The model may propose it again: the place that it held in the budget of its tool is free."""
    call = state.calls[body.call]
    if call.status is CallStatus.HELD and call.kind is not None:
        state.spent.per_tool[call.tool] -= 1
    call.detail = body.moved_by
    close(state, body.call, CallStatus.FENCED)


def _held(state: RunState, event: e.Event, body: e.CallHeld) -> None:
    call = state.calls[body.call]
    if call.status is not CallStatus.HELD and body.tool_kind is not None:
        _count_dispatch(state, body.tool)
    call.status, call.held, call.waits_for = CallStatus.HELD, body.reason, body.waits_for
    call.kind, call.args, call.detail = body.tool_kind, body.args, body.detail


def _count_dispatch(state: RunState, tool: str) -> None:
    state.spent.per_tool[tool] = state.spent.per_tool.get(tool, 0) + 1


def _approval_requested(state: RunState, event: e.Event, body: e.ApprovalRequested) -> None:
    call = state.calls[body.call]
    before = call.approval
    call.approval = ApprovalState(
        body.digest, body.requirements, body.shown, body.shown_digest, event.recorded_at
    )
    if before is not None and before.digest == body.digest:
        call.approval.given = still_given(before, body.requirements)
        call.waits_for = call.approval.missing()


def still_given(
    before: ApprovalState, needs: tuple[e.Requirement, ...]
) -> list[tuple[Actor, frozenset[str]]]:
    """Who said yes to the same call, and to which of the rules that ask now: those that ask no more of a person."""
    given = []
    for actor, rules in before.given:
        known = [asked for asked in before.requirements if asked.rule in rules]
        counts = frozenset(need.rule for need in needs if any(_as_eligible(asked, need) for asked in known))
        if counts:
            given.append((actor, counts))
    return given


def _as_eligible(asked: e.Requirement, need: e.Requirement) -> bool:
    """Whoever was eligible for `asked` is so for `need`: the same rule in any version, asking no more of a person."""
    return (
        asked.rule.partition(" ")[0] == need.rule.partition(" ")[0]
        and bool(asked.roles) >= bool(need.roles)
        and (not need.roles or set(asked.roles) <= set(need.roles))
        and asked.same_principal >= need.same_principal
        and asked.not_requester >= need.not_requester
        and asked.signed >= need.signed
        and asked.endorse == need.endorse
    )


def _approval_given(state: RunState, event: e.Event, body: e.ApprovalGiven) -> None:
    call = state.calls[body.call]
    if call.approval is None or call.approval.decided:
        return
    if body.amendment is not None:
        amend(state, call, event.actor, body)
    call.approval.given.append((event.actor, frozenset(body.satisfies)))
    vouch(call.approval, event.actor, body)
    call.waits_for = call.approval.missing()
    if not call.waits_for:
        call.approval.decided = "approved"
        call.approved_by = ", ".join(dict.fromkeys(actor.id for actor, _ in call.approval.given))


def _approval_refused(state: RunState, event: e.Event, body: e.ApprovalRefused) -> None:
    """A refusal wins over an approval as long as the call has not started."""
    call = state.calls[body.call]
    if call.approval is not None and call.status is CallStatus.HELD:
        call.approval.decided = "refused"
        call.approval.because = f"refused by {event.actor.id}: {body.because}".rstrip(": ")


def _approval_expired(state: RunState, event: e.Event, body: e.ApprovalExpired) -> None:
    approval = state.calls[body.call].approval
    if approval is not None and not approval.decided:
        said = ", ".join(dict.fromkeys(actor.id for actor, _ in approval.given))
        late = f"{said} said yes, nobody else in time" if said else "nobody decided in time"
        approval.decided, approval.because = "expired", f"expired: {late}"


def _execution_started(state: RunState, event: e.Event, body: e.ExecutionStarted) -> None:
    call = state.calls.get(body.call)
    if call is None:  # a call of the Host
        call = CallState(body.call, body.tool, body.tool_kind, CallStatus.STARTED, None, event.seq)
        state.calls[body.call] = call
        state.host_calls = max(state.host_calls, body.call.ordinal)
    elif call.status is not CallStatus.HELD and not call.attempts:
        _count_dispatch(state, body.tool)
    if call.receipt is not None:
        _reopen(state, call, call.receipt)
    state.open_calls[body.call] = None
    call.status, call.kind, call.attempts = CallStatus.STARTED, body.tool_kind, body.attempt
    call.args, call.args_digest = body.args, body.args_digest
    call.started_at = call.started_at or event.recorded_at
    call.sent_at, call.started_seq = event.recorded_at, event.seq
    call.idempotency_key, call.source, call.host = body.idempotency_key, body.source, body.host
    call.effects, call.reversible, call.edges = body.effects, body.reversible, body.edges
    call.approved_by = body.approved_by
    call.holds, call.hold_ttl, call.consumed_by = body.holds, body.hold_ttl, body.consumed_by
    call.untrusted, call.labels = body.untrusted, body.labels
    call.grants, call.cache_key, call.standing = body.grants, body.cache_key, body.standing
    call.outdated_by = body.outdated_by
    fold_unsettled.sent(state, call)
    if body.hold_ttl is not None:
        call.hold_ends = event.recorded_at + timedelta(seconds=body.hold_ttl)
    if body.host is not None and body.host.slice is not None:
        state.refreshed[body.host.slice] = event.recorded_at
    if body.host is not None and body.host.subject is not None:
        _for_subject(state, state.calls[body.host.subject], body.call, body.host)
    if body.host is None:
        past = history(state, body.tool)
        past.open[body.call] = body.args
        past.changes += 1
        if body.attempt == 1:
            _count_permits(state, body)


def _reopen(state: RunState, call: CallState, before: ReceiptState) -> None:
    """Sent once more: the receipt so far was not the last word, and the model has not seen it."""
    call.receipt = None
    state.unknown_calls.pop(call.id, None)
    fold_unsettled.forget_probes(state, call.tool)
    state.outcomes[before.outcome.value] -= 1
    if call.host is None:
        history(state, call.tool).counts[before.outcome.value] -= 1


def _count_permits(state: RunState, body: e.ExecutionStarted) -> None:
    """Once per call, however often it is sent."""
    if body.approved_by and body.approved_by.startswith("rule "):
        for name in (body.approved_by.split(" ", 2)[1], unattended_tool(body.tool)):
            state.spent.unattended[name] = state.spent.unattended.get(name, 0) + 1
    for grant in body.grants:
        _use_grant(state, grant)
    for standing in body.standing:
        use_standing(state, standing)


def _for_subject(state: RunState, subject: CallState, call: CallId, host: e.HostPurpose) -> None:
    if host.purpose == "compensation":
        subject.compensation = call
        fold_unsettled.undo_no_more(state, subject)
        state.undoing.setdefault(state.calls[call].tool, {})[call] = None
    elif host.purpose == "refresh" and host.slice is not None:
        subject.refreshed[host.slice] = call
    elif host.purpose == "probe":
        subject.probes += 1
        fold_unsettled.forget_probes(state, subject.tool)


def _use_grant(state: RunState, grant: str) -> None:
    used = state.grants.get(grant)
    if used is not None and used.calls_left is not None:
        used.calls_left -= 1


def history(state: RunState, tool: str) -> ToolHistory:
    found = state.history.get(tool)
    if found is None:
        found = state.history[tool] = ToolHistory()
    return found


def _receipt_recorded(state: RunState, event: e.Event, body: e.ReceiptRecorded) -> None:
    call = state.calls[body.call]
    before = call.receipt
    if body.cached_from is not None:
        _answered_from_cache(state, call, body)
    if before is None:
        executed_now = body.outcome is not Outcome.NOT_EXECUTED or call.attempts > 0
        if executed_now and call.host is None:
            executed(state, body.call)
        close(state, body.call, CallStatus.SETTLED)
    else:
        _settle_late(state, event, call, before)
    handles = fold_evidence.evidence_brought(state, event, call, body)
    call.receipt = ReceiptState(
        body.outcome, body.settled_by, event.recorded_at, body.detail, _result(state, body), handles,
        body.cached_from, body.obtained_at, body.late, body.denial,
    )  # fmt: skip
    call.fields = body.fields or call.fields
    _count_outcome(state, call, body, event.seq)
    if call.host is None:
        _remember(state, event, call, body)
    elif call.kind is not Kind.READ and body.outcome in (Outcome.CONFIRMED, Outcome.UNKNOWN):
        fold_evidence.written(state, event, call)
    elif body.outcome is Outcome.CONFIRMED:  # a refresh: the model is shown what it brought as app state
        _entered(state, call)
    _hold(state, call, body)


def _entered(state: RunState, call: CallState) -> None:
    """What it brought enters the model's context."""
    state.read_untrusted = state.read_untrusted or call.untrusted
    state.labels.update(call.labels)


def _result(state: RunState, body: e.ReceiptRecorded) -> e.StoredResult | None:
    if body.cached_from is None:
        return body.result
    first = state.calls[body.cached_from].receipt
    return first.result if first else None


def _answered_from_cache(state: RunState, call: CallState, body: e.ReceiptRecorded) -> None:
    """A hit is a call of its own whose answer was obtained by another one."""
    assert body.cached_from is not None
    first = state.calls[body.cached_from]
    call.kind, call.args, call.args_digest = Kind.READ, body.args, first.args_digest
    call.source, call.untrusted, call.labels = first.source, first.untrusted, first.labels
    call.fields, call.edges, call.outdated_by = first.fields, body.edges, first.outdated_by


def _settle_late(state: RunState, event: e.Event, call: CallState, before: ReceiptState) -> None:
    state.unknown_calls.pop(call.id, None)
    concluded(state, call.id)
    if call.proposal is not None and _was_shown(state, call):
        call.told = call.told or before
        state.notices.append(Notice(event.seq, (call.id,), "settled"))
    counts = history(state, call.tool).counts if call.host is None else {}
    if before.outcome.value in counts:
        counts[before.outcome.value] -= 1
    state.outcomes[before.outcome.value] = state.outcomes.get(before.outcome.value, 1) - 1


def _was_shown(state: RunState, call: CallState) -> bool:
    """The model was asked again since the call got its first receipt."""
    return call.id.turn < len(state.turns) or state.attempts > 0


def _count_outcome(state: RunState, call: CallState, body: e.ReceiptRecorded, seq: int) -> None:
    state.outcomes[body.outcome.value] = state.outcomes.get(body.outcome.value, 0) + 1
    if body.outcome is Outcome.UNKNOWN:
        state.unknown_calls[call.id] = None
        fold_unsettled.probe_next(state, call, seq)
    else:
        fold_unsettled.settled(state, call)
    if call.host is not None and _needs_conclusion(state, call.host, body.outcome):
        state.unjudged[call.id] = None
    if call.host is not None and call.host.purpose == "compensation":
        _undone(state, call, call.host, body.outcome)


def _undone(state: RunState, call: CallState, host: e.HostPurpose, outcome: Outcome) -> None:
    """What failed stays as it is; what may still be tried or found out is kept in view."""
    if outcome in (Outcome.CONFIRMED, Outcome.FAILED):
        state.undoing.get(call.tool, {}).pop(call.id, None)
    subject = state.calls.get(host.subject) if host.subject is not None else None
    if subject is not None and outcome is Outcome.CONFIRMED:
        subject.compensated_by = call.id
        _close_hold(state, subject.id)


def _needs_conclusion(state: RunState, host: e.HostPurpose, outcome: Outcome) -> bool:
    """A probe of a call that somebody else has settled meanwhile concludes nothing."""
    if host.purpose == "probe":
        return host.subject in state.unknown_calls
    return host.purpose == "refresh" and outcome is Outcome.CONFIRMED


def _remember(state: RunState, event: e.Event, call: CallState, body: e.ReceiptRecorded) -> None:
    past = history(state, call.tool)
    if call.kind is not Kind.READ and body.outcome in (Outcome.CONFIRMED, Outcome.UNKNOWN):
        fold_evidence.invalidate(state, event, call)
    if body.outcome is not Outcome.UNKNOWN:
        past.open.pop(call.id, None)
    past.counts[body.outcome.value] = past.counts.get(body.outcome.value, 0) + 1
    past.changes += 1
    if body.outcome is Outcome.CONFIRMED or (body.settled_by == "tool" and body.detail):
        _entered(state, call)
        state.answers.append(call.id)
    if body.outcome is not Outcome.CONFIRMED:
        return
    past.confirmed.append(PastCall(call.args or {}, body.fields, event.recorded_at))
    if call.kind is Kind.READ:
        fold_evidence.read_confirmed(state, event, call)
    else:
        fold_unsettled.may_undo(state, call)


def _hold(state: RunState, call: CallState, body: e.ReceiptRecorded) -> None:
    if body.outcome is not Outcome.CONFIRMED:
        return
    if call.holds:
        state.open_holds[call.id] = None
        if call.hold_ends is not None:
            heappush(state.hold_ends, (call.hold_ends, call.id))
        if call.consumed_by is not None:
            state.consumers.setdefault(call.consumed_by, {})[call.id] = None
    for effect in call.effects:
        for other in state.consumers.pop(effect, ()):
            _close_hold(state, other)


def _close_hold(state: RunState, call: CallId) -> None:
    state.open_holds.pop(call, None)
    fold_unsettled.undo_no_more(state, state.calls[call])
    while state.hold_ends and state.hold_ends[0][1] not in state.open_holds:
        heappop(state.hold_ends)


def _reconcile_tried(state: RunState, event: e.Event, body: e.ReconcileTried) -> None:
    call = state.calls[body.call]
    call.next_probe = body.next_at
    fold_unsettled.probe_next(state, call, event.seq)
    concluded(state, body.call)


def _hold_lapsed(state: RunState, event: e.Event, body: e.HoldLapsed) -> None:
    _close_hold(state, body.call)
    state.lapsed_holds.append(body.call)


def _capability_requested(state: RunState, event: e.Event, body: e.CapabilityRequested) -> None:
    call = state.calls[body.call]
    call.args = {"capability": body.capability, **body.params}


def _question_asked(state: RunState, event: e.Event, body: e.QuestionAsked) -> None:
    call = state.calls[body.call]
    call.status, call.held, call.args = CallStatus.HELD, "question", {"question": body.question}
    state.asked = body.call
    state.spent.questions += 1
    executed(state, body.call)


CHANGES: dict[type[e.Body], Callable[[RunState, e.Event, Any], None]] = {
    e.CallRejected: _rejected,
    e.CallFenced: _fenced,
    e.CallHeld: _held,
    e.ApprovalRequested: _approval_requested,
    e.ApprovalGiven: _approval_given,
    e.ApprovalRefused: _approval_refused,
    e.ApprovalExpired: _approval_expired,
    e.ExecutionStarted: _execution_started,
    e.ReceiptRecorded: _receipt_recorded,
    e.ReconcileTried: _reconcile_tried,
    e.HoldLapsed: _hold_lapsed,
    e.CapabilityRequested: _capability_requested,
    e.QuestionAsked: _question_asked,
}
