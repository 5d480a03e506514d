"""Owns the part of the fold that keeps unsettled calls within reach, so that no step walks over all of them.

A call that was sent and has no known outcome stands under its key and under what it changes; under its tool stands
when it is to be probed next, and what may still be undone.
"""

from __future__ import annotations

from heapq import heappop, heappush

from engine.domain.ids import CallId
from engine.domain.state import CallState, RunState
from engine.domain.unsettled import ProbeTime, Undoable
from engine.lifecycle.fold_evidence import changes_of


def sent(state: RunState, call: CallState) -> None:
    """Nobody knows yet what became of it."""
    if call.idempotency_key is not None:
        state.unsettled.by_key.setdefault(call.idempotency_key, {})[call.id] = None
    for name in changes_of(call):
        state.unsettled.by_change.setdefault(name, {})[call.id] = None


def settled(state: RunState, call: CallState) -> None:
    """Its outcome is known."""
    if call.idempotency_key is not None:
        _drop(state.unsettled.by_key, call.idempotency_key, call.id)
    for name in changes_of(call):
        _drop(state.unsettled.by_change, name, call.id)
    forget_probes(state, call.tool)


def _drop(index: dict[str, dict[CallId, None]], name: str, call: CallId) -> None:
    held = index.get(name)
    if held is not None:
        held.pop(call, None)
        if not held:
            del index[name]


# --- probes -----------------------------------------------------------------------------------------------


def probe_next(state: RunState, call: CallState, seq: int) -> None:
    """The event at `seq` said when the call is to be probed, if it is at all."""
    at = call.probe_at
    if at is not None and call.id in state.unknown_calls:
        heappush(state.unsettled.probes.setdefault(call.tool, []), ProbeTime(at, seq, call.id))
    forget_probes(state, call.tool)


def probe_stands(state: RunState, probe: ProbeTime) -> bool:
    """The call is still of unknown outcome, and nothing later said when to probe it."""
    return probe.call in state.unknown_calls and state.calls[probe.call].probe_at == probe.at


def forget_probes(state: RunState, tool: str) -> None:
    """The first of each heap stands."""
    heap = state.unsettled.probes.get(tool)
    while heap and not probe_stands(state, heap[0]):
        heappop(heap)


# --- what may be undone -------------------------------------------------------------------------------------


def may_undo(state: RunState, call: CallState) -> None:
    """A write or hybrid of the model is confirmed, and nobody has tried to undo it."""
    state.changed.append(call.id)
    held = state.to_undo.setdefault(call.tool, {})
    ends, before = call.hold_ends if call.holds else None, next(reversed(held.values()), None)
    if before is not None and ends is not None:
        ends = None if before.until is None else max(ends, before.until)
    held[call.id] = Undoable(len(state.changed), ends)


def undo_no_more(state: RunState, call: CallState) -> None:
    """Somebody tries to undo it, or it is a hold that has ended."""
    held = state.to_undo.get(call.tool)
    if held is not None:
        held.pop(call.id, None)
