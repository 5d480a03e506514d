"""Owns how the model is told what became of one call: its one result, in the Host's words, and its stub."""

from __future__ import annotations

import json

from engine.domain.calls import CallStatus, Outcome
from engine.domain.canonical import Json, NotJson, parse_json
from engine.domain.events import Proposal
from engine.domain.messages import UNPARSED, CallResult
from engine.domain.policy import Kind
from engine.domain.results import ReadResult
from engine.domain.state import CallState, Notice, ReceiptState, RunState

SHOWN_LIMIT = 64 * 1024
"""Code points of one result that the model is shown; the log keeps the whole."""
UNREADABLE_SHOWN = 2000
"""Code points of unreadable arguments that the model is shown again."""


def result_of(call: CallState, state: RunState, read: ReadResult) -> CallResult:
    """The one result of one proposal, as the model reads it."""
    receipt = call.told or call.receipt
    outcome, said, is_error = _say(call, receipt)
    stored = receipt.result if receipt else None
    evidence = _evidence(call, state)
    if stored is not None and outcome == Outcome.CONFIRMED.value:
        said["result"] = read(stored) if stored.fault is None else None
        if stored.fault is not None:
            said["result_fault"] = stored.fault
    if evidence:
        said["evidence"] = [{"handle": handle, "kind": kind, "id": id_} for handle, kind, id_ in evidence]
    if call.held == "question" and stored is not None:
        return CallResult(call.id, call.tool, outcome, str(stored.value), False, stored)
    return CallResult(call.id, call.tool, outcome, bounded(_text(said)), is_error, stored, evidence)


def stub_of(call: CallState, state: RunState, why: str, *, keep_evidence: bool) -> CallResult:
    """What stands in the place of a read's result that was left out: tool, arguments, outcome, evidence handles."""
    said: dict[str, Json] = {
        "outcome": call.receipt.outcome.value if call.receipt else "unknown",
        "call": str(call.id),
        "arguments": dict(call.args or {}),
        "omitted": f"the Host left the result out ({why}); propose the read again to see it",
    }
    evidence = _evidence(call, state)
    if keep_evidence and evidence:
        said["evidence"] = [{"handle": handle, "kind": kind, "id": id_} for handle, kind, id_ in evidence]
    stored = call.receipt.result if call.receipt else None
    return CallResult(call.id, call.tool, str(said["outcome"]), _text(said), False, stored, evidence)


LEDGER_LIMIT = 50
"""Calls that changed something, of turns that are left out, which are still named one by one."""


def ledger(state: RunState, upto: int) -> str:
    """What stands in the place of whole turns: how often what was read, and what was changed, as recorded."""
    counts: dict[str, int] = {}
    changes: list[str] = []
    for turn in state.turns[:upto]:
        for call in map(state.calls.__getitem__, turn.calls):
            outcome = call.receipt.outcome.value if call.receipt else call.status.value
            if call.kind in (Kind.WRITE, Kind.HYBRID) and call.receipt is not None:
                args = _text(dict(sorted((call.args or {}).items())))
                changes.append(f"- {call.id} {call.tool} {args[:200]}: {outcome}")
            else:
                counts[f"{call.tool} {outcome}"] = counts.get(f"{call.tool} {outcome}", 0) + 1
    lines = [
        f"The Host left out turns 1 to {upto}: they do not fit into the context. What it recorded of them:"
    ]
    if len(changes) > LEDGER_LIMIT:
        lines.append(f"- {len(changes) - LEDGER_LIMIT} earlier calls that changed something")
    lines += changes[-LEDGER_LIMIT:]
    lines += [f"- {count} x {name}" for name, count in counts.items()]
    return "\n".join(lines)


READ_LIMIT = 8_000
"""Code points of one result that a summary is made of."""


def read_of(call: CallState, state: RunState, read: ReadResult) -> str:
    """One read with its result, for a summary that covers read results."""
    args = _text(dict(sorted((call.args or {}).items())))
    return f"{call.tool} {args}: {result_of(call, state, read).text[:READ_LIMIT]}"


