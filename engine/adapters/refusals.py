"""Owns what every store refuses, in the same words: appends that do not fit the log, claims that others hold."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from engine.adapters.processes import is_dead
from engine.domain.errors import AgentctlError, ClaimHeld, ClaimLost, Conflict, Fault, UsageError
from engine.domain.events import GENESIS, timestamp
from engine.domain.ids import RunId
from engine.ports import Append, Claim, Head, Owner


class ClaimState(NamedTuple):
    """The newest claim of a Run; without an owner it was released, at epoch 0 there never was one."""

    epoch: int = 0
    owner: Owner | None = None
    since: str = ""
    expires_at: str = ""

    def holder(self, now: datetime) -> Owner | None:
        """Who still has the right to drive; nobody once it lapsed or its process on this host died."""
        if self.owner is None or self.expires_at <= timestamp(now) or is_dead(self.owner):
            return None
        return self.owner


NEVER_CLAIMED = ClaimState()


def check_append(item: Append) -> None:
    """Raises Fault for events that are not one gapless piece of the Run's chain."""
    if not item.events:
        raise _fault(item.run, "an append without events")
    if item.claim is not None and item.claim.run != item.run:
        raise _fault(item.run, f"an append under a claim of Run `{item.claim.run}`")
    seq = item.expected_seq
    previous = item.events[0].previous if seq else GENESIS
    for event in item.events:
        seq += 1
        if event.run != item.run or event.seq != seq:
            raise _fault(item.run, f"event {event.seq} of `{event.run}` where event {seq} belongs")
        if event.previous != previous:
            raise _fault(item.run, f"event {seq} that does not follow the hash before it")
        previous = event.hash


def refusal(item: Append, head: Head | None, claim_epoch: int) -> AgentctlError:
    """Why a checked append does not fit; `head` and `claim_epoch` are what the store holds. A lost claim
    comes first: its driver stops, whatever else moved."""
    seq = head.seq if head else 0
    if item.claim is not None and item.claim.epoch != claim_epoch:
        return claim_lost(item.run, item.claim.epoch, claim_epoch)
    if item.expected_seq == 0 and seq:
        return UsageError(
            f"the Run `{item.run}` exists already", remedy=f"`agentctl resume {item.run}` continues it"
        )
    if seq != item.expected_seq:
        return Conflict(
            f"the log of Run `{item.run}` has moved: it ends with event {seq}, not {item.expected_seq}",
            remedy="read the events since then and decide again",
        )
    return _fault(item.run, f"event {item.expected_seq + 1} that does not follow the stored hash before it")


def claim_lost(run: RunId, epoch: int, newest: int) -> ClaimLost:
    what = f"claim {epoch} of Run `{run}` is no longer held"
    if newest > epoch:
        what = f"another driver took over the Run `{run}` (its claim {newest} is newer than {epoch})"
    return ClaimLost(what, remedy=f"this driver stops; `agentctl show {run}` tells how the Run goes on")


def claim_held(run: RunId, holder: Owner, since: str) -> ClaimHeld:
    who = f"`{holder.name}`, " if holder.name else ""
    return ClaimHeld(
        f"the Run `{run}` is driven by another process ({who}pid {holder.pid} on `{holder.host}`, since {since})",
        remedy="wait until it ends, or stop that process; a claim that is not renewed lapses by itself",
    )


def held(result: Claim | AgentctlError) -> Claim:
    """The claim, or its refusal raised."""
    if isinstance(result, AgentctlError):
        raise result
    return result


def _fault(run: RunId, what: str) -> Fault:
    return Fault(f"the Runtime made {what}, for Run `{run}`", remedy="nothing was stored; report this")
