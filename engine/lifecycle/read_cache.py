"""Owns the read cache: a typed handle on an answer, valid until its time is over or a write may have changed it.

Nothing is kept apart from the log: a hit is found among the Run's own receipts, is a receipt of its own, and
never skips permission. Writes and hybrids are never answered from here.
"""

from __future__ import annotations

from datetime import timedelta

from engine.domain import events as e
from engine.domain.calls import Outcome
from engine.domain.canonical import Json, digest_of
from engine.domain.facts import Facts, Unknown
from engine.domain.policy import CacheSpec, Policy, ToolSpec
from engine.domain.state import CallState, RunState
from engine.lifecycle.fold_evidence import SOURCELESS
from engine.lifecycle.present import Present
from engine.lifecycle.provenance import edges_of
from engine.policy.verdicts import Run
from engine.policy.view import as_json, look


def cache_key(spec: ToolSpec, args: dict[str, Json], facts: Facts) -> str | None:
    """The key of an answer: tool, spec, the declared parts of the key, the principal; None if a part is not known."""
    declared = spec.cache
    if declared is None:
        return None
    parts: list[Json] = []
    for name in declared.key:
        if name in spec.params:
            parts.append(args.get(name))
            continue
        value = look(facts, name)
        if isinstance(value, Unknown):
            return None
        parts.append(as_json(value))
    return digest_of([spec.name, spec.digest, parts, facts.principal.get("id", "")])


def hit(present: Present, call: CallState, verdict: Run, key: str | None) -> e.ReceiptRecorded | None:
    """The receipt of a cache hit, naming the call that obtained the answer; None if there is no valid one."""
    spec, state = verdict.spec, present.state
    if key is None or spec.cache is None:
        return None
    first = state.calls.get(state.cached[key]) if key in state.cached else None
    if first is None or first.receipt is None or first.receipt.outcome is not Outcome.CONFIRMED:
        return None
    if first.receipt.result is None or first.receipt.result.fault is not None:
        return None
    age = present.now - first.receipt.at
    if age > _lifetime(present.policy, spec, spec.cache) or _written_since(state, spec, first):
        return None
    return e.ReceiptRecorded(
        call=call.id,
        tool=call.tool,
        outcome=Outcome.CONFIRMED,
        settled_by="cache",
        detail=f"from call {first.id}, {max(0, int(age.total_seconds()))} s old",
        args=verdict.args,
        cached_from=first.id,
        obtained_at=first.receipt.at,
        edges=edges_of(present.provenance, spec, verdict.args, state),
    )


def _lifetime(policy: Policy, spec: ToolSpec, declared: CacheSpec) -> timedelta:
    """The ttl, at most the `max_age` of the source."""
    use = policy.source_use.get(spec.source) if spec.source else None
    return declared.ttl if use is None or use.max_age is None else min(declared.ttl, use.max_age)


def _written_since(state: RunState, spec: ToolSpec, first: CallState) -> bool:
    """True if a confirmed or unknown write with a declared effect came after the read was sent, or is under way.

    A read that was in flight while the write happened was sent before it, so its answer is not used either. While
    nobody knows what became of a write, it may still arrive: no answer is used again.
    """
    assert spec.cache is not None
    declared = spec.cache.invalidated_by
    names = (f"source:{spec.source or SOURCELESS}",) if declared is None else declared
    if any(state.written.get(name, 0) > first.started_seq for name in names):
        return True
    return any(name in state.unsettled.by_change for name in names)
