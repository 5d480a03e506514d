"""Owns what the ledger says became of the calls of a Run: executed, not executed, failed, unknown, and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.domain.calls import CallStatus, Outcome
from engine.domain.state import CallState, RunState
from engine.report.words import one_line

GROUPS: Final = ("executed", "not_executed", "failed", "unknown", "rejected", "fenced", "open")
_ALWAYS: Final = GROUPS[:4]
"""Shown also where they are empty: that nothing is unknown is worth saying."""
_OF_RECEIPT: Final = {
    Outcome.CONFIRMED: "executed",
    Outcome.NOT_EXECUTED: "not_executed",
    Outcome.FAILED: "failed",
    Outcome.UNKNOWN: "unknown",
}
_OF_STATUS: Final = {
    CallStatus.REJECTED: "rejected",
    CallStatus.FENCED: "fenced",
    CallStatus.GRANTED: "executed",
    CallStatus.COMMITTED: "executed",
}


def group_of(call: CallState) -> str:
    """One of GROUPS. What the model says of a call plays no part."""
    if call.receipt is not None:
        return _OF_RECEIPT[call.receipt.outcome]
    return _OF_STATUS.get(call.status, "open")


def grouped(state: RunState) -> dict[str, list[CallState]]:
    found: dict[str, list[CallState]] = {name: [] for name in GROUPS}
    for call in state.calls.values():
        found[group_of(call)].append(call)
    return found


def ledger_lines(state: RunState) -> list[str]:
    """A line for each group: how many, and which."""
    return [
        f"  {name.replace('_', ' '):<13}{len(calls):>3}  {_listed(calls)}".rstrip()
        for name, calls in grouped(state).items()
        if calls or name in _ALWAYS
    ]


def _listed(calls: list[CallState]) -> str:
    """Calls by tool, in the order in which each tool came first."""
    by_tool: dict[str, list[str]] = {}
    for call in calls:
        by_tool.setdefault(one_line(call.tool, 60), []).append(label(call))
    return ", ".join(f"{tool} {' '.join(ids)}" for tool, ids in by_tool.items())


def label(call: CallState) -> str:
    """`3.1`; calls of the Host say so."""
    return f"{call.id} (Host)" if call.host is not None else str(call.id)


def tools_by_group(state: RunState) -> Mapping[str, list[dict[str, str]]]:
    """The same for programs."""
    return {
        name: [{"call": str(call.id), "tool": call.tool} for call in calls]
        for name, calls in grouped(state).items()
    }
