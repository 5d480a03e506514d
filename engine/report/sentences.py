"""Owns the one sentence that says what an event means: for the timeline, and for the progress of a Run."""

from __future__ import annotations

from engine.domain import events as e
from engine.domain.diagnostics import many
from engine.domain.state import RunState
from engine.report.words import arguments, handles, moment, one_line, raw_arguments


def sentence(body: e.Body, state: RunState) -> str:
    """What happened, on one line. `state` is a fold of the same Run that is at least as far."""
    said = _of_call(body, state) or _of_run(body) or _of_model(body) or _of_outside(body)
    return said or arguments(body.model_dump(mode="json", exclude_defaults=True))


def _of_run(body: e.Body) -> str:
    match body:
        case e.RunStarted():
            said = arguments(body.task)
            return f"{body.policy} v{body.policy_version} for {body.principal.id}, model {body.model}; {said}"
        case e.InputReceived():
            answers = f"answers {body.answers}: " if body.answers else ""
            return f"{answers}“{one_line(body.text)}”"
        case e.RunParked():
            return f"waits for {body.waiting_for}" + (f": {one_line(body.detail)}" if body.detail else "")
        case e.RunResumed():
            return "goes on"
        case e.CancelRequested():
            return "cancel asked for" + _because(body.because)
        case e.SettlingStarted():
            return f"ends as {body.ending}: {body.reason}"
        case e.Ending():
            unsettled = [
                f"{what} {', '.join(map(str, calls))}"
                for what, calls in (
                    ("unknown effects:", body.unknown_effects),
                    ("not compensated:", body.not_compensated),
                    ("lapsed as declared:", body.lapsed),
                )
                if calls
            ]
            return "; ".join(part for part in (body.reason, one_line(body.message), *unsettled) if part)
    return ""


def _of_model(body: e.Body) -> str:
    match body:
        case e.ContractCompiled():
            changes = f": {', '.join(body.changes)}" if body.changes else ""
            return f"{many(len(body.tools), 'tool')} offered, epoch {body.epoch}{changes}"
        case e.ModelAttemptStarted():
            return f"turn {body.turn}, attempt {body.attempt}, {body.model}"
        case e.ModelAttemptFailed():
            return f"turn {body.turn}, attempt {body.attempt}: {body.error}: {one_line(body.message, 300)}"
        case e.ModelTurnRecorded():
            asked = ", ".join(
                f"{body.turn}.{item.ordinal} {one_line(item.tool, 60)}" for item in body.proposals
            )
            said = f"; “{one_line(body.text, 80)}”" if body.text else ""
            return f"turn {body.turn} proposes {asked or 'no call'}{said}"
    return ""


def proposal(body: e.ModelTurnRecorded, item: e.Proposal) -> str:
    """`1.2 search_public(query: "fees")`."""
    return f"{body.turn}.{item.ordinal} {one_line(item.tool, 80)}({raw_arguments(item.arguments)})"


def _of_call(body: e.Body, state: RunState) -> str:
    match body:
        case e.CallRejected():
            by = " by gates" if body.refusal.gates else ""
            return f"{_call(body)} rejected{by}: {one_line(body.refusal.message, 400)}"
        case e.CallFenced():
            by = f" ({body.moved_by})" if body.moved_by else ""
            return f"{_call(body)} fenced: {body.reason.replace('_', ' ')}{by}"
        case e.CallHeld():
            waits = ", ".join(body.waits_for) or one_line(body.detail)
            return f"{_call(body)} held: {body.reason.replace('_', ' ')}" + (f" ({waits})" if waits else "")
        case e.ApprovalRequested():
            return f"{_named(body.call, state)} needs " + "; ".join(map(requirement, body.requirements))
        case e.ApprovalGiven():
            edits = f" as edited ({arguments(body.edits)})" if body.edits else ""
            return f"{_named(body.call, state)} approved{edits} for {', '.join(body.satisfies)}" + _because(
                body.because
            )
        case e.ApprovalRefused():
            return f"{_named(body.call, state)} refused" + _because(body.because)
        case e.ApprovalExpired():
            return f"{_named(body.call, state)}: the approval expired"
        case e.DecisionNotEligible():
            return f"{one_line(body.call)} could not be {body.decision}d: {one_line(body.because)}"
        case e.ExecutionStarted():
            return f"{_call(body)}({arguments(body.args)}) started{_host(body)}{_again(body)}"
        case e.ReceiptRecorded():
            return f"{_call(body)} {receipt(body, state)}"
        case e.ReconcileTried():
            later = f", again at {moment(body.next_at)}" if body.next_at else ""
            return f"{_named(body.call, state)}: probe {body.probe} could not tell{later}"
        case e.HoldLapsed():
            return f"{_named(body.call, state)}: its hold lapsed as declared"
        case e.QuestionAsked():
            return f"{body.call} ask_user: “{one_line(body.question, 400)}”"
        case e.CapabilityRequested():
            said = f"; “{one_line(body.reason)}”" if body.reason else ""
            return f"{body.call} requests {body.capability}({arguments(body.params)}){said}"
        case e.CapabilityDenied():
            return f"{body.call} {body.capability} denied: {one_line(body.because)}"
        case e.DraftKept():
            return f"{body.call} keeps draft {body.handle} of {body.output}: {', '.join(body.fields)}"
        case e.OutputPublished():
            counted = f"{many(len(body.citations), 'citation')}, {many(len(body.figures), 'figure')}"
            return f"{body.call} publish_{body.output} committed: {counted}"
    return ""


