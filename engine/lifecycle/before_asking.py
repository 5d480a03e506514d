"""Owns what must be so before the model is asked: state shown is fresh, and the context has room."""

from __future__ import annotations

from dataclasses import replace

from engine.domain import events as e
from engine.domain.policy import ModelUse, Policy
from engine.lifecycle.acts import host_start
from engine.lifecycle.present import Outlook, Present
from engine.lifecycle.projections import stale_projections
from engine.lifecycle.steps import Compact, Execute, Record, Step
from engine.policy.allowed_models import refused_by
from engine.policy.binding import host_arguments

SUMMARY_TOKENS = 1024
"""Reserved for a summary where the fast model names no `max_output_tokens`."""
REFRESH_ONCE_IN = 1.0
"""Seconds in which one slice is not refreshed again for a projection: a refresh that brings nothing new cannot loop."""


def state_to_show(present: Present) -> Step | None:
    """`if_stale: refresh` reads the slice again; `stop` ends the Run; `omit` leaves it out of the request.

    A slice that nobody recorded and that can be read is read once: parameters may be bound to it.
    """
    policy, state = present.policy, present.state
    for name, declared in policy.state.items():
        if declared.refresh is not None and name not in state.state and name not in state.refreshed:
            step = _refresh(present, name)
            if step is not None:
                return step
    for stale in stale_projections(policy, state, present.now):
        projection = stale.projection
        if projection.if_stale == "stop":
            reason = f"stale:{projection.slice}"
            alert = e.OperatorAlerted(code="stale-projection", message=f"{projection.id}: {stale.why}")
            return Record((alert, e.SettlingStarted(ending="failed", reason=reason)))
        if projection.if_stale == "refresh":
            step = _refresh(present, projection.slice)
            if step is not None:
                return step
    return None


def _refresh(present: Present, name: str) -> Step | None:
    policy, state = present.policy, present.state
    tool = policy.state[name].refresh
    if tool is None or _tried_lately(present, name):
        return None
    spec = policy.tools[tool]
    args = host_arguments(spec, {}, None, present.facts[0])
    if args is None:
        return None
    purpose = e.HostPurpose(purpose="refresh", slice=name)
    return Execute((host_start(state, spec, args, purpose, policy),))


def _tried_lately(present: Present, name: str) -> bool:
    at = present.state.refreshed.get(name)
    return at is not None and (present.now - at).total_seconds() < REFRESH_ONCE_IN


def room(policy: Policy, present: Present, outlook: Outlook) -> Step | None:
    """A summary by the fast model once the messages reach `at_tokens`; not twice at one turn, never of facts."""
    declared = policy.context.compact
    state = present.state
    if declared is None or outlook.free or state.compaction_failed >= max(1, len(state.turns)):
        return None
    found = outlook.compactable(state, declared.at_tokens)
    use = policy.model.fast if declared.model == "fast" else ModelUse(declared.model)
    if found is None or use is None or refused_by(present.policies, use.id) is not None:
        return None
    upto, text = found
    tokens = len(text) // 3 + 200
    answer = use.max_output_tokens or SUMMARY_TOKENS
    cost = outlook.price(use, tokens, answer)
    if cost is None or state.spent.cost_usd + cost > policy.budgets.cost_usd:
        return None
    reserved = e.Reservation(input_tokens=tokens, output_tokens=answer, cost_usd=cost)
    start = e.CompactionStarted(
        upto=upto, covers=tuple(sorted(declared.covers)), model=use.id, reserved=reserved
    )
    return Compact(start, replace(use, max_output_tokens=answer), text)
