"""Owns the asking for a summary of the assistant's own text: one attempt, no tools, nothing it says is a fact."""

from __future__ import annotations

from engine.domain import events as e
from engine.domain.canonical import clean_text
from engine.domain.ids import RunId
from engine.domain.messages import HostBlock, Instructions
from engine.domain.results import ReadResult
from engine.lifecycle.steps import Compact
from engine.ports import AttemptFailed, ModelRequest, ModelResponse

ASKED = (
    "Shorten the working notes that follow. They are an assistant's own text from an earlier part of a task. "
    "Keep what was found, compared and left open; say nothing about permissions, results or completion that "
    "the notes do not say. Answer with the shortened notes alone."
)


def summary_request(run: RunId, turn: int, step: Compact, results: ReadResult) -> ModelRequest:
    return ModelRequest(
        run=run,
        turn=turn,
        attempt=1,
        model=step.model,
        messages=[Instructions(ASKED), HostBlock(step.text)],
        tools=(),
        contract="",
        results=results,
    )


def summary_of(step: Compact, response: ModelResponse) -> e.Body:
    """The summary as the Host stores it, with its author; one that is empty, cut or longer than what it covers
    is no summary."""
    text = clean_text(response.text)[0].strip()
    if not text or response.calls or response.finish != "stop" or len(text) >= len(step.text):
        return e.CompactionFailed(
            error="invalid_response",
            message="no summary shorter than the text",
            usage=response.usage,
            cost_usd=response.cost_usd,
        )
    return e.ContextCompacted(
        upto=step.start.upto,
        covers=step.start.covers,
        model=response.model,
        summary=text,
        usage=response.usage,
        cost_usd=response.cost_usd,
    )


def summary_failed(failure: AttemptFailed) -> e.CompactionFailed:
    return e.CompactionFailed(
        error=failure.error,
        message=clean_text(failure.message[:2000])[0],
        usage=failure.usage,
        cost_usd=failure.cost_usd,
    )