def _of_outside(body: e.Body) -> str:
    match body:
        case e.CapabilityGranted():
            call = f"{body.call} " if body.call else ""
            granted = (
                f"{call}{body.capability}({arguments(body.params)}) granted by {body.by} as {body.grant}"
            )
            return _limited(granted, body)
        case e.GrantExpired():
            return f"grant {body.grant} ended: {body.because}"
        case e.GrantRevoked():
            return f"grant {body.grant} revoked" + _because(body.because)
        case e.StandingGranted():
            return _limited(
                f"{body.grant}: {body.by} approves later calls of {body.tool}({arguments(body.args)}) too",
                body,
            )
        case e.StandingEnded():
            return f"standing approval {body.grant} ended: {body.because}" + _because(body.detail)
        case e.ValueEndorsed():
            said = f"{body.by} vouches for {body.arg} {one_line(body.value)} of {body.tool}"
            return f"{body.endorsement}: {said}, until {moment(body.expires_at)}"
        case e.EndorsementEnded():
            return f"endorsement {body.endorsement} ended: {body.because}" + _because(body.detail)
        case e.SourceStateChanged():
            return f"source {body.source} is {body.state}" + _because(body.because)
        case e.StateUpdated():
            return f"state {body.slice} is version {body.version}: {arguments(body.value)}"
        case e.PolicyLoaded():
            kind = "overlay" if body.overlay else "policy"
            return f"{kind} {body.policy} v{body.version} restricts the Run" + (
                ", drains" if body.drain else ""
            )
        case e.OperatorAlerted():
            return f"{body.code}: {one_line(body.message, 300)}"
    return ""


def _limited(said: str, body: e.CapabilityGranted | e.StandingGranted) -> str:
    limits = [f"until {moment(body.expires_at)}"] if body.expires_at else []
    limits += [many(body.calls, "call")] if body.calls is not None else []
    return ", ".join([said, *limits])


def receipt(body: e.ReceiptRecorded, state: RunState) -> str:
    """The outcome with what is worth knowing about it."""
    call = state.calls.get(body.call)
    settled = call.receipt if call is not None else None
    found = handles(settled.evidence) if settled is not None else ""
    fault = body.result.fault if body.result is not None else None
    parts = [
        one_line(body.detail, 300),
        f"but the result: {one_line(fault)}" if fault else "",
        f"evidence {found}" if found else "",
        f"from the cache of {body.cached_from}" if body.cached_from else "",
        "late" if body.late else "",
        f"settled by the {body.settled_by}" if body.settled_by in ("probe", "operator") else "",
    ]
    told = ", ".join(part for part in parts if part)
    return body.outcome.value.replace("_", " ") + (f": {told}" if told else "")


def requirement(need: e.Requirement) -> str:
    """Who must say yes for one rule, and until when."""
    who = " or ".join(need.roles) or "anybody"
    who = f"{need.quorum} of {who}" if need.quorum > 1 else who
    extra = [
        "not the requester" if need.not_requester else "",
        "the requester" if need.same_principal else "",
        "signed" if need.signed else "",
    ]
    return ", ".join([f"{need.rule} by {who}", *filter(None, extra), f"until {moment(need.expires_at)}"])


def _call(body: e.CallRejected | e.CallFenced | e.CallHeld | e.ExecutionStarted | e.ReceiptRecorded) -> str:
    return f"{body.call} {one_line(body.tool, 80)}"


def _named(call: e.Call, state: RunState) -> str:
    known = state.calls.get(call)
    return f"{call} {one_line(known.tool, 80)}" if known is not None else str(call)


def _host(body: e.ExecutionStarted) -> str:
    if body.host is None:
        return f", approved by {one_line(body.approved_by)}" if body.approved_by else ""
    about = f" of {body.host.subject}" if body.host.subject else ""
    return f" by the Host as {body.host.purpose}{about}"


def _again(body: e.ExecutionStarted) -> str:
    return f", attempt {body.attempt}" if body.attempt > 1 else ""


def _because(text: str) -> str:
    return f": {one_line(text)}" if text else ""
