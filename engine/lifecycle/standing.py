"""Owns approvals that outlive their call: which later calls a standing approval covers, what an approved call brings.

A standing approval covers a later call of the same tool, under the same rule, whose arguments all equal those that
were approved. It takes the place of people only where every rule that asks is covered.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from engine.domain import events as e
from engine.domain.canonical import Json, canonical
from engine.domain.state import CallState, RunState, StandingState
from engine.lifecycle.literals import normalised
from engine.lifecycle.provenance import leaves
from engine.policy.verdicts import Hold


def covering(state: RunState, verdict: Hold, now: datetime) -> tuple[StandingState, ...]:
    """The standing approvals in the place of every yes that this call needs; empty unless all are covered."""
    if verdict.spec is None or not state.open_standing:
        return ()
    found = [_for_rule(state, verdict.spec.name, need.rule, verdict, now) for need in verdict.requirements]
    covered = [standing for standing in found if standing is not None]
    return tuple(covered) if len(covered) == len(found) else ()


def _for_rule(state: RunState, tool: str, rule: str, verdict: Hold, now: datetime) -> StandingState | None:
    wanted = canonical(verdict.args)
    for name in state.open_standing:
        standing = state.standing[name]
        if (standing.tool, standing.rule) != (tool, rule) or not active(standing, now):
            continue
        if canonical(standing.args) == wanted:
            return standing
    return None


def active(standing: StandingState, now: datetime) -> bool:
    """At the very moment of its expiry it still stands, as an approval does."""
    if standing.ended or standing.calls_left == 0:
        return False
    return standing.expires_at is None or now <= standing.expires_at


def approved_by(standing: tuple[StandingState, ...]) -> str:
    return ", ".join(f"standing approval {each.id} of {each.by}" for each in standing)


# --- what an approved call brings ---------------------------------------------------------------------------


def lasting(state: RunState, call: CallState, now: datetime) -> Iterator[e.Body]:
    """Standing approvals and endorsements of a call that has just got its last yes.

    Each needs as many different people as the rule asks for the call itself.
    """
    approval = call.approval
    if approval is None or approval.decided != "approved" or call.held != "approval":
        return
    stands = vouched = 0
    for need in approval.requirements:
        people = {actor.id for actor, rules in approval.given if need.rule in rules}
        if may_stand(need) and len(people & approval.lasting) >= need.quorum:
            stands += 1
            yield _standing(call, need, people, f"S{len(state.standing) + stands}", now)
        for path in need.endorse:
            arg = path.removeprefix("args.")
            by = people & approval.endorsed.get(arg, set())
            if len(by) >= need.quorum:
                for value in _values((call.args or {}).get(arg)):
                    vouched += 1
                    name = f"V{len(state.endorsements) + vouched}"
                    lasts = need.expires_at - approval.requested_at
                    yield _endorsed(call, need, by, name, arg, value, now + lasts)


def may_stand(need: e.Requirement) -> bool:
    return need.standing_max_age is not None or need.standing_max_calls is not None


def _standing(
    call: CallState, need: e.Requirement, people: set[str], name: str, now: datetime
) -> e.StandingGranted:
    age = need.standing_max_age
    return e.StandingGranted(
        grant=name,
        call=call.id,
        tool=call.tool,
        rule=need.rule,
        args=dict(call.args or {}),
        by=", ".join(sorted(people)),
        roles=need.roles,
        expires_at=None if age is None else now + timedelta(seconds=age),
        calls=need.standing_max_calls,
    )


def _endorsed(
    call: CallState, need: e.Requirement, by: set[str], name: str, arg: str, value: str, until: datetime
) -> e.ValueEndorsed:
    return e.ValueEndorsed(
        endorsement=name,
        call=call.id,
        tool=call.tool,
        arg=arg,
        value=value,
        by=", ".join(sorted(by)),
        roles=need.roles,
        expires_at=until,
    )


def _values(value: Json) -> list[str]:
    """The scalars of an argument, each in the spelling under which values are compared."""
    found = (normalised(leaf) for _, leaf in leaves(value, ""))
    return list(dict.fromkeys(each for each in found if each))


# --- expiry -----------------------------------------------------------------------------------------------


def ended(state: RunState, now: datetime) -> Iterator[e.Body]:
    """Standing approvals and endorsements whose time or number of calls is over, as facts."""
    for standing in (state.standing[name] for name in state.open_standing):
        if standing.expires_at is not None and now > standing.expires_at:
            yield e.StandingEnded(grant=standing.id, because="time")
        elif standing.calls_left == 0:
            yield e.StandingEnded(grant=standing.id, because="calls")
    for endorsement in (state.endorsements[name] for name in state.open_endorsements):
        if now > endorsement.expires_at:
            yield e.EndorsementEnded(endorsement=endorsement.id, because="time")
