"""Owns the part of the fold that concerns evidence: what a receipt brings, and what puts it out of scope."""

from __future__ import annotations

from engine.domain import events as e
from engine.domain.ids import CallId
from engine.domain.policy import Kind
from engine.domain.state import CallState, EvidenceState, Notice, RunState

SOURCELESS = "-"
"""Tools that name no source count as one source."""


def supersede(state: RunState, handle: str, why: str) -> None:
    """The evidence is out of scope from now on, and publications that rest on it say so."""
    evidence = state.evidence[handle]
    if evidence.superseded:
        return
    evidence.superseded = why
    kind, id_ = evidence.item.kind, evidence.item.id
    if state.newest_evidence.get(kind) == id_ and state.evidence_index.get((kind, id_)) == handle:
        del state.newest_evidence[kind]
    flag(state, handle, why)


def flag(state: RunState, handle: str, why: str) -> None:
    for publication in state.publications.values():
        said = f"{handle}: {why}"
        if handle in publication.evidence and said not in publication.flags:
            publication.flags.append(said)


def changes_of(call: CallState) -> tuple[str, ...]:
    """What a write or hybrid changes: its effects, and its source."""
    if call.kind is Kind.READ:
        return ()
    return (*call.effects, f"source:{call.source or SOURCELESS}")


def written(state: RunState, event: e.Event, call: CallState) -> tuple[str, ...]:
    """Earlier answers that depend on what this call changes are not used again."""
    names = changes_of(call)
    for name in names:
        state.written[name] = event.seq
    return names


def invalidate(state: RunState, event: e.Event, call: CallState) -> None:
    """A confirmed or unknown write makes earlier answers out of date, and the model hears of it."""
    found: dict[CallId, None] = {}
    for name in written(state, event, call):
        found.update(state.current_reads.pop(name, {}))
    outdated = tuple(read for read in found if state.calls[read].outdated_at == 0)
    for read in outdated:
        state.calls[read].outdated_at = event.seq
        receipt = state.calls[read].receipt
        for handle in receipt.evidence if receipt else ():
            supersede(state, handle, f"made out of date by call {call.id}")
    if outdated:
        state.notices.append(Notice(event.seq, outdated, "outdated", call.id))


def read_confirmed(state: RunState, event: e.Event, call: CallState) -> None:
    if call.source is not None:
        state.source_read[call.source] = event.recorded_at
    for name in call.outdated_by or (f"source:{call.source or SOURCELESS}",):
        state.current_reads.setdefault(name, {})[call.id] = None
    if call.cache_key is not None and call.receipt is not None and call.receipt.cached_from is None:
        state.cached[call.cache_key] = call.id
    key = (call.tool, call.args_digest)
    older = state.last_read.get(key)
    state.last_read[key] = call.id
    if older is not None and call.receipt is not None and call.receipt.cached_from is None:
        _read_again(state, older, call)


def _read_again(state: RunState, older: CallId, call: CallState) -> None:
    """The older answer is superseded; a publication that rests on it is flagged only if the answer differs."""
    before, now = state.calls[older].receipt, call.receipt
    assert now is not None
    for handle in before.evidence if before else ():
        if handle in now.evidence:
            continue
        why = f"read again as call {call.id}"
        if before is not None and _same_answer(before.result, now.result):
            state.evidence[handle].superseded = state.evidence[handle].superseded or why
        else:
            supersede(state, handle, f"{why}, with another answer")


def _same_answer(one: e.StoredResult | None, other: e.StoredResult | None) -> bool:
    if one is None or other is None:
        return False
    return (one.value, one.digest, one.fault) == (other.value, other.digest, other.fault)


def evidence_brought(
    state: RunState, event: e.Event, call: CallState, body: e.ReceiptRecorded
) -> tuple[str, ...]:
    if body.cached_from is not None:
        original = state.calls[body.cached_from].receipt
        return original.evidence if original else ()
    handles = []
    for item in body.evidence:
        handle = f"E{len(state.evidence) + 1}"
        state.evidence[handle] = EvidenceState(
            handle, item, call.id, call.tool, call.source, body.obtained_at or event.recorded_at
        )
        state.evidence_index[item.kind, item.id] = handle
        state.newest_evidence[item.kind] = item.id
        handles.append(handle)
        for grant in call.grants:
            state.grants[grant].evidence.append(handle)
    return tuple(handles)
