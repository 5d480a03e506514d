"""Owns what people take back: grants of capabilities, standing approvals, endorsements; at once, and by whom."""

from __future__ import annotations

from typing import NoReturn

from engine.domain import events as e
from engine.domain.actors import Actor
from engine.domain.errors import Refused, UsageError
from engine.domain.ids import RunId
from engine.domain.state import RunState
from engine.policy.eligibility import is_requester
from engine.ports import Clock, EventStore, Secrets
from engine.runtime.attempts import record_attempt
from engine.runtime.journal import Journal
from engine.runtime.library import PolicyLibrary


def revoke(
    store: EventStore,
    clock: Clock,
    library: PolicyLibrary,
    run: RunId,
    grant: str,
    by: Actor,
    because: str,
    *,
    secrets: Secrets | None = None,
) -> RunState:
    """Ends a grant (`G1`), a standing approval (`S1`) or an endorsement (`V1`). Said twice, it is the same.

    Raises Refused, with the attempt recorded, for who may not; UsageError for a name that the Run does not have.
    """
    journal = Journal(store, run, clock, secrets=secrets)
    journal.load()
    while True:
        state = journal.state
        if state.ending is not None:
            _decline(journal, grant, by, f"the Run is {state.ending[0]}")
        ended = _ended(state, grant)
        if ended:
            return state
        if not _may(library, state, grant, by):
            _decline(journal, grant, by, f"only {_who(library, state, grant)} may revoke it")
        journal.say(_fact(state, grant, because), by)
        if journal.flush():
            return journal.state


def _ended(state: RunState, grant: str) -> str:
    """Why it has ended already; empty while it stands. Raises UsageError for an unknown name."""
    for held in (state.grants, state.standing, state.endorsements):
        if grant in held:
            return str(held[grant].ended)
    known = ", ".join([*state.grants, *state.standing, *state.endorsements]) or "none"
    raise UsageError(f"Run `{state.run}` has no grant `{grant}`", remedy=f"its grants are: {known}")


def _fact(state: RunState, grant: str, because: str) -> e.Body:
    if grant in state.grants:
        return e.GrantRevoked(grant=grant, because=because)
    if grant in state.standing:
        return e.StandingEnded(grant=grant, because="revoked", detail=because)
    return e.EndorsementEnded(endorsement=grant, because="revoked", detail=because)


def _may(library: PolicyLibrary, state: RunState, grant: str, by: Actor) -> bool:
    """Whoever holds a role that may, and for whom the Run works: a Run can always do with less."""
    return bool(by.id) and (
        is_requester(state.principal, by) or bool(_roles(library, state, grant) & set(by.roles))
    )


def _roles(library: PolicyLibrary, state: RunState, grant: str) -> set[str]:
    """Of a capability: those that any policy of the Run names; of a yes: those of its approvers."""
    found = state.grants.get(grant)
    if found is None:
        given = state.standing.get(grant) or state.endorsements[grant]
        return set(given.roles)
    policies = [library.policy(bundle) for bundle in (state.bundle, *state.restricted_by.values())]
    named = (policy.capabilities.get(found.capability) for policy in policies)
    return {role for capability in named if capability is not None for role in capability.revoke_roles}


def _who(library: PolicyLibrary, state: RunState, grant: str) -> str:
    requester = [f"`{state.principal.id}`"] if state.principal is not None else []
    return " or ".join([*requester, *sorted(_roles(library, state, grant))])


def _decline(journal: Journal, grant: str, by: Actor, why: str) -> NoReturn:
    """Records the attempt, then raises Refused."""
    record_attempt(journal, grant, by, "revoke", why)
    raise Refused(f"`{grant}` cannot be revoked by `{by.id}`: {why}", remedy="`agentctl grants` lists them")