def _text(said: dict[str, Json]) -> str:
    """Values in the order in which the log keeps them: a request is the same when it is made again from it."""
    ordered = {name: _ordered(value) for name, value in said.items()}
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))


def _ordered(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def _evidence(call: CallState, state: RunState) -> tuple[tuple[str, str, str], ...]:
    receipt = call.told or call.receipt
    return tuple(
        (handle, state.evidence[handle].item.kind, state.evidence[handle].item.id)
        for handle in (receipt.evidence if receipt else ())
    )


def news(state: RunState, notice: Notice) -> str:
    """What the model must hear of results that it was shown."""
    calls = ", ".join(f"{call} ({state.calls[call].tool})" for call in notice.about)
    if notice.kind == "outdated":
        return f"Host record: call {notice.by} may have made these earlier results out of date: {calls}"
    call = state.calls[notice.about[0]]
    known = call.receipt.outcome.value if call.receipt else "unknown"
    detail = f": {call.receipt.detail}" if call.receipt and call.receipt.detail else ""
    return f"Host record: the outcome of call {calls} is now known: {known}{detail}"


def bounded(text: str) -> str:
    """At most SHOWN_LIMIT code points, with a mark of the Host where it was cut."""
    if len(text) <= SHOWN_LIMIT:
        return text
    return text[:SHOWN_LIMIT] + f"… [the Host shows {SHOWN_LIMIT} of {len(text)} characters]"


def shown_arguments(proposal: Proposal | None) -> dict[str, Json]:
    """Always a JSON object: an unreadable text is shown as what it was, so that the next request is valid."""
    raw = proposal.arguments if proposal else ""
    try:
        value = parse_json(raw) if raw.strip() else {}
    except NotJson:
        return _unreadable(raw)
    if isinstance(value, dict):
        return value
    return {} if value is None else _unreadable(raw)


def _unreadable(raw: str) -> dict[str, Json]:
    """The beginning is enough for the model to see what it wrote; the log keeps the whole."""
    if len(raw) <= UNREADABLE_SHOWN:
        return {UNPARSED: raw}
    return {
        UNPARSED: f"{raw[:UNREADABLE_SHOWN]}… [the Host shows {UNREADABLE_SHOWN} of {len(raw)} characters]"
    }


def _say(call: CallState, receipt: ReceiptState | None) -> tuple[str, dict[str, Json], bool]:
    """(outcome, what is said, whether it is an error) of a call that came to an end, as it was shown first."""
    status = call.status
    if status is CallStatus.REJECTED and call.refusal is not None:
        said: dict[str, Json] = {
            "outcome": "rejected",
            "error": call.refusal.code,
            "message": call.refusal.message,
        }
        if call.refusal.field:
            said["field"] = call.refusal.field
        if call.refusal.gates:
            said["gates"] = list(call.refusal.gates)
        return "rejected", said, True
    if status is CallStatus.FENCED:
        message = f"not executed: the tool contract changed ({call.detail}); propose again under the new one"
        return "fenced", {"outcome": "fenced", "error": "contract_changed", "message": message}, True
    if status in (CallStatus.GRANTED, CallStatus.COMMITTED):
        return status.value, {"outcome": status.value}, False
    if receipt is None:
        return "unknown", {"outcome": "unknown", "message": "not reached"}, True
    said = {"outcome": receipt.outcome.value}
    if receipt.detail:
        said["message"] = receipt.detail
    if receipt.denial:
        said["denial"] = receipt.denial
    if call.amended is not None:
        said["amended"] = {
            "by": call.amended.by,
            "proposed": call.amended.original_args,
            "now": dict(call.args or {}),
            "message": "a person changed the arguments: the outcome is that of the call as amended",
        }
    if receipt.cached_from is not None:
        said["from_call"] = str(receipt.cached_from)
    return receipt.outcome.value, said, receipt.outcome is not Outcome.CONFIRMED
