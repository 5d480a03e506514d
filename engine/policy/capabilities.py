"""Owns the decision over a requested capability: who may request it, and which approve branch decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from engine.domain.canonical import Json, JsonObject
from engine.domain.events import RefusalRecord
from engine.domain.facts import PENDING, Facts
from engine.domain.policy import ApproveBranch, ApproverSpec, Capability, Policy
from engine.policy.decision import Need, ask


@dataclass(frozen=True, slots=True)
class CapabilityDecision:
    """Granted by the Host (`granted`), for people to decide (`needs`), or denied (`refusal`)."""

    granted: bool = False
    needs: tuple[Need, ...] = ()
    refusal: RefusalRecord | None = None


def requestable(policies: Sequence[Policy], facts: Sequence[Facts]) -> tuple[str, ...]:
    """Capabilities that this principal may request now, in declared order."""
    return tuple(
        name
        for name in policies[0].capabilities
        if all(_may_request(policy, name, seen) for policy, seen in zip(policies, facts, strict=True))
    )


def _may_request(policy: Policy, name: str, facts: Facts) -> bool:
    capability = policy.capabilities.get(name)
    if capability is None or (not capability.params and facts.grants.get(name)):
        return False
    roles = capability.request_roles
    if roles is not None and roles.isdisjoint(facts.principal.get("roles", ())):
        return False
    if capability.request_when is not None and ask(capability.request_when, facts) is not True:
        return False
    pending = replace(facts, params=dict.fromkeys(capability.params, PENDING))
    return any(
        branch.when is None or ask(branch.when, pending) is not False
        for branch in capability.approve
        if not branch.at_start
    )


def request_fault(capability: Capability, params: Mapping[str, Json]) -> RefusalRecord | None:
    """Each parameter of the capability is fixed into the grant, so each must be there and no other."""
    for name in capability.params:
        if name not in params:
            message = f"`{capability.name}` needs `{name}`"
            return RefusalRecord(code="invalid_arguments", message=message, field=name)
    for name in params:
        if name not in capability.params:
            message = f"`{capability.name}` has no `{name}`"
            return RefusalRecord(code="invalid_arguments", message=message, field=name)
    return None


def branch_of(capability: Capability, facts: Facts) -> ApproveBranch | None:
    """The first branch whose `when` is true; None if none is, or one before it cannot be evaluated."""
    for branch in capability.approve:
        if branch.at_start:
            continue
        truth = True if branch.when is None else ask(branch.when, facts)
        if truth is True:
            return branch
        if truth is not False:
            return None
    return None


def branch_need(capability: Capability, branch: ApproveBranch) -> Need | None:
    """The approval a branch asks for; None where the Host grants."""
    if not isinstance(branch.by, ApproverSpec):
        return None
    approval = branch.by if branch.timeout is None else replace(branch.by, expires=branch.timeout)
    return Need(capability.name, approval, f"{branch.place.file}:{branch.place.line}")


def capability_decision(
    policies: Sequence[Policy], name: str, params: JsonObject, facts: Sequence[Facts]
) -> CapabilityDecision:
    """What becomes of a request with these parameters: the strictest of the policies, whose approvals add up."""
    needs: list[Need] = []
    for policy, seen in zip(policies, facts, strict=True):
        if not _may_request(policy, name, seen):
            return _denied(f"`{name}` may not be requested now")
        capability = policy.capabilities[name]
        branch = branch_of(capability, replace(seen, params=params))
        if branch is None:
            return _denied(f"no approve branch of `{name}` covers these parameters")
        need = branch_need(capability, branch)
        if need is not None and all(need.approval != known.approval for known in needs):
            needs.append(need if not needs else need._replace(rule=f"{name} (version {policy.version})"))
    return CapabilityDecision(granted=not needs, needs=tuple(needs))


def _denied(message: str) -> CapabilityDecision:
    return CapabilityDecision(refusal=RefusalRecord(code="no_branch", message=message))
