"""Owns one dispatch: a tool is called once and its answer becomes a receipt, whatever the answer is."""

from __future__ import annotations

import logging
import time
import traceback
from dataclasses import dataclass, field

from engine.domain.calls import Failed, NotExecuted, Outcome
from engine.domain.canonical import JsonObject, clean_text, parse_json
from engine.domain.events import EvidenceItem, ExecutionStarted, ReceiptRecorded
from engine.domain.ids import RunId
from engine.domain.policy import Kind, Retry, ToolSpec
from engine.domain.results import Storable, storable
from engine.lifecycle.evidence import declared_fields, evidence_of, slice_fields
from engine.ports import Clock, Left, Secrets, ToolExecutor, ToolRequest
from engine.runtime.masking import masked_result

_log = logging.getLogger("agentctl.tools")


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What came back: the receipt, and the texts of results too large to stand in it."""

    receipt: ReceiptRecorded
    blobs: dict[str, str] = field(default_factory=dict)


async def dispatch(
    executor: ToolExecutor,
    clock: Clock,
    run: RunId,
    spec: ToolSpec,
    start: ExecutionStarted,
    secrets: Secrets | None = None,
    left: Left | None = None,
) -> Dispatched:
    """Calls the tool. Only what the tool itself declares (`Failed`, `NotExecuted`) is known of a write's effect;
    any other exception or a time-out leaves it unknown, and so does a `NotExecuted` of a call whose first sending
    may have had its effect. Never raises but for cancellation. Secrets in an answer are masked before anything is
    made of it."""
    request = ToolRequest(
        run, start.call, spec, start.args, clock.now(), start.idempotency_key, start.attempt, left
    )
    began = time.perf_counter()
    try:
        answer = await executor.execute(request)
    except Failed as failure:
        return _receipt(start, Outcome.FAILED, text_of(failure) or "the tool reports a failure", began)
    except NotExecuted as failure:
        said = text_of(failure) or "the tool did nothing"
        if sent_before(spec, start):
            return _receipt(
                start, Outcome.UNKNOWN, f"sent again: {said}; of the time before nothing is known", began
            )
        return _receipt(start, Outcome.NOT_EXECUTED, said, began)
    except TimeoutError:
        seconds = spec.timeout.total_seconds()
        return _receipt(start, _lost(start), f"no answer within {seconds:g} s", began)
    except Exception as error:  # noqa: BLE001 - a tool may raise anything; its outcome is what is recorded
        masked = secrets.mask if secrets is not None else str
        _log.error("call %s of run %s: tool %s raised %s", start.call, run, start.tool, masked(_said(error)))
        _log.debug("%s", masked("".join(traceback.format_exception(error))))
        return _receipt(start, _lost(start), f"the tool raised {type(error).__name__}", began)
    return _confirmed(spec, start, masked_result(storable(answer), secrets), clock, began)


def sent_before(spec: ToolSpec, start: ExecutionStarted) -> bool:
    """Under `same_key` a call is sent again only where nobody knows what the sending before did."""
    return start.attempt > 1 and start.tool_kind is not Kind.READ and spec.retry is Retry.SAME_KEY


def text_of(error: BaseException) -> str:
    """What was raised says, if it can say anything: the text of a tool's exception is the tool's own code."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever that code does, the outcome of the call is recorded
        return ""


def _said(error: Exception) -> str:
    """On one line: what was raised, and where. The traceback is for the level below."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    text = " ".join(f"{type(error).__name__}: {text_of(error)}".split())
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text[:500]) + place


def _lost(start: ExecutionStarted) -> Outcome:
    """A read has no effect to be unknown."""
    return Outcome.FAILED if start.tool_kind is Kind.READ else Outcome.UNKNOWN


def _confirmed(
    spec: ToolSpec, start: ExecutionStarted, stored: Storable, clock: Clock, began: float
) -> Dispatched:
    fields: JsonObject = {}
    evidence: tuple[EvidenceItem, ...] = ()
    value = None
    if stored.result.fault is None:
        value = stored.result.value if stored.blob is None else parse_json(stored.blob)
        fields = declared_fields(spec, value)
        evidence = evidence_of(spec, value, clock.now())
    if start.host is not None and start.host.purpose == "refresh":
        read = slice_fields(spec, value)
        if isinstance(read, str):
            return _receipt(start, Outcome.FAILED, read, began)
        fields = read
    receipt = ReceiptRecorded(
        call=start.call,
        tool=start.tool,
        outcome=Outcome.CONFIRMED,
        settled_by="tool",
        result=stored.result,
        fields=fields,
        evidence=evidence,
        duration_ms=_elapsed(began),
    )
    blobs = {} if stored.blob is None else {str(stored.result.digest): stored.blob}
    return Dispatched(receipt, blobs)


def _receipt(start: ExecutionStarted, outcome: Outcome, detail: str, began: float) -> Dispatched:
    return Dispatched(
        ReceiptRecorded(
            call=start.call,
            tool=start.tool,
            outcome=outcome,
            settled_by="host" if outcome is Outcome.UNKNOWN else "tool",
            detail=clean_text(detail[:2000])[0],
            duration_ms=_elapsed(began),
        )
    )


def _elapsed(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)
