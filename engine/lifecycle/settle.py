"""Owns the end of a Run: open calls closed by name, effects undone in reverse order, what is left named."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from heapq import merge

from engine.domain import events as e
from engine.domain.calls import CallStatus
from engine.domain.ids import CallId
from engine.domain.policy import Compensate, Policy, ToolSpec
from engine.domain.state import CallState, RunState
from engine.domain.unsettled import Undoable
from engine.lifecycle.acts import capability_of, host_start, not_executed
from engine.lifecycle.present import Present
from engine.lifecycle.recover import probe_due
from engine.lifecycle.retry import retry_of_compensation
from engine.lifecycle.steps import Compensate as CompensateStep
from engine.lifecycle.steps import Record, Step, Wait
from engine.policy.binding import host_arguments

_ON = {
    "completed": "run_finished",
    "failed": "run_failed",
    "expired": "run_failed",
    "cancelled": "run_cancelled",
}


def settle(present: Present) -> Step:
    """The next step of a Run that is ending."""
    policy, state, now = present.policy, present.state, present.now
    assert state.settling is not None
    ending, reason = state.settling
    closing = tuple(close_open(state, reason))
    if closing:
        return Record(closing)
    undo = probe_due(present) or retry_of_compensation(present) or _next_compensation(present, ending)
    if undo is not None:
        return undo
    if ending == "completed" and state.unknown_calls:
        return _wait_for_outcomes(state)
    return Record((end(policy, state, ending, reason, now),))


def close_open(state: RunState, reason: str) -> Iterator[e.Body]:
    """A receipt `not_executed` for each call that never started; started ones are recovered elsewhere."""
    for id_ in state.open_calls:
        call = state.calls[id_]
        if id_ == state.finish_call or call.status is CallStatus.STARTED:
            continue
        if call.status is CallStatus.PROPOSED:
            yield e.CallFenced(call=id_, tool=call.tool, reason="run_ending", moved_by=reason)
        elif call.held == "capability":
            yield e.CapabilityDenied(
                call=id_, capability=capability_of(call), because=f"the Run ended: {reason}"
            )
        else:
            asked = call.approval is not None and not call.approval.decided
            yield not_executed(call, f"the Run ended: {reason}", "undecided" if asked else None)


def _wait_for_outcomes(state: RunState) -> Step:
    detail = ", ".join(str(call) for call in state.unknown_calls)
    if state.waiting_for == "reconciliation":
        return Wait("reconciliation", detail)
    return Record((e.RunParked(waiting_for="reconciliation", detail=f"unknown effects: {detail}"),))


# --- compensation -----------------------------------------------------------------------------------------


def _next_compensation(present: Present, ending: str) -> Step | None:
    for call in _to_undo(present.policy, present.state, ending, present.now):
        spec = present.policy.tools[call.tool]
        assert spec.compensate is not None
        start = compensation(present, call, spec.compensate)
        if start is not None:
            return CompensateStep(start)
    return None


def _to_undo(policy: Policy, state: RunState, ending: str, now: datetime) -> Iterator[CallState]:
    """Confirmed effects whose tool declares a compensation for this end, newest first, each tried once."""
    tools = [tool for tool in state.to_undo if _undoes(policy.tools.get(tool), _ON[ending])]
    for _, call in merge(*(_of_tool(state, state.to_undo[tool], now) for tool in tools)):
        yield state.calls[call]


def _of_tool(
    state: RunState, confirmed: dict[CallId, Undoable], now: datetime
) -> Iterator[tuple[int, CallId]]:
    """Newest first, each with its place counted backwards."""
    for id_, undoable in reversed(confirmed.items()):
        if undoable.until is not None and undoable.until <= now:
            return
        if _still_there(state, state.calls[id_], now):
            yield -undoable.place, id_


def _undoes(spec: ToolSpec | None, on: str) -> bool:
    return spec is not None and spec.compensate is not None and on in spec.compensate.on


def _still_there(state: RunState, call: CallState, now: datetime) -> bool:
    """A consumed or lapsed hold is not compensated."""
    if not call.holds:
        return True
    return call.id in state.open_holds and (call.hold_ends is None or now < call.hold_ends)


def compensation(present: Present, call: CallState, declared: Compensate) -> e.ExecutionStarted | None:
    """The call of the Host that undoes `call`; None if an argument cannot be had, which leaves it named."""
    spec = present.policy.tools[declared.tool]
    args = host_arguments(spec, declared.args, call, present.facts[0])
    if args is None:
        return None
    return host_start(present.state, spec, args, e.HostPurpose(purpose="compensation", subject=call.id))


# --- the last event ---------------------------------------------------------------------------------------


def end(policy: Policy, state: RunState, ending: str, reason: str, now: datetime) -> e.Body:
    """The terminal event, with a name for everything that is left."""
    unknown = tuple(state.unknown_calls)
    kept = tuple(call.id for call in _not_undone(policy, state, ending, now))
    late = (
        id_ for id_ in state.open_holds if (ends := state.calls[id_].hold_ends) is not None and ends <= now
    )
    lapsed = (*state.lapsed_holds, *late)
    common = {"reason": reason, "unknown_effects": unknown, "not_compensated": kept, "lapsed": lapsed}
    match ending:
        case "completed":
            return e.RunCompleted(call=state.finish_call, **common)  # type: ignore[arg-type]  # one mapping, four events
        case "failed":
            return e.RunFailed(message=_message(state), **common)  # type: ignore[arg-type]
        case "cancelled":
            return e.RunCancelled(message=state.cancel_requested or "", **common)  # type: ignore[arg-type]
        case _:
            return e.RunExpired(**common)  # type: ignore[arg-type]


def _message(state: RunState) -> str:
    return state.last_failure[1] if state.last_failure else ""


def _not_undone(policy: Policy, state: RunState, ending: str, now: datetime) -> Iterator[CallState]:
    """Effects that should have been undone and, as far as the Host knows, were not; holds that nothing ends."""
    for call in state.effects():
        if call.compensated_by is not None or not _still_there(state, call, now):
            continue
        if _undoes(policy.tools.get(call.tool), _ON[ending]) or (call.holds and call.hold_ends is None):
            yield call
