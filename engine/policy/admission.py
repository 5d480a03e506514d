"""Owns the judgement of one proposal: rejected, fenced, held for people, or run.

The order: offered, whole response, arguments (secrets first), binding, decision, budgets, references. The fence
comes before all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.domain.calls import Refusal
from engine.domain.canonical import Json, JsonObject, digest_of
from engine.domain.events import Proposal, RefusalRecord
from engine.domain.facts import Facts
from engine.domain.ids import CallId
from engine.domain.policy import Budgets, Effect, Kind, Policy, ToolSpec
from engine.domain.state import RunState
from engine.policy import budgets
from engine.policy.arguments import Arguments, SecretFinder, read_arguments, unknown_reference
from engine.policy.binding import call_digest, idempotency_key, requirements_of, shown_to_reviewer
from engine.policy.decision import Decision, Verdict, decide_restricted, hidden_by, where
from engine.policy.host_tools import admit_builtin
from engine.policy.values import Fault, read_value
from engine.policy.verdicts import Admission, Fence, Hold, Reject, Run, denied, not_offered, recorded, reject
from engine.policy.view import (
    Unbound,
    active_grants,
    bind,
    for_call,
    tool_facts,
)

_CUT: Final = {
    "length": "its length limit",
    "filter": "a content filter",
    "refusal": "a refusal of the provider",
}


def admit(
    policies: Sequence[Policy],
    state: RunState,
    offered: frozenset[str],
    epoch: int,
    call: CallId,
    proposal: Proposal,
    facts: Sequence[Facts],
    *,
    finish: str = "tool_calls",
    secrets: SecretFinder | None = None,
) -> Admission:
    """Judges one proposal of a turn under the facts of now.

    `offered` and `epoch` are those of the turn's contract, `finish` how the response ended, `facts` one per
    policy (the Run's own first, then those that restrict it).
    """
    if state.epoch != epoch:
        return Fence(state.moved_by)
    if proposal.tool not in offered:
        return Reject(not_offered(proposal.tool, offered))
    spec = policies[0].tools.get(proposal.tool)
    if finish in _CUT and (spec is None or spec.kind is not Kind.READ):
        return reject("truncated", f"not executed: the response was cut by {_CUT[finish]}; propose it again")
    over = _over_total(budgets.of(policies), state, call)
    if over is not None:
        return Reject(over)
    if proposal.secret is not None:
        return reject("secret", f"the arguments contain the registered secret `{proposal.secret}`")
    if spec is None:
        return admit_builtin(policies, state, proposal, facts, secrets)
    read = read_arguments(
        proposal.arguments, spec, secrets=secrets, sanitised=proposal.sanitised, cut_from=proposal.cut_from
    )
    if isinstance(read, Refusal):
        return Reject(recorded(read))
    return _judge(policies, state, spec, call, read, facts)


def readmit(
    policies: Sequence[Policy],
    state: RunState,
    spec: ToolSpec,
    call: CallId,
    args: Mapping[str, Json],
    facts: Sequence[Facts],
) -> Admission:
    """Decides a held call again under the facts of now; `args` are those after binding, as stored.

    The Host-bound ones stay as they were approved: whether they are still true is for `fresh` to say. Its own
    place in the per-tool budget is not counted twice. What a person edited is checked like what the model sent.
    """
    over = _over_total(budgets.of(policies), state, call)
    if over is not None:
        return Reject(over, dict(args))
    faults: list[Fault] = []
    for name, value in args.items():
        read_value(value, spec.params[name].type, name, faults)
    if faults:
        return reject("invalid_arguments", f"as edited: {faults[0].message}", args=dict(args))
    stored = Arguments({name: value for name, value in args.items() if spec.params[name].bind is None})
    return _judge(policies, state, spec, call, stored, facts, stored_args=dict(args))


def _over_total(limits: Budgets, state: RunState, call: CallId) -> RefusalRecord | None:
    """Every proposal counts, also rejected ones; those of this response that come later are not before it."""
    later = 0
    turn = state.turn
    if turn is not None and turn.number == call.turn:
        later = sum(1 for proposal in turn.recorded.proposals if proposal.ordinal > call.ordinal)
    if state.spent.calls - later <= limits.calls_total:
        return None
    used = (
        "the one call of the Run is"
        if limits.calls_total == 1
        else f"all {limits.calls_total} calls of the Run are"
    )
    message = f"not executed: budget calls.total, {used} used"
    return RefusalRecord(code="budget", message=message)


def _over_tool(limits: Budgets, state: RunState, tool: str, *, counted: bool) -> bool:
    """A held call has its own place in the count."""
    cap = limits.calls_per_tool.get(tool)
    return cap is not None and state.spent.per_tool.get(tool, 0) >= cap + counted


# --- tools of the policy -----------------------------------------------------------------------------------


def _judge(
    policies: Sequence[Policy],
    state: RunState,
    spec: ToolSpec,
    call: CallId,
    read: Arguments,
    facts: Sequence[Facts],
    stored_args: JsonObject | None = None,
) -> Admission:
    bound = _bound(spec, facts[0]) if stored_args is None else {}
    if isinstance(bound, Reject):
        return bound
    args = in_order(spec, {**bound, **read.values}) if stored_args is None else stored_args
    static = tool_facts(spec)
    seen = [for_call(each, static, args, call) for each in facts]
    refused = _refused_by_hide(policies, spec.name, seen, args)
    if refused is not None:
        return refused
    decision = decide_restricted(policies, spec.name, seen)
    if decision.verdict is Verdict.DENY:
        return Reject(denied(decision), args, decision.alerts)
    if _over_tool(budgets.of(policies), state, spec.name, counted=stored_args is not None):
        message = f"not executed: budget calls.per_tool, all calls of `{spec.name}` are used"
        return reject("budget", message, args=args)
    unknown = unknown_reference(spec, args, state)
    if unknown is not None:
        return Reject(recorded(unknown), args)
    try:
        key = idempotency_key(spec, state.run, call, args, seen[0])
    except KeyError as error:
        return reject(
            "unbound", f"its idempotency key needs {error.args[0]}, which is not recorded", args=args
        )
    return _permitted(policies[0], state, spec, args, read, decision, seen[0], key)


def in_order(spec: ToolSpec, args: Mapping[str, Json]) -> JsonObject:
    """The arguments in the declared order of the parameters."""
    return {name: args[name] for name in spec.params if name in args}


def _bound(spec: ToolSpec, facts: Facts) -> JsonObject | Reject:
    bound = bind(spec, facts)
    if isinstance(bound, Unbound):
        return reject("unbound", f"`{bound.param}` is filled in from {bound.path}, which is not recorded")
    faults: list[Fault] = []
    for param in spec.bound_params:
        if param.name in bound:
            bound[param.name] = read_value(bound[param.name], param.type, param.name, faults)
    if faults:
        return reject("unbound", f"what the Host recorded does not fit: {faults[0].message}")
    return bound


def _refused_by_hide(
    policies: Sequence[Policy], tool: str, seen: Sequence[Facts], args: JsonObject
) -> Reject | None:
    """With the arguments known and under the facts of now: what a hide rule takes away does not run either."""
    for policy, facts in zip(policies, seen, strict=True):
        hide = hidden_by(policy, tool, facts)
        if hide is not None:
            return reject(
                "denied",
                f"hidden by `{hide.id}` ({where(hide)})",
                args=args,
                rule=hide.id,
            )
    return None


def _permitted(
    policy: Policy,
    state: RunState,
    spec: ToolSpec,
    args: JsonObject,
    read: Arguments,
    decision: Decision,
    facts: Facts,
    key: str | None,
) -> Hold | Run:
    digest = call_digest(spec.name, spec.digest, args, state.principal, policy.digest)
    grants = _grant_ids(state, decision, facts)
    if decision.verdict is Verdict.HUMAN:
        bound = frozenset(param.name for param in spec.bound_params)
        shown = shown_to_reviewer(spec.name, args, bound, decision.needs, facts)
        return Hold(
            spec,
            args,
            read.normalised,
            digest,
            requirements_of(decision.needs, facts.now),
            shown,
            digest_of(shown),
            decision.matched,
            grants,
            key,
            decision.alerts,
        )
    approved_by = _unattended_by(policy, spec, decision)
    return Run(
        spec, args, read.normalised, digest, decision.matched, approved_by, grants, key, decision.alerts
    )


def _unattended_by(policy: Policy, spec: ToolSpec, decision: Decision) -> str | None:
    rule = decision.unattended
    if spec.kind is Kind.READ or rule is None or rule.effect is not Effect.ALLOW:
        return None
    return f"rule {rule.id} of policy {policy.digest}, owner {policy.owner}"


def _grant_ids(state: RunState, decision: Decision, facts: Facts) -> tuple[str, ...]:
    if not decision.grants:
        return ()
    held = active_grants(state, facts.now)
    return tuple(held[name][index].id for name, index in decision.grants if index < len(held.get(name, ())))
