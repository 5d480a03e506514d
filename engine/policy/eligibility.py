"""Owns who may decide: which of the approvals that a call needs one person may give, and why not the others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from engine.domain.actors import Actor, Principal
from engine.domain.events import Requirement

LOCAL = "local"
"""Issuer of identities that nobody verified: named on the command line or by an application."""


def objection(requester: Principal | None, need: Requirement, by: Actor) -> str | None:
    """Why this person may not give this approval; None if they may. An id alone makes nobody another person."""
    if not by.id:
        return "no identity"
    if need.roles and not set(need.roles) & set(by.roles):
        return f"needs role {' or '.join(need.roles)}"
    if need.same_principal and not is_requester(requester, by):
        return f"only `{requester.id if requester else ''}` may"
    if need.not_requester and requester is not None and by.id == requester.id:
        return "the requester may not approve it"
    if need.signed and issuer_of(by) == LOCAL:
        return "needs a signed identity"
    return None


def eligible(
    requester: Principal | None, needs: Sequence[Requirement], by: Actor, now: datetime
) -> tuple[str, ...]:
    """Rules for which this person's yes counts at `now`; the very moment of expiry is still in time."""
    return tuple(
        need.rule for need in needs if objection(requester, need, by) is None and now <= need.expires_at
    )


def why_not(requester: Principal | None, needs: Sequence[Requirement], by: Actor, now: datetime) -> str:
    if all(now > need.expires_at for need in needs):
        return "expired"
    objections = [objection(requester, need, by) for need in needs]
    return "not eligible: " + "; ".join(dict.fromkeys(said for said in objections if said))


def may_refuse(requester: Principal | None, roles: set[str], by: Actor) -> bool:
    """Whoever may approve may refuse, and so may the person for whom the Run works."""
    if not by.id:
        return False
    return is_requester(requester, by) or bool(roles & set(by.roles))


def is_requester(requester: Principal | None, by: Actor) -> bool:
    """The same id from another issuer is another person."""
    return requester is not None and by.id == requester.id and issuer_of(by) == (requester.issuer or LOCAL)


def issuer_of(by: Actor) -> str:
    return by.issuer or LOCAL
