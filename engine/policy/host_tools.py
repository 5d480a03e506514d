"""Owns the judgement of proposals to the Host itself: finish, a question, a capability, a publication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.domain.calls import Refusal
from engine.domain.canonical import JsonObject, digest_of
from engine.domain.events import Proposal, RefusalRecord
from engine.domain.facts import Facts
from engine.domain.policy import Policy
from engine.domain.state import RunState
from engine.domain.types import Field
from engine.policy import budgets, builtin, capabilities
from engine.policy.arguments import Arguments, SecretFinder, read_object
from engine.policy.binding import call_digest, requirements_of, shown_to_reviewer
from engine.policy.decision import Decision, Verdict, decide_restricted
from engine.policy.publication import with_draft
from engine.policy.verdicts import Builtin, Hold, Reject, denied, recorded, reject
from engine.policy.view import PUBLISH, for_call, publication_facts


def admit_builtin(
    policies: Sequence[Policy],
    state: RunState,
    proposal: Proposal,
    facts: Sequence[Facts],
    secrets: SecretFinder | None,
) -> Reject | Builtin:
    own, tool = policies[0], proposal.tool
    fields = _builtin_fields(policies, tool, facts)
    partial = tool == builtin.REQUEST_CAPABILITY or tool.startswith(PUBLISH)
    read = read_object(
        proposal.arguments,
        fields,
        of=tool,
        secrets=secrets,
        sanitised=proposal.sanitised,
        cut_from=proposal.cut_from,
        partial=partial,
        typed=not tool.startswith(PUBLISH),
    )
    if isinstance(read, Refusal):
        return Reject(recorded(read))
    if tool == builtin.REQUEST_CAPABILITY:
        fault = _capability_fault(own, read.values)
        return (
            Reject(fault, read.values) if fault is not None else Builtin(tool, read.values, read.normalised)
        )
    if tool == builtin.ASK_USER:
        cap = budgets.of(policies).questions_to_user
        if cap is None or state.spent.questions >= cap:
            return reject("budget", "not executed: budget questions_to_user is used up", args=read.values)
    if tool.startswith(PUBLISH):
        return _admit_publication(policies, state, tool, read, facts)
    return Builtin(tool, read.values, read.normalised)


def _builtin_fields(policies: Sequence[Policy], tool: str, facts: Sequence[Facts]) -> Mapping[str, Field]:
    own = policies[0]
    if tool == builtin.ASK_USER:
        return builtin.QUESTION_FIELDS
    if tool == builtin.REQUEST_CAPABILITY:
        return builtin.request_fields(own, capabilities.requestable(policies, facts))
    if tool.startswith(PUBLISH):
        return builtin.publish_fields(own.outputs[tool[len(PUBLISH) :]])
    return {}


def _capability_fault(policy: Policy, values: JsonObject) -> RefusalRecord | None:
    name = values.get("capability")
    if not isinstance(name, str):
        return RefusalRecord(code="invalid_arguments", message="`capability` is missing", field="capability")
    params = {key: value for key, value in values.items() if key not in ("capability", "reason")}
    return capabilities.request_fault(policy.capabilities[name], params)


def publication_decision(
    policies: Sequence[Policy], tool: str, fields: JsonObject, facts: Sequence[Facts]
) -> Decision:
    """Whether `publish_<output>` of these fields is permitted now; asked again when people have said yes."""
    return decide_restricted(policies, tool, _seen(policies[0], tool, fields, facts))


def _seen(policy: Policy, tool: str, fields: JsonObject, facts: Sequence[Facts]) -> list[Facts]:
    static = publication_facts(policy.outputs[tool[len(PUBLISH) :]])
    return [for_call(each, static, fields) for each in facts]


def _admit_publication(
    policies: Sequence[Policy], state: RunState, tool: str, read: Arguments, facts: Sequence[Facts]
) -> Reject | Builtin:
    """Decided over the fields as they would be published, a draft's included."""
    fields, fault = with_draft(policies[0].outputs[tool[len(PUBLISH) :]], read.values, state)
    decision = publication_decision(policies, tool, fields, facts)
    if decision.verdict is Verdict.DENY:
        return Reject(denied(decision), read.values, decision.alerts)
    if decision.verdict is Verdict.ALLOW or fault is not None:
        return Builtin(tool, read.values, read.normalised)
    seen = _seen(policies[0], tool, fields, facts)[0]
    shown = shown_to_reviewer(tool, fields, frozenset(), decision.needs, seen)
    hold = Hold(
        None,
        fields,
        read.normalised,
        call_digest(tool, "", fields, state.principal, policies[0].digest),
        requirements_of(decision.needs, seen.now),
        shown,
        digest_of(shown),
        decision.matched,
        alerts=decision.alerts,
    )
    return Builtin(tool, read.values, read.normalised, hold)
