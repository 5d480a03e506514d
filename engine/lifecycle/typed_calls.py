"""Owns how the API shows what became of tool calls: a read, a write or a hybrid, each with what is true of its kind."""

from __future__ import annotations

from datetime import datetime

from engine.domain.calls import HybridCall, Outcome, ReadCall, ToolCall, WriteCall
from engine.domain.canonical import Json
from engine.domain.policy import Kind
from engine.domain.results import ReadResult
from engine.domain.state import CallState, RunState


def calls_of(state: RunState, read: ReadResult | None = None) -> list[ToolCall]:
    """The model's calls of tools that the Host let pass, by turn and ordinal, open ones included.

    `read` gives large results by digest; without it they are None. Proposals that were rejected or fenced, calls
    of the Host and built-in tools are no tool calls.
    """
    found = [call for call in state.calls.values() if call.kind is not None and call.host is None]
    return [_typed(call, state, read) for call in sorted(found, key=lambda call: call.id)]


def _typed(call: CallState, state: RunState, read: ReadResult | None) -> ToolCall:
    outcome = call.receipt.outcome if call.receipt else None
    args, result = dict(call.args or {}), _result(call, read)
    if call.kind is Kind.READ:
        return ReadCall(call.id, call.tool, args, outcome, result, cached_at=_cached_at(call, state))
    if call.kind is Kind.WRITE:
        return WriteCall(call.id, call.tool, args, outcome, result, call.started_at, call.approved_by)
    happened = outcome in (Outcome.CONFIRMED, Outcome.UNKNOWN)
    effects = call.effects if happened else ()
    return HybridCall(
        call.id, call.tool, args, outcome, result, call.started_at, call.approved_by, effects, call.reversible
    )


def _result(call: CallState, read: ReadResult | None) -> Json:
    stored = call.receipt.result if call.receipt else None
    if stored is None or stored.fault is not None:
        return None
    if stored.digest is None:
        return stored.value
    return read(stored) if read is not None else None


def _cached_at(call: CallState, state: RunState) -> datetime | None:
    """When the answer was first obtained, if it came from the cache."""
    receipt = call.receipt
    if receipt is None or receipt.cached_from is None:
        return None
    first = state.calls[receipt.cached_from].receipt
    return receipt.obtained_at or (first.at if first is not None else None)
