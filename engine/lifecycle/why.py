"""Owns the answer to "why": which rules show or hide a tool, decide a call, or keep a Run from ending."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from engine.domain.calls import Refusal
from engine.domain.canonical import Json, JsonObject, canonical
from engine.domain.events import Proposal
from engine.domain.facts import Facts, Unknown
from engine.domain.ids import CallId
from engine.domain.policy import HideRule, Policy, Rule
from engine.lifecycle.vantage import Vantage
from engine.policy.admission import admit, in_order
from engine.policy.arguments import read_arguments
from engine.policy.contract import blocker
from engine.policy.decision import Need, NotApplied, decide, decide_restricted, not_applied, output_of
from engine.policy.gates import GateResult, finish_gates, only_unknown_effects
from engine.policy.verdicts import Reject
from engine.policy.view import bound_or_unknown, for_call, publication_facts, read_facts, tool_facts


@dataclass(frozen=True, slots=True)
class Shown:
    """Whether the model is offered a tool, and what keeps it out: rules with the facts they read, or one line."""

    yes: bool
    reason: str = ""
    stop: Rule | HideRule | None = None
    reads: Mapping[str, Json] | None = None
    permits: tuple[NotApplied, ...] = ()
    """Rules that would permit it and do not apply."""
    policy: Policy | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """What the rules of one policy say of the call."""

    policy: Policy
    verdict: str
    """`deny`, `human` or `allow`."""
    rules: tuple[Rule, ...]
    needs: tuple[Need, ...]
    aside: tuple[NotApplied, ...]
    """Rules that name the tool and take no part."""


@dataclass(frozen=True, slots=True)
class Answer:
    tool: str
    shown: Shown
    args: JsonObject | None = None
    """After binding; None where no call was asked about."""
    verdict: str = ""
    judged: tuple[Judged, ...] = ()
    refusal: str = ""
    """Why such a call would be rejected for another reason than its rules."""
    gates: tuple[GateResult, ...] = ()
    ends: str = ""
    """Of `finish`: `completes`, `held` or `rejected`."""


def why(vantage: Vantage, tool: str, now: datetime, args: Mapping[str, Json] | None = None) -> Answer:
    """Why a tool is offered or not and, with `args` as the model would send them, what becomes of such a call."""
    shown = why_shown(vantage, tool, now)
    if tool == "finish":
        return _finish(vantage, now, shown)
    if args is None or not _has_rules(vantage.policies[0], tool):
        return Answer(tool, shown)
    return _call(vantage, tool, now, dict(args), shown)


def _finish(vantage: Vantage, now: datetime, shown: Shown) -> Answer:
    gates = tuple(finish_gates(vantage.policies, vantage.state, vantage.facts(now)))
    failed = [gate for gate in gates if not gate.passed]
    ends = "completes" if not failed else "held" if only_unknown_effects(gates) else "rejected"
    return Answer("finish", shown, gates=gates, ends=ends)


def _has_rules(policy: Policy, tool: str) -> bool:
    return tool in policy.tools or output_of(policy, tool) is not None


# --- the contract -------------------------------------------------------------------------------------------


def why_shown(vantage: Vantage, tool: str, now: datetime) -> Shown:
    contract = vantage.contract(now)
    if tool in contract.names:
        return Shown(yes=True)
    reason = contract.absent.get(tool, "the policy does not have it")
    if not reason.startswith(("deny `", "hidden by `", "no rule permits it")):
        return Shown(yes=False, reason=reason)
    for policy, facts in zip(vantage.policies, vantage.facts(now), strict=True):
        seen = _seen(policy, tool, facts, {}, pending=True)
        stop = blocker(policy, tool, seen)
        if stop is None:
            continue
        if isinstance(stop, str):
            permits = tuple(each for each in not_applied(policy, tool, seen) if each.rule.effect.permits)
            return Shown(yes=False, reason=stop, permits=permits, policy=policy)
        return Shown(yes=False, reason=reason, stop=stop, reads=_reads(stop, seen), policy=policy)
    return Shown(yes=False, reason=reason)


def _reads(stop: Rule | HideRule, facts: Facts) -> Mapping[str, Json]:
    conditions = [stop.when] if isinstance(stop, HideRule) else [stop.when, stop.unless]
    found: dict[str, Json] = {}
    for condition in conditions:
        if condition is not None:
            found.update(read_facts(condition.reads, facts))
    return found


def _seen(
    policy: Policy, tool: str, facts: Facts, args: Mapping[str, Json], *, pending: bool = False
) -> Facts:
    output = output_of(policy, tool)
    if output is not None:
        static = publication_facts(output)
        return for_call(facts, static, {**(static.pending if pending else {}), **args})
    spec = policy.tools[tool]
    static = tool_facts(spec)
    bound = {} if not pending else bound_or_unknown(spec.bound_params, facts)
    return for_call(facts, static, {**(static.pending if pending else {}), **bound, **args})


# --- the call -----------------------------------------------------------------------------------------------


def _call(vantage: Vantage, tool: str, now: datetime, args: JsonObject, shown: Shown) -> Answer:
    facts = vantage.facts(now)
    whole, refusal = _bound(vantage.policies[0], tool, facts[0], args)
    if refusal:
        return Answer(tool, shown, whole, "deny", refusal=refusal)
    seen = [_seen(policy, tool, each, whole) for policy, each in zip(vantage.policies, facts, strict=True)]
    verdict = decide_restricted(vantage.policies, tool, seen).verdict
    judged = tuple(_judged(vantage.policies, tool, seen))
    other = "" if verdict == "deny" else _refused_otherwise(vantage, tool, args, facts)
    return Answer(tool, shown, whole, verdict.value, judged, other)


def _bound(policy: Policy, tool: str, facts: Facts, args: JsonObject) -> tuple[JsonObject, str]:
    """The arguments after binding, and why they would not be accepted."""
    spec = policy.tools.get(tool)
    if spec is None:
        return args, ""
    known = bound_or_unknown(spec.bound_params, facts)
    bound = {name: value for name, value in known.items() if not isinstance(value, Unknown)}
    whole = in_order(spec, {**bound, **args})
    read = read_arguments(canonical(args), spec)
    if isinstance(read, Refusal):
        return whole, read.message
    missing = [param for param in spec.bound_params if param.required and param.name not in bound]
    if missing:
        return whole, f"`{missing[0].name}` is filled in from {missing[0].bind}, which is not recorded"
    return whole, ""


def _judged(policies: Sequence[Policy], tool: str, seen: Sequence[Facts]) -> Iterator[Judged]:
    for policy, facts in zip(policies, seen, strict=True):
        decision = decide(policy, tool, facts)
        aside = tuple(not_applied(policy, tool, facts))
        yield Judged(policy, decision.verdict.value, decision.rules, decision.needs, aside)


def _refused_otherwise(vantage: Vantage, tool: str, args: JsonObject, facts: Sequence[Facts]) -> str:
    """What else than its rules stands in the way: a budget, a reference, a hide that reads arguments."""
    state = vantage.state
    call = CallId(len(state.turns) + 1, 1)
    proposal = Proposal(ordinal=1, tool=tool, arguments=canonical(args))
    offered = frozenset({*vantage.policies[0].tools, tool})
    verdict = admit(vantage.policies, state, offered, state.epoch, call, proposal, facts)
    return verdict.refusal.message if isinstance(verdict, Reject) else ""
