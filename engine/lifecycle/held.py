"""Owns held calls: what each waits for, and what is done when the wait is over."""

from __future__ import annotations

from engine.domain import events as e
from engine.domain.calls import Outcome
from engine.domain.ids import CallId
from engine.domain.policy import Kind
from engine.domain.state import ApprovalState, CallState, StandingState, TurnState
from engine.lifecycle.acts import (
    capability_of,
    decided_against,
    execute,
    held_behind_twin,
    hold,
    not_executed,
)
from engine.lifecycle.builtins import ask_people, finish, grant, publish_approved
from engine.lifecycle.fold_calls import still_given
from engine.lifecycle.present import Present
from engine.lifecycle.standing import approved_by, covering
from engine.lifecycle.steps import Record, Step
from engine.policy import budgets
from engine.policy.admission import readmit
from engine.policy.binding import requirements_of
from engine.policy.builtin import ASK_USER
from engine.policy.capabilities import capability_decision
from engine.policy.contract import source_shut
from engine.policy.host_tools import admit_builtin
from engine.policy.verdicts import Builtin, Hold, Reject, Run


def continue_held(present: Present, turn: TurnState, call: CallState, *, blocked: bool) -> Step | None:
    """What to do about a held call now; None while it waits."""
    match call.held:
        case "approval":
            return _approved(present, turn, call, blocked=blocked)
        case "capability":
            return _capability(present, call)
        case "publication":
            return _publication(present, call)
        case "queued" if call.tool == ASK_USER:
            return None if blocked else _question(present, call)
        case "queued":
            return None if blocked else _decide_again(present, turn, call)
        case "equal_key":
            return _behind_twin(present, turn, call, blocked=blocked)
        case "unknown_effects":
            return _finish(present, call)
        case _:
            return None


def _approved(present: Present, turn: TurnState, call: CallState, *, blocked: bool) -> Step | None:
    approval = call.approval
    assert approval is not None
    if not approval.decided:
        return None
    if approval.decided != "approved":
        return Record((decided_against(call),))
    return None if blocked else _decide_again(present, turn, call)


def _decide_again(present: Present, turn: TurnState, call: CallState) -> Step:
    """Under the facts of now: a stricter decision, or state that is not fresh, wins over the approval."""
    spec = present.policy.tools[call.tool]
    args = dict(call.args or {})
    shut = source_shut(present.policies, spec, present.facts[0])
    if shut is not None:
        return Record((not_executed(call, f"source {spec.source} is {shut}"),))
    verdict = readmit(present.policies, present.state, spec, call.id, args, present.facts)
    match verdict:
        case Reject():
            return Record((not_executed(call, verdict.refusal.message),))
        case Hold():
            return _needs_people(present, turn, call, verdict)
        case Run():
            return _dispatch(present, turn, call, verdict)
        case _:
            raise AssertionError(f"a held call was judged {verdict!r}")


def _needs_people(present: Present, turn: TurnState, call: CallState, verdict: Hold) -> Step:
    """It runs if every rule that asks now is satisfied by who has said yes; else it waits for the rest."""
    if approved(call, verdict):
        late = _too_late(present, call, verdict.requirements)
        return late if late is not None else _dispatch(present, turn, call, verdict)
    standing = covering(present.state, verdict, present.now)
    if standing:
        return by_standing(present, turn, call, verdict, standing)
    return Record(tuple(hold(present.state, call, verdict)))


def by_standing(
    present: Present, turn: TurnState, call: CallState, verdict: Hold, standing: tuple[StandingState, ...]
) -> Step:
    """Dispatched without asking anybody: people said yes to calls like this one before."""
    twin = held_behind_twin(present.state, call, verdict)
    used = tuple(each.id for each in standing)
    return Record(twin) if twin else execute(present, turn, call, verdict, approved_by(standing), used)


def approved(call: CallState, verdict: Hold) -> bool:
    """Whoever said yes was as eligible, and as many, as every rule asks now."""
    if call.approval is None or call.approval.digest != verdict.digest:
        return False
    return _satisfied(call.approval, verdict.requirements)


def _satisfied(approval: ApprovalState, needs: tuple[e.Requirement, ...]) -> bool:
    given = still_given(approval, needs)
    return all(
        len({actor.id for actor, rules in given if need.rule in rules}) >= need.quorum for need in needs
    )


