"""Owns what people decide about stored calls: recorded with who, on what, and whether they were eligible.

An approval fits one stored call, by digest. Who may not decide changes nothing, and the attempt is recorded.
Where decisions disagree: a refusal before an approval, an approval before a standing one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from engine.domain import events as e
from engine.domain.actors import Actor
from engine.domain.calls import CallStatus, Outcome
from engine.domain.canonical import JsonObject
from engine.domain.errors import Refused, UsageError
from engine.domain.ids import CallId, RunId
from engine.domain.state import ApprovalState, CallState, RunState
from engine.lifecycle.acts import capability_of
from engine.lifecycle.recover import undecided_too_long
from engine.lifecycle.standing import lasting, may_stand
from engine.policy import eligibility
from engine.policy.amendment import amended, amendment, not_declared
from engine.ports import Clock, EventStore, Secrets
from engine.runtime.attempts import no_such_call, record_attempt
from engine.runtime.journal import Journal
from engine.runtime.library import PolicyLibrary


@dataclass(frozen=True, slots=True)
class Approval:
    """The details of a yes, as far as the policy lets an approver give them."""

    digest: str | None = None
    """What the reviewer saw; None: whatever is stored now."""
    edits: JsonObject | None = None
    """Argument -> the value that it shall have."""
    endorses: tuple[str, ...] = ()
    """Arguments whose values this person vouches for, in later calls of the tool too."""
    standing: bool = False
    """The yes covers later calls of the tool with the same arguments."""
    because: str = ""


def approve(
    store: EventStore,
    clock: Clock,
    library: PolicyLibrary,
    run: RunId,
    call: CallId | str,
    by: Actor,
    decision: Approval,
    *,
    secrets: Secrets | None = None,
) -> RunState:
    """Records one person's yes. Raises Refused (with the attempt recorded), UsageError for an unknown call or
    for edits that do not fit the tool."""
    journal = Journal(store, run, clock, secrets=secrets)
    journal.load()
    while True:
        state = journal.state
        held = _held(journal, state, call, by, "approve")
        assert held.approval is not None
        if undecided_too_long(held, clock.now()):
            # a fact from now on: a clock that is set back does not bring the request to life again
            journal.stage(e.ApprovalExpired(call=held.id), fact=True)
            _decline(journal, call, by, "approve", "expired")
        eligible = eligible_rules(state, held.approval, by, clock)
        objection = _objection(state, held.approval, eligible, by, decision, clock)
        if objection:
            _decline(journal, call, by, "approve", objection)
        journal.say(
            e.ApprovalGiven(
                call=held.id,
                digest=held.approval.digest,
                shown_digest=held.approval.shown_digest,
                satisfies=eligible,
                edits=decision.edits,
                amendment=_amendment(library, state, held, by, decision.edits or {}),
                endorses=tuple(path.removeprefix("args.") for path in decision.endorses),
                standing=decision.standing,
                because=decision.because,
            ),
            by,
        )
        for body in list(lasting(journal.state, journal.state.calls[held.id], clock.now())):
            journal.stage(body, actor=by)
        if journal.flush():
            return journal.state


def _objection(
    state: RunState,
    approval: ApprovalState,
    eligible: Sequence[str],
    by: Actor,
    decision: Approval,
    clock: Clock,
) -> str | None:
    """Why this yes does not count, the person first, then what it asks for."""
    needs = approval.requirements
    if not eligible:
        return eligibility.why_not(state.principal, needs, by, clock.now())
    if decision.digest is not None and decision.digest != approval.digest:
        return "the stored call is another one than was shown"
    fixed = not_declared(needs, eligible, [*(decision.edits or {})], "edit")
    if fixed:
        return f"no rule lets an approver edit {_quoted(fixed)}"
    names = [path.removeprefix("args.") for path in decision.endorses]
    plain = not_declared(needs, eligible, names, "endorse")
    if plain:
        return f"no rule lets an approver endorse {_quoted(plain)}"
    if decision.standing and not any(may_stand(need) for need in needs if need.rule in eligible):
        return "no rule lets an approval stand for later calls"
    return None


def _amendment(
    library: PolicyLibrary, state: RunState, held: CallState, by: Actor, edits: JsonObject
) -> e.Amendment | None:
    """The call as edited; None where nothing changes. Raises UsageError for a value that does not fit."""
    if not edits:
        return None
    policy = library.policy(state.bundle)
    spec = policy.tools.get(held.tool)
    if spec is None or held.approval is None:
        raise UsageError(f"the arguments of `{held.tool}` cannot be edited", remedy="approve or refuse it")
    args = amended(spec, held.args or {}, edits)
    if isinstance(args, str):
        raise UsageError(
            f"the edit does not fit: {args}", remedy="give values as the tool spec declares them"
        )
    if args == held.args:
        return None
    shown = held.approval.shown
    return amendment(spec, state.principal, policy.digest, args, shown, edits, by.id)


def refuse(
    store: EventStore,
    clock: Clock,
    run: RunId,
    call: CallId | str,
    by: Actor,
    because: str,
    *,
    secrets: Secrets | None = None,
) -> RunState:
    """Records a no; the call is not executed, whatever approvals it has. Said twice, it is the same no.

    A call that nobody was asked about can be refused too, until it starts. Raises Refused, and UsageError for an
    unknown call.
    """
    journal = Journal(store, run, clock, secrets=secrets)
    journal.load()
    while True:
        state = journal.state
        if _refused_before(state, call):
            return state
        held = _held(journal, state, call, by, "refuse")
        if not eligibility.may_refuse(state.principal, _roles(state, held), by):
            _decline(journal, call, by, "refuse", "none of the roles that may decide it")
        journal.say(e.ApprovalRefused(call=held.id, because=because), by)
        for body in _refused(held, f"refused by {by.id}: {because}".rstrip(": ")):
            journal.stage(body)
        if journal.flush():
            return journal.state


def _refused(call: CallState, because: str) -> list[e.Body]:
    """What follows at once: the call is known not to be executed."""
    if call.held == "capability":
        return [e.CapabilityDenied(call=call.id, capability=capability_of(call), because=because)]
    return [
        e.ReceiptRecorded(
            call=call.id,
            tool=call.tool,
            outcome=Outcome.NOT_EXECUTED,
            settled_by="host",
            detail=because,
            denial="refused",
        )
    ]


def _refused_before(state: RunState, call: CallId | str) -> bool:
    found = _named(state, call)
    if found is None:
        return False
    asked = found.approval is not None and found.approval.decided == "refused"
    return asked or (found.receipt is not None and found.receipt.denial == "refused")


def _roles(state: RunState, call: CallState) -> set[str]:
    """Roles that may refuse it: of its approvers, or of those whose standing approval might cover it."""
    if call.approval is not None:
        return {role for need in call.approval.requirements for role in need.roles}
    stands = (each for each in state.standing.values() if each.tool == call.tool and not each.ended)
    return {role for each in stands for role in each.roles}


def eligible_rules(state: RunState, approval: ApprovalState, by: Actor, clock: Clock) -> tuple[str, ...]:
    """The rules for which this person's yes counts now."""
    return eligibility.eligible(state.principal, approval.requirements, by, clock.now())


