"""Owns what settles an unknown effect from outside: an operator's word, or the answer itself when it comes late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from engine.domain import events as e
from engine.domain.actors import Actor
from engine.domain.calls import Failed, NotExecuted, Outcome
from engine.domain.canonical import Json, JsonObject, clean_text, parse_json
from engine.domain.errors import Refused, UsageError
from engine.domain.ids import CallId, RunId
from engine.domain.policy import ToolSpec
from engine.domain.results import Storable, storable
from engine.domain.state import CallState, RunState
from engine.lifecycle.evidence import declared_fields, evidence_of
from engine.ports import Clock, EventStore, Secrets
from engine.runtime.attempts import no_such_call, record_attempt
from engine.runtime.dispatch import text_of
from engine.runtime.journal import Journal
from engine.runtime.library import PolicyLibrary
from engine.runtime.masking import masked_result

KNOWN = (Outcome.CONFIRMED, Outcome.NOT_EXECUTED, Outcome.FAILED)


@dataclass(frozen=True, slots=True)
class Finding:
    """What somebody found out about one call of unknown outcome."""

    outcome: Outcome
    """confirmed, not_executed or failed."""
    because: str
    """How it is known; recorded and shown to the model."""
    result: Json = None
    """What the tool would have answered, where it is known: a compensation may need a field of it."""


def reconcile(
    store: EventStore,
    clock: Clock,
    library: PolicyLibrary,
    run: RunId,
    call: CallId | str,
    by: Actor,
    finding: Finding,
    secrets: Secrets | None = None,
) -> RunState:
    """Records an operator's word about an unknown effect, also after the Run's end.

    Raises Refused (with the attempt recorded) for a call whose outcome is not in doubt, UsageError for an unknown
    call and for a finding that says nothing.
    """
    if finding.outcome not in KNOWN or not finding.because.strip():
        raise UsageError(
            "say what became of the call and how that is known", remedy="give outcome and because"
        )
    if not by.id:
        raise UsageError("nobody is named", remedy="an operator's word needs the operator's identity")
    journal = Journal(store, run, clock, secrets=secrets)
    journal.load()
    while True:
        state = journal.state
        unknown = _unknown(journal, state, call, by)
        spec = library.policy(state.bundle).tools[unknown.tool]
        stored = masked_result(storable(finding.result), secrets) if finding.result is not None else None
        receipt = e.ReceiptRecorded(
            call=unknown.id,
            tool=unknown.tool,
            outcome=finding.outcome,
            settled_by="operator",
            detail=finding.because,
            result=stored.result if stored is not None else None,
            fields=_fields(spec, stored),
        )
        if journal.say_with(receipt, by, _blobs(stored)):
            return journal.state


def late_answer(
    store: EventStore,
    clock: Clock,
    library: PolicyLibrary,
    run: RunId,
    call: CallId,
    by: Actor,
    key: str | None,
    answer: object,
    secrets: Secrets | None = None,
) -> RunState:
    """Records the tool's own answer to a call that was given up as unknown: the result, or what it would raise.

    `key` is the idempotency key that the call was sent with. Raises Refused for a stray answer: of no such call,
    with another key, or of a call that is settled already.
    """
    journal = Journal(store, run, clock, secrets=secrets)
    journal.load()
    while True:
        state = journal.state
        found = state.calls.get(call)
        if found is None or found.idempotency_key != key or call not in state.unknown_calls:
            raise Refused(
                f"the answer is a stray: Run `{run}` waits for none to call {call} with this key",
                remedy="an answer is matched by run, call and key, and only while the outcome is unknown",
            )
        spec = library.policy(state.bundle).tools[found.tool]
        receipt, blobs = late_receipt(spec, call, answer, clock, secrets)
        if journal.say_with(receipt, by, blobs):
            return journal.state


def late_receipt(
    spec: ToolSpec, call: CallId, answer: object, clock: Clock, secrets: Secrets | None
) -> tuple[e.ReceiptRecorded, dict[str, str]]:
    """What a late answer, or what the tool raised, makes of its call; with the texts that the receipt names."""
    late = e.ReceiptRecorded(
        call=call, tool=spec.name, outcome=Outcome.CONFIRMED, settled_by="tool", detail="late", late=True
    )
    if isinstance(answer, Failed | NotExecuted):
        outcome = Outcome.FAILED if isinstance(answer, Failed) else Outcome.NOT_EXECUTED
        said = clean_text(text_of(answer)[:2000])[0]
        return late.model_copy(update={"outcome": outcome, "detail": said or "late"}), {}
    stored = masked_result(storable(answer), secrets)
    found: dict[str, object] = {"result": stored.result, "fields": _fields(spec, stored)}
    if stored.result.fault is None:
        found["evidence"] = evidence_of(spec, _value(stored), clock.now())
    return late.model_copy(update=found), _blobs(stored)


def _fields(spec: ToolSpec, stored: Storable | None) -> JsonObject:
    if stored is None or stored.result.fault is not None:
        return {}
    return declared_fields(spec, _value(stored))


def _value(stored: Storable) -> Json:
    return stored.result.value if stored.blob is None else parse_json(stored.blob)


def _blobs(stored: Storable | None) -> dict[str, str]:
    return {} if stored is None or stored.blob is None else {str(stored.result.digest): stored.blob}


def _unknown(journal: Journal, state: RunState, call: CallId | str, by: Actor) -> CallState:
    """The call that is meant, if its outcome is unknown."""
    named = call if isinstance(call, CallId) else CallId.parse(call)
    found = state.calls.get(named) if named else None
    if found is None:
        raise no_such_call(journal, state, call, by, "reconcile")
    if found.id not in state.unknown_calls:
        _decline(journal, call, by, _why_not(found))
    return found


def _why_not(call: CallState) -> str:
    if call.receipt is not None:
        return f"it is known to be {call.receipt.outcome.value}"
    started = "it is under way; `agentctl resume` finds out what it can first"
    return started if call.attempts else "it was not started"


def _decline(journal: Journal, call: CallId | str, by: Actor, why: str) -> NoReturn:
    """Records the attempt, then raises Refused."""
    record_attempt(journal, call, by, "reconcile", why)
    raise Refused(f"call {call} cannot be reconciled: {why}", remedy="`agentctl show` lists unknown effects")
