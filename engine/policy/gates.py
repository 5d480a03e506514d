"""Owns the gates that a finish or a publication must pass: predicates over counted facts, with no text in view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from engine.domain.calls import CallStatus
from engine.domain.facts import Facts
from engine.domain.ids import CallId
from engine.domain.policy import Gate, Kind, Policy
from engine.domain.state import CallState, EvidenceState, RunState
from engine.policy.decision import ask
from engine.policy.view import SOURCE_AVAILABLE

IMPLICIT: Final = ("no_unsettled_calls", "no_pending_approvals", "no_unknown_effects", "run_may_end")
"""Always checked before a Run completes; no policy removes them."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate over one subject (an output, an effect, the text of a condition; empty for the implicit ones)."""

    name: str
    subject: str
    passed: bool
    objects: tuple[str, ...] = ()
    """What fails it: call ids, evidence handles, an output."""
    why: str = ""
    """One line for the model and for people; empty where it passed."""
    place: str = ""

    @property
    def title(self) -> str:
        return f"{self.name} {self.subject}".rstrip()


@dataclass(frozen=True, slots=True)
class CitedEvidence:
    """One piece of evidence that a publication cites, as far as gates may see it."""

    handle: str
    out_of_scope: str
    """Why, if its newest version is superseded or its source not usable; empty while in scope."""
    age: timedelta


@dataclass(frozen=True, slots=True)
class GateFacts:
    """All that a gate may read. It has no field for anything that a person or a model wrote."""

    unsettled: tuple[CallId, ...]
    pending_approvals: tuple[CallId, ...]
    unknown_effects: tuple[CallId, ...]
    held: tuple[CallId, ...]
    cancel_requested: bool
    draining: bool
    unheard: bool
    """The user said something after the model was asked for the turn that proposes this."""
    committed: frozenset[str]
    cited: Mapping[str, tuple[CitedEvidence, ...]]
    """Committed output -> the evidence it cites."""
    open_holds: Mapping[str, tuple[CallId, ...]]
    """Effect -> calls whose hold is open."""
    facts: Facts


def finish_gates(
    policies: Sequence[Policy], state: RunState, facts: Sequence[Facts], call: CallId | None = None
) -> list[GateResult]:
    """Every gate before the Run completes, implicit ones first, then those that any policy declares.

    `call` is the finish proposal itself: it is open, and no gate counts it. Its siblings that come later count as
    unsettled.
    """
    seen = [gate_facts(policy, state, each, call) for policy, each in zip(policies, facts, strict=True)]
    results = implicit_gates(seen[0])
    known: set[tuple[str, str]] = set()
    for policy, each in zip(policies, seen, strict=True):
        for gate in policy.gates:
            if (gate.name, gate.subject) not in known:
                known.add((gate.name, gate.subject))
                results.append(declared_gate(policy, gate, each))
    return results


def publication_gates(
    policies: Sequence[Policy],
    state: RunState,
    facts: Sequence[Facts],
    output: str,
    call: CallId | None = None,
) -> list[GateResult]:
    """The gates that `outputs.<name>.publish` declares."""
    results = []
    for policy, each in zip(policies, facts, strict=True):
        found = policy.outputs.get(output)
        if found is not None and found.publish is not None and found.publish.gates:
            seen = gate_facts(policy, state, each, call)
            results += [declared_gate(policy, gate, seen) for gate in found.publish.gates]
    return results


def only_unknown_effects(results: Iterable[GateResult]) -> bool:
    """True if nothing but effects of unknown outcome blocks: such a finish is held, not refused."""
    failed = {result.name for result in results if not result.passed}
    return failed == {"no_unknown_effects"}


def refusal_of(results: Iterable[GateResult]) -> str:
    """One line that names each failed gate with what fails it."""
    return "; ".join(f"{result.title}: {result.why}" for result in results if not result.passed)


# --- facts -------------------------------------------------------------------------------------------------


def gate_facts(policy: Policy, state: RunState, facts: Facts, call: CallId | None = None) -> GateFacts:
    """Counts what gates may read; `call` is left out of every count."""
    open_calls = [state.calls[each] for each in state.open_calls if each != call and each in state.calls]
    return GateFacts(
        unsettled=tuple(each.id for each in open_calls if not _awaits_people(each)),
        pending_approvals=tuple(each.id for each in open_calls if _awaits_people(each)),
        unknown_effects=tuple(each for each in state.unknown_calls if _has_effects(state, each)),
        held=tuple(each.id for each in open_calls if each.status is CallStatus.HELD),
        cancel_requested=state.cancel_requested is not None,
        draining=state.draining,
        unheard=_unheard(state),
        committed=frozenset(state.publications),
        cited={
            name: tuple(_cited(policy, state, facts, handle) for handle in publication.citations)
            for name, publication in state.publications.items()
        },
        open_holds=_open_holds(state),
        facts=facts,
    )


