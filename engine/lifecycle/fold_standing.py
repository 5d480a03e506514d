"""Owns the part of the fold that concerns what outlives one approval: amendments, standing approvals, endorsements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.domain import events as e
from engine.domain.actors import Actor
from engine.domain.state import (
    AmendedState,
    ApprovalState,
    CallState,
    EndorsementState,
    RunState,
    StandingState,
)


def move_epoch(state: RunState, why: str) -> None:
    """A permission event: calls proposed under the old epoch are fenced."""
    state.epoch += 1
    state.moved_by = why


def amend(state: RunState, call: CallState, by: Actor, body: e.ApprovalGiven) -> None:
    """The request goes on with the amended call: who approved the one before did not approve this one."""
    approval, amendment = call.approval, body.amendment
    assert approval is not None
    assert amendment is not None
    first = call.amended
    if first is None:
        state.amended.append(call.id)
    call.amended = AmendedState(
        by.id,
        first.original_args if first else dict(call.args or {}),
        first.original_digest if first else body.digest,
        amendment.digest,
    )
    call.args = amendment.args
    approval.digest, approval.shown = amendment.digest, amendment.shown
    approval.shown_digest = amendment.shown_digest
    approval.given.clear()
    approval.lasting.clear()
    approval.endorsed.clear()
    if state.principal is not None and by.id == state.principal.id and body.edits is not None:
        state.user_values.append((call.id, body.edits))


def vouch(approval: ApprovalState, by: Actor, body: e.ApprovalGiven) -> None:
    if body.standing:
        approval.lasting.add(by.id)
    for arg in body.endorses:
        approval.endorsed.setdefault(arg, set()).add(by.id)


def use_standing(state: RunState, grant: str) -> None:
    used = state.standing.get(grant)
    if used is not None and used.calls_left is not None:
        used.calls_left -= 1


def _standing_granted(state: RunState, event: e.Event, body: e.StandingGranted) -> None:
    state.standing[body.grant] = StandingState(
        body.grant,
        body.call,
        body.tool,
        body.rule,
        body.args,
        body.by,
        body.roles,
        body.expires_at,
        body.calls,
    )
    state.open_standing[body.grant] = None
    move_epoch(state, f"standing approval of {body.tool}")


def _standing_ended(state: RunState, event: e.Event, body: e.StandingEnded) -> None:
    standing = state.standing[body.grant]
    standing.ended = body.because
    state.open_standing.pop(body.grant, None)
    move_epoch(state, f"standing approval of {standing.tool} ended")


def _value_endorsed(state: RunState, event: e.Event, body: e.ValueEndorsed) -> None:
    state.endorsements[body.endorsement] = EndorsementState(
        body.endorsement, body.call, body.tool, body.arg, body.value, body.by, body.roles, body.expires_at
    )
    state.open_endorsements[body.endorsement] = None
    state.endorsed[body.tool, body.value] = body.by
    move_epoch(state, f"endorsed {body.arg} of {body.tool}")


def _endorsement_ended(state: RunState, event: e.Event, body: e.EndorsementEnded) -> None:
    ended = state.endorsements[body.endorsement]
    ended.ended = body.because
    state.open_endorsements.pop(body.endorsement, None)
    key = (ended.tool, ended.value)
    still = (state.endorsements[name] for name in state.open_endorsements)
    others = [each for each in still if (each.tool, each.value) == key]
    if others:
        state.endorsed[key] = others[-1].by
    else:
        state.endorsed.pop(key, None)
    move_epoch(state, f"endorsement of {ended.arg} of {ended.tool} ended")


CHANGES: dict[type[e.Body], Callable[[RunState, e.Event, Any], None]] = {
    e.StandingGranted: _standing_granted,
    e.StandingEnded: _standing_ended,
    e.ValueEndorsed: _value_endorsed,
    e.EndorsementEnded: _endorsement_ended,
}
