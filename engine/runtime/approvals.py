"""Owns what people decide about held calls: recorded with who, on what, and whether they were eligible.

An approval fits one stored call, by digest. Who may not decide changes nothing, and the attempt is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.domain import events as e
from engine.domain.actors import Actor
from engine.domain.calls import CallStatus, Outcome
from engine.domain.canonical import JsonObject, clean_text
from engine.domain.errors import Refused, UsageError
from engine.domain.ids import CallId, RunId
from engine.domain.state import ApprovalState, CallState, RunState
from engine.lifecycle.acts import capability_of
from engine.ports import Clock, EventStore
from engine.runtime.journal import Journal


@dataclass(frozen=True, slots=True)
class Approval:
    """The details of a yes. `edits` replace arguments that the policy lets an approver edit."""

    digest: str | None = None
    """What the reviewer saw; None: whatever is stored now."""
    edits: JsonObject | None = None
    endorses: tuple[str, ...] = ()
    standing: bool = False
    because: str = ""


def approve(
    store: EventStore,
    clock: Clock,
    run: RunId,
    call: CallId | str,
    by: Actor,
    decision: Approval,
) -> RunState:
    """Records one person's yes. Raises Refused (with the attempt recorded) or UsageError for an unknown call."""
    journal = Journal(store, run, clock)
    while True:
        state = journal.load()
        held = _held(journal, state, call, by, "approve")
        assert held.approval is not None
        eligible = eligible_rules(state, held.approval, by, clock)
        if not eligible:
            _decline(journal, call, by, "approve", _why_not(state, held.approval, by, clock))
        if decision.digest is not None and decision.digest != held.approval.digest:
            _decline(journal, call, by, "approve", "the stored call is another one than was shown")
        fixed = _not_editable(held.approval, eligible, decision.edits or {})
        if fixed:
            _decline(journal, call, by, "approve", f"no rule lets an approver edit {', '.join(fixed)}")
        journal.say(
            e.ApprovalGiven(
                call=held.id,
                digest=held.approval.digest,
                shown_digest=held.approval.shown_digest,
                satisfies=eligible,
                edits=decision.edits,
                endorses=decision.endorses,
                standing=decision.standing,
                because=decision.because,
            ),
            by,
        )
        if journal.flush():
            return journal.state


def refuse(
    store: EventStore, clock: Clock, run: RunId, call: CallId | str, by: Actor, because: str
) -> RunState:
    """Records a no; the call is not executed, even if others approved it. Said twice, it is the same no.

    Raises Refused or UsageError.
    """
    journal = Journal(store, run, clock)
    while True:
        state = journal.load()
        if _refused_before(state, call):
            return state
        held = _held(journal, state, call, by, "refuse")
        assert held.approval is not None
        if not may_refuse(state, held.approval, by):
            _decline(journal, call, by, "refuse", "none of the roles that may decide it")
        journal.say(e.ApprovalRefused(call=held.id, because=because), by)
        for body in refused(journal.state.calls[held.id]):
            journal.stage(body)
        if journal.flush():
            return journal.state


def refused(call: CallState) -> Sequence[e.Body]:
    """What follows at once from a refusal or an expiry: the call is known not to be executed."""
    because = call.approval.because if call.approval else ""
    if call.held == "capability":
        return [e.CapabilityDenied(call=call.id, capability=capability_of(call), because=because)]
    return [
        e.ReceiptRecorded(
            call=call.id, tool=call.tool, outcome=Outcome.NOT_EXECUTED, settled_by="host", detail=because
        )
    ]


def _refused_before(state: RunState, call: CallId | str) -> bool:
    named = call if isinstance(call, CallId) else CallId.parse(call)
    found = state.calls.get(named) if named else None
    return found is not None and found.approval is not None and found.approval.decided == "refused"


def _not_editable(approval: ApprovalState, eligible: Sequence[str], edits: JsonObject) -> list[str]:
    """Arguments that none of the rules under which this person decides lets an approver edit."""
    allowed = {
        name.removeprefix("args.")
        for need in approval.requirements
        if need.rule in eligible
        for name in need.edit
    }
    return [f"`{name}`" for name in edits if name not in allowed]


def eligible_rules(state: RunState, approval: ApprovalState, by: Actor, clock: Clock) -> tuple[str, ...]:
    """The rules for which this person's yes counts now."""
    return tuple(
        need.rule
        for need in approval.requirements
        if _objection(state, need, by) is None and clock.now() <= need.expires_at
    )


def may_refuse(state: RunState, approval: ApprovalState, by: Actor) -> bool:
    """Whoever may approve may refuse, and so may the person for whom the Run works."""
    if state.principal is not None and by.id == state.principal.id:
        return True
    return any(set(need.roles) & set(by.roles) for need in approval.requirements)


def _objection(state: RunState, need: e.Requirement, by: Actor) -> str | None:
    requester = state.principal.id if state.principal else ""
    if not by.id:
        return "no identity"
    if need.roles and not set(need.roles) & set(by.roles):
        return f"needs role {' or '.join(need.roles)}"
    if need.same_principal and by.id != requester:
        return f"only `{requester}` may"
    if need.not_requester and by.id == requester:
        return "the requester may not approve it"
    if need.signed and by.issuer in ("", "local"):
        return "needs a signed identity"
    return None


def _why_not(state: RunState, approval: ApprovalState, by: Actor, clock: Clock) -> str:
    if all(clock.now() > need.expires_at for need in approval.requirements):
        return "expired"
    objections = [_objection(state, need, by) for need in approval.requirements]
    return "not eligible: " + "; ".join(dict.fromkeys(said for said in objections if said))


def _held(
    journal: Journal, state: RunState, call: CallId | str, by: Actor, decision: e.DecisionWord
) -> CallState:
    """The held call that is meant. Decisions about calls that do not wait are recorded and refused."""
    named = call if isinstance(call, CallId) else CallId.parse(call)
    found = state.calls.get(named) if named else None
    if found is None:
        _decline(journal, call, by, decision, "no such call")
        raise UsageError(f"Run `{state.run}` has no call `{call}`", remedy="`agentctl approvals` lists them")
    if state.ending is not None or state.cancel_requested is not None:
        _decline(journal, call, by, decision, f"run {state.ending[0] if state.ending else 'cancelled'}")
    if found.approval is None or not found.open or not _undecided(found, decision):
        _decline(journal, call, by, decision, _state_of(found))
    return found


def _undecided(call: CallState, decision: e.DecisionWord) -> bool:
    """Open for this decision: a no also reaches a call that was approved and has not started."""
    assert call.approval is not None
    if decision == "refuse" and call.approval.decided == "approved":
        return call.status is CallStatus.HELD
    return not call.approval.decided


def _state_of(call: CallState) -> str:
    if call.approval is None:
        return "it does not wait for an approval"
    return f"it was {call.approval.decided or 'settled'} already"


def _decline(journal: Journal, call: CallId | str, by: Actor, decision: e.DecisionWord, why: str) -> None:
    """Records the attempt, then raises Refused."""
    while True:
        named = clean_text(str(call)[:100])[0]
        journal.say(e.DecisionNotEligible(call=named, decision=decision, because=why), by)
        if journal.flush():
            break
    raise Refused(
        f"call {call} cannot be {decision}d by `{by.id}`: {why}", remedy="`agentctl approvals` says who may"
    )