def _unheard(state: RunState) -> bool:
    return bool(state.turn and state.inputs and state.inputs[-1][0] > state.turn.asked_seq)


def _awaits_people(call: CallState) -> bool:
    return call.status is CallStatus.HELD and call.held in ("approval", "capability", "publication")


def _has_effects(state: RunState, call: CallId) -> bool:
    found = state.calls.get(call)
    return found is None or found.kind is not Kind.READ


def _open_holds(state: RunState) -> Mapping[str, tuple[CallId, ...]]:
    found: dict[str, list[CallId]] = {}
    for call in state.open_holds:
        for effect in state.calls[call].effects:
            found.setdefault(effect, []).append(call)
    return {effect: tuple(calls) for effect, calls in found.items()}


def _cited(policy: Policy, state: RunState, facts: Facts, handle: str) -> CitedEvidence:
    """Judged by the newest reading of the same thing: reading it again is how old evidence becomes young."""
    cited = state.evidence[handle]
    newest = state.evidence[state.evidence_index.get((cited.item.kind, cited.item.id), handle)]
    return CitedEvidence(handle, out_of_scope(policy, newest, facts), facts.now - newest.read_at)


def out_of_scope(policy: Policy, evidence: EvidenceState, facts: Facts) -> str:
    """Why evidence may not be cited now; empty while it may."""
    if evidence.superseded:
        return evidence.superseded
    if evidence.source is None:
        return ""
    status = str(facts.source.get(evidence.source, {}).get("state", SOURCE_AVAILABLE))
    use = policy.source_use.get(evidence.source)
    usable = {SOURCE_AVAILABLE} if use is None else use.usable_when
    return "" if status in usable else f"source {evidence.source} is {status}"


# --- gates -------------------------------------------------------------------------------------------------


def implicit_gates(facts: GateFacts) -> list[GateResult]:
    may_end = []
    if facts.cancel_requested:
        may_end.append("a cancel was asked for")
    if facts.draining:
        may_end.append("the policy drains")
    if facts.unheard:
        may_end.append("the user said something that you have not seen")
    if facts.held:
        may_end.append(f"held: {_ids(facts.held)}")
    return [
        _counted("no_unsettled_calls", facts.unsettled, "calls of this response that are not settled"),
        _counted("no_pending_approvals", facts.pending_approvals, "people have not decided"),
        _counted("no_unknown_effects", facts.unknown_effects, "effects of unknown outcome"),
        GateResult("run_may_end", "", not may_end, tuple(map(str, facts.held)), ", ".join(may_end)),
    ]


def _counted(name: str, calls: Sequence[CallId], what: str) -> GateResult:
    return GateResult(name, "", not calls, tuple(map(str, calls)), f"{what}: {_ids(calls)}" if calls else "")


def _ids(calls: Iterable[CallId]) -> str:
    return ", ".join(map(str, calls))


def declared_gate(policy: Policy, gate: Gate, facts: GateFacts) -> GateResult:
    """Judges one gate of the closed list."""
    if gate.name == "output_committed":
        why, objects = _committed(gate.subject, facts)
    elif gate.name == "citations_eligible":
        why, objects = _eligible(policy, gate.subject, facts)
    elif gate.name == "holds_closed":
        calls = facts.open_holds.get(gate.subject, ())
        why, objects = (f"open: {_ids(calls)}" if calls else ""), tuple(map(str, calls))
    else:
        truth = False if gate.when is None else ask(gate.when, facts.facts)
        state = "false" if truth is False else "not known"
        why, objects = ("" if truth is True else f"it is {state}"), ()
    return GateResult(gate.name, gate.subject, not why, objects, why, f"{gate.place.file}:{gate.place.line}")


def _committed(output: str, facts: GateFacts) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if output in facts.committed else ("it is not published", (output,))


def _eligible(policy: Policy, output: str, facts: GateFacts) -> tuple[str, tuple[str, ...]]:
    if output not in facts.committed:
        return "it is not published", (output,)
    declared = policy.outputs.get(output)
    max_age = declared.citations.max_age if declared is not None and declared.citations is not None else None
    faults: dict[str, str] = {}
    for cited in facts.cited.get(output, ()):
        if cited.out_of_scope:
            faults[cited.handle] = f"{cited.handle} is out of scope ({cited.out_of_scope})"
        elif max_age is not None and cited.age > max_age:
            faults[cited.handle] = f"{cited.handle} is {_hours(cited.age)} old, {_hours(max_age)} allowed"
    return "; ".join(faults.values()), tuple(faults)


def _hours(age: timedelta) -> str:
    seconds = int(age.total_seconds())
    for size, unit in ((3600, "h"), (60, "m")):
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            return f"{whole}{unit}" if not rest or whole >= 10 else f"{seconds / size:.1f}{unit}"
    return f"{seconds}s"
