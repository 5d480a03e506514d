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
"""Code points of one result that the model is shown at most; the log keeps the whole."""
SHOWN_LEAST = 2000
"""Code points of one result that are shown however little a request may hold."""
STUB_HANDLES = 2000
"""Code points of the evidence handles that a stub keeps."""
UNREADABLE_SHOWN = 2000
"""Code points of unreadable arguments that the model is shown again."""


Evidence = tuple[tuple[str, str, str], ...]
"""(handle, kind, id) of what a result brought."""


def room_for_one(max_input_tokens: int | None) -> int:
    """Code points of one result, or of one call's arguments: about a quarter of what a request may hold, so that no
    single one fills it."""
    if max_input_tokens is None:
        return SHOWN_LIMIT
    return max(SHOWN_LEAST, min(SHOWN_LIMIT, max_input_tokens * 3 // 4))


def result_of(call: CallState, state: RunState, read: ReadResult, limit: int = SHOWN_LIMIT) -> CallResult:
    """The one result of one proposal, as the model reads it, in at most about `limit` code points."""
    receipt = call.told or call.receipt
    outcome, said, is_error = _say(call, receipt)
    stored = receipt.result if receipt else None
    evidence = _evidence(call, state)
    if stored is not None and outcome == Outcome.CONFIRMED.value:
        said["result"] = read(stored) if stored.fault is None else None
        if stored.fault is not None:
            said["result_fault"] = stored.fault
    if evidence:
        said["evidence"] = _handles(evidence)
    if call.held == "question" and stored is not None:
        return CallResult(call.id, call.tool, outcome, str(stored.value), False, stored)
    return CallResult(call.id, call.tool, outcome, _within(said, evidence, limit), is_error, stored, evidence)


def _within(said: dict[str, Json], evidence: Evidence, limit: int) -> str:
    """What is said as JSON. Of a result that is too long the beginning is shown, and the handles all the same: what
    cannot be seen can be cited and read again."""
    text = _text(said)
    if len(text) <= limit:
        return text
    kept = {name: value for name, value in said.items() if name not in ("result", "evidence")}
    kept |= _fitting(evidence, limit // 2)
    if "result" in said:
        whole = _dumped(_ordered(said["result"]))
        kept |= _beginning(whole, max(0, limit - len(_text(kept)) - 100))
    return bounded(_text(kept), limit)


def _beginning(whole: str, room: int) -> dict[str, Json]:
    shown = whole[:room]
    while shown and (size := len(_dumped(shown))) > room:
        shown = shown[: min(len(shown) - 1, len(shown) * room // size)]
    return {
        "result_begins": shown,
        "result_cut": f"the Host shows {len(shown)} of {len(whole)} characters",
    }


def _fitting(evidence: Evidence, room: int) -> dict[str, Json]:
    """As many handles as have room, and how many there are."""
    shown: list[Json] = []
    for handle in _handles(evidence):
        room -= len(_dumped(handle)) + 1
        if room < 0:
            return {
                "evidence": shown,
                "evidence_cut": f"the Host shows {len(shown)} of {len(evidence)} handles",
            }
        shown.append(handle)
    return {"evidence": shown} if shown else {}


def _handles(evidence: Evidence) -> list[Json]:
    return [{"handle": handle, "kind": kind, "id": id_} for handle, kind, id_ in evidence]


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
        said |= _fitting(evidence, STUB_HANDLES)
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
    return _dumped({name: _ordered(value) for name, value in said.items()})


def _dumped(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _ordered(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def _evidence(call: CallState, state: RunState) -> Evidence:
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


def bounded(text: str, limit: int = SHOWN_LIMIT) -> str:
    """At most `limit` code points, with a mark of the Host where it was cut."""
    if len(text) <= limit:
        return text
    return text[:limit] + f"… [the Host shows {limit} of {len(text)} characters]"


def shown_arguments(proposal: Proposal | None, limit: int = SHOWN_LIMIT) -> dict[str, Json]:
    """Always a JSON object: an unreadable or a far too long text is shown as its beginning, so that the next request
    is valid and has room."""
    raw = proposal.arguments if proposal else ""
    if len(raw) > limit:
        return _unreadable(raw)
    try:
        value = parse_json(raw) if raw.strip() else {}
    except NotJson:
        return _unreadable(raw)
    if isinstance(value, dict):
        return value
    return {} if value is None else _unreadable(raw)


def _unreadable(raw: str) -> dict[str, Json]:
    """The beginning is enough for the model to see what it wrote; the log keeps the whole."""
    return {UNPARSED: bounded(raw, UNREADABLE_SHOWN)}


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
