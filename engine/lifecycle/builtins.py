"""Owns proposals to the Host itself: a capability, a question, a publication, the finish. Each is the Host's act."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from engine.domain import events as e
from engine.domain.canonical import JsonObject, digest_of
from engine.domain.policy import Capability
from engine.domain.state import CallState
from engine.lifecycle.acts import hold
from engine.lifecycle.present import Present
from engine.lifecycle.steps import Record, Step
from engine.policy.binding import call_digest, requirements_of, shown_to_reviewer
from engine.policy.builtin import ASK_USER, FINISH, REQUEST_CAPABILITY
from engine.policy.capabilities import capability_decision
from engine.policy.decision import Need, output_of
from engine.policy.gates import GateResult, finish_gates, only_unknown_effects, publication_gates, refusal_of
from engine.policy.publication import Publish, Refuse, check_publication
from engine.policy.verdicts import Builtin


def perform(present: Present, call: CallState, verdict: Builtin) -> Step:
    """The facts that follow from an admitted proposal to the Host."""
    if verdict.tool == FINISH:
        return Record(finish(present, call))
    if verdict.tool == ASK_USER:
        return Record((e.QuestionAsked(call=call.id, question=str(verdict.args["question"])),))
    if verdict.tool == REQUEST_CAPABILITY:
        return Record(request_capability(present, call, verdict.args))
    return Record(publication(present, call, verdict))


# --- finish ---------------------------------------------------------------------------------------------


def finish(present: Present, call: CallState) -> tuple[e.Body, ...]:
    """Settling starts if every gate passes; only an unknown effect holds the proposal instead of refusing it."""
    results = finish_gates(present.policies, present.state, present.facts, call.id)
    failed = [result for result in results if not result.passed]
    if not failed:
        return (e.SettlingStarted(ending="completed", reason="finish", call=call.id),)
    if only_unknown_effects(results):
        return (
            e.CallHeld(
                call=call.id,
                tool=call.tool,
                tool_kind=None,
                reason="unknown_effects",
                waits_for=(),
                detail=refusal_of(results),
            ),
        )
    return (_refused_by_gates(call, failed, {}),)


def _refused_by_gates(call: CallState, failed: Sequence[GateResult], args: JsonObject) -> e.CallRejected:
    refusal = e.RefusalRecord(
        code="gate", message=refusal_of(failed), gates=tuple(result.title for result in failed)
    )
    return e.CallRejected(call=call.id, tool=call.tool, refusal=refusal, args=args)


# --- capabilities -----------------------------------------------------------------------------------------


def request_capability(present: Present, call: CallState, args: JsonObject) -> tuple[e.Body, ...]:
    """Granted by the Host, held for people, or denied because no branch covers it."""
    name = str(args["capability"])
    params = {key: value for key, value in args.items() if key not in ("capability", "reason")}
    decision = capability_decision(present.policies, name, params, present.facts)
    if decision.refusal is not None:
        return (e.CallRejected(call=call.id, tool=call.tool, refusal=decision.refusal, args=args),)
    asked = e.CapabilityRequested(
        call=call.id, capability=name, params=params, reason=str(args.get("reason", ""))
    )
    if decision.granted:
        return (asked, grant(present, call, name, params, "host"))
    return (asked, *ask_people(present, call, args, decision.needs))


def ask_people(
    present: Present, call: CallState, args: JsonObject, needs: Sequence[Need]
) -> tuple[e.Body, ...]:
    """The request for a capability waits; who has said yes to this very request need not say it again."""
    shown = shown_to_reviewer(call.tool, args, frozenset(), needs, present.facts[0])
    return (
        e.CallHeld(
            call=call.id,
            tool=call.tool,
            tool_kind=None,
            reason="capability",
            waits_for=tuple(need.rule for need in needs),
            args=args,
        ),
        e.ApprovalRequested(
            call=call.id,
            digest=call_digest(call.tool, "", args, present.state.principal, present.policy.digest),
            requirements=requirements_of(needs, present.now),
            shown=shown,
            shown_digest=digest_of(shown),
        ),
    )


def grant(present: Present, call: CallState, name: str, params: JsonObject, by: str) -> e.CapabilityGranted:
    capability: Capability = present.policy.capabilities[name]
    after: timedelta | None = capability.expires_after
    return e.CapabilityGranted(
        grant=f"G{len(present.state.grants) + 1}",
        capability=name,
        params=params,
        by=by,
        call=call.id,
        expires_at=None if after is None else present.now + after,
        calls=capability.expires_calls,
    )


# --- publication ------------------------------------------------------------------------------------------


def publication(present: Present, call: CallState, verdict: Builtin) -> tuple[e.Body, ...]:
    """Checked first; then committed, held for people, or refused with what was valid kept as a draft."""
    checked = _checked(present, call, verdict.args)
    if not isinstance(checked, Publish):
        return checked
    if verdict.needs is not None:
        return tuple(hold(present.state, call, verdict.needs))
    return (committed(call, checked),)


def committed(call: CallState, checked: Publish) -> e.OutputPublished:
    return e.OutputPublished(
        call=call.id,
        output=call.tool.removeprefix("publish_"),
        fields=checked.fields,
        rendered=checked.rendered,
        citations=checked.citations,
        figures=checked.figures,
        digest=checked.digest,
    )


def publish_approved(present: Present, call: CallState) -> tuple[e.Body, ...]:
    """People said yes; what is published is checked once more under the facts of now."""
    checked = _checked(present, call, call.args or {})
    return (committed(call, checked),) if isinstance(checked, Publish) else checked


def _checked(present: Present, call: CallState, args: JsonObject) -> Publish | tuple[e.Body, ...]:
    output = output_of(present.policy, call.tool)
    assert output is not None
    results = publication_gates(present.policies, present.state, present.facts, output.name, call.id)
    failed = [result for result in results if not result.passed]
    if failed:
        return (_refused_by_gates(call, failed, args),)
    checked = check_publication(present.policy, output, args, present.state, present.facts[0])
    if isinstance(checked, Publish):
        return checked
    return _refused_publication(present, call, output.name, args, checked)


def _refused_publication(
    present: Present, call: CallState, output: str, args: JsonObject, refused: Refuse
) -> tuple[e.Body, ...]:
    message = refused.message
    bodies: list[e.Body] = []
    if refused.valid:
        handle = f"D{len(present.state.drafts) + 1}"
        bodies.append(e.DraftKept(call=call.id, handle=handle, output=output, fields=refused.valid))
        kept = ", ".join(f"`{name}`" for name in refused.valid)
        message += f". Kept as draft {handle}: {kept}; send `draft` and the fields that change"
    first = refused.reasons[0]
    refusal = e.RefusalRecord(code="publication", message=message, field=first.field or None)
    bodies.append(e.CallRejected(call=call.id, tool=call.tool, refusal=refusal, args=args))
    return tuple(bodies)