def _named(state: RunState, call: CallId | str) -> CallState | None:
    named = call if isinstance(call, CallId) else CallId.parse(call)
    return state.calls.get(named) if named else None


def _held(
    journal: Journal, state: RunState, call: CallId | str, by: Actor, decision: e.DecisionWord
) -> CallState:
    """The call that is meant. Decisions about calls that do not wait for them are recorded and refused.

    Raises UsageError for a call that the Run does not have.
    """
    found = _named(state, call)
    if found is None:
        raise no_such_call(journal, state, call, by, decision)
    if state.ending is not None or state.cancel_requested is not None:
        _decline(journal, call, by, decision, f"run {state.ending[0] if state.ending else 'cancelled'}")
    if not found.open or not _undecided(found, decision):
        _decline(journal, call, by, decision, _state_of(found))
    return found


def _undecided(call: CallState, decision: e.DecisionWord) -> bool:
    """Open for this decision: a no also reaches a call that nobody was asked about, or that was approved."""
    if decision == "refuse":
        return call.status in (CallStatus.HELD, CallStatus.PROPOSED) and call.host is None
    return call.approval is not None and not call.approval.decided


def _state_of(call: CallState) -> str:
    if call.approval is not None:
        return f"it was {call.approval.decided or 'settled'} already"
    if call.status is CallStatus.STARTED or call.receipt is not None:
        return "it was not asked about, and has started"
    return "it does not wait for an approval"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _decline(journal: Journal, call: CallId | str, by: Actor, decision: e.DecisionWord, why: str) -> NoReturn:
    """Records the attempt, then raises Refused."""
    record_attempt(journal, call, by, decision, why)
    raise Refused(
        f"call {call} cannot be {decision}d by `{by.id}`: {why}", remedy="`agentctl approvals` says who may"
    )