def _too_late(present: Present, call: CallState, needs: tuple[e.Requirement, ...]) -> Step | None:
    """A yes lasts as long as its request: one that nobody used by then is no yes any more."""
    if not _lapsed(present, call, needs):
        return None
    return Record((not_executed(call, "the approval expired before the call was sent", "expired"),))


def _lapsed(present: Present, call: CallState, needs: tuple[e.Requirement, ...]) -> bool:
    """By what was asked then, or by what the rules of now, `needs`, would give it from then on."""
    approval, now = call.approval, present.now
    assert approval is not None
    if any(now > need.expires_at for need in approval.requirements):
        return True
    return any(now - approval.requested_at > need.expires_at - now for need in needs)


def _dispatch(present: Present, turn: TurnState, call: CallState, verdict: Run | Hold) -> Step:
    twin = held_behind_twin(present.state, call, verdict)
    return Record(twin) if twin else execute(present, turn, call, verdict, _approver(call))


def _approver(call: CallState) -> str | None:
    if call.approval is None:
        return None
    return ", ".join(dict.fromkeys(actor.id for actor, _ in call.approval.given))


def _behind_twin(present: Present, turn: TurnState, call: CallState, *, blocked: bool) -> Step | None:
    """The first call with the same key decides: confirmed, and this one is not executed; else it is decided again."""
    twin = CallId.parse(call.detail)
    first = present.state.calls.get(twin) if twin is not None else None
    if first is None or first.receipt is None or first.receipt.outcome is Outcome.UNKNOWN:
        return None
    if first.receipt.outcome is Outcome.CONFIRMED:
        return Record((not_executed(call, f"the same operation was confirmed as call {first.id}"),))
    return None if blocked else _decide_again(present, turn, call)


def _capability(present: Present, call: CallState) -> Step | None:
    approval = call.approval
    if approval is None or not approval.decided:
        return None
    name = capability_of(call)
    if approval.decided != "approved":
        return Record((e.CapabilityDenied(call=call.id, capability=name, because=approval.because),))
    params = {key: value for key, value in (call.args or {}).items() if key not in ("capability", "reason")}
    again = capability_decision(present.policies, name, params, present.facts)
    if again.refusal is not None:
        return Record((e.CapabilityDenied(call=call.id, capability=name, because=again.refusal.message),))
    needs = requirements_of(again.needs, present.now)
    if not _satisfied(approval, needs):
        return Record(ask_people(present, call, call.args or {}, again.needs))
    if _lapsed(present, call, needs):
        late = "the approval expired before the grant was made"
        return Record((e.CapabilityDenied(call=call.id, capability=name, because=late),))
    return Record((grant(present, call, name, params, _approver(call) or ""),))


def _publication(present: Present, call: CallState) -> Step | None:
    approval = call.approval
    if approval is None or not approval.decided:
        return None
    if approval.decided != "approved":
        return Record((decided_against(call),))
    assert call.proposal is not None
    verdict = admit_builtin(present.policies, present.state, call.proposal, present.facts, present.secrets)
    if isinstance(verdict, Reject):
        return Record((not_executed(call, verdict.refusal.message),))
    assert isinstance(verdict, Builtin)
    if verdict.needs is not None and not approved(call, verdict.needs):
        return Record(tuple(hold(present.state, call, verdict.needs)))
    needs = verdict.needs.requirements if verdict.needs is not None else ()
    return _too_late(present, call, needs) or Record(publish_approved(present, call))


def _question(present: Present, call: CallState) -> Step:
    """It waited behind a held call; by now the questions may be used up."""
    cap = budgets.of(present.policies).questions_to_user
    if cap is None or present.state.spent.questions >= cap:
        return Record((not_executed(call, "budget questions_to_user is used up"),))
    return Record((e.QuestionAsked(call=call.id, question=str((call.args or {})["question"])),))


def _finish(present: Present, call: CallState) -> Step | None:
    """Asked again once every effect is known."""
    if any(_has_effect(present, unknown) for unknown in present.state.unknown_calls):
        return None
    return Record(finish(present, call))


def _has_effect(present: Present, call: CallId) -> bool:
    return present.state.calls[call].kind is not Kind.READ
