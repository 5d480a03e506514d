"""Owns sending a call once more where its tool declares that this is safe, before the model hears of the first try.

`retry: same_key`: the outcome is unknown and the tool deduplicates by the key. `retry: known_not_executed`: the tool
or its probe says that nothing was done. What is forbidden by now is not sent again.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge

from engine.domain.calls import Outcome
from engine.domain.policy import Retry
from engine.domain.state import CallState
from engine.lifecycle.present import Present
from engine.lifecycle.recover import MAX_ATTEMPTS, again, may_send_again, still_permitted
from engine.lifecycle.steps import Execute, Step


def retry_due(present: Present) -> Step | None:
    """The first call of the last response that may be sent again now."""
    state = present.state
    if state.turn is None or state.attempts:
        return None
    return _first(present, (state.calls[id_] for id_ in state.turn.calls))


def retry_of_compensation(present: Present) -> Step | None:
    """The same for what the Host itself sent to undo something."""
    state, tools = present.state, present.policy.tools
    may = (
        calls
        for tool, calls in state.undoing.items()
        if tool in tools and tools[tool].retry is not Retry.NEVER
    )
    return _first(present, (state.calls[id_] for id_ in merge(*may)))


def _first(present: Present, calls: Iterator[CallState]) -> Step | None:
    for call in calls:
        if _may_retry(present, call):
            return Execute((again(present.state, call),))
    return None


def _may_retry(present: Present, call: CallState) -> bool:
    spec, receipt = present.policy.tools.get(call.tool), call.receipt
    if spec is None or receipt is None or not 0 < call.attempts < MAX_ATTEMPTS:
        return False
    match receipt.outcome:
        case Outcome.UNKNOWN:
            wanted = may_send_again(spec, call, present.now)
        case Outcome.NOT_EXECUTED:
            wanted = spec.retry is Retry.KNOWN_NOT_EXECUTED and receipt.settled_by in ("tool", "probe")
        case _:
            return False
    return wanted and still_permitted(present, spec, call)
