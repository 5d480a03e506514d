"""Owns what is stored of a model's answer: the closed turn, or the attempt that brought none."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from engine.domain import events as e
from engine.domain.canonical import NotJson, canonical, clean_text
from engine.ports import AttemptFailed, ModelResponse, ProposedCall, Secrets
from engine.runtime.masking import named_in

ARGUMENTS_LIMIT = 256 * 1024
"""Code points of one call's raw arguments that are stored; a longer text is cut and the call rejected."""
NAME_LIMIT = 300
"""Code points of a name or an id that a provider gives."""


def attempt_failed(
    start: e.ModelAttemptStarted, failure: AttemptFailed, cost_usd: Decimal | None
) -> e.ModelAttemptFailed:
    """The attempt's end. Without usage its reservation stays charged."""
    return e.ModelAttemptFailed(
        turn=start.turn,
        attempt=start.attempt,
        error=failure.error,
        message=clean_text(failure.message[:2000])[0],
        retry_after=failure.retry_after,
        usage=failure.usage,
        cost_usd=cost_usd,
    )


def closed_turn(
    start: e.ModelAttemptStarted,
    response: ModelResponse,
    cost_usd: Decimal | None,
    secrets: Secrets | None = None,
) -> e.ModelTurnRecorded:
    """The closed response as the Host stores it, in the order and the words in which it came.

    Of arguments that hold a registered secret, only the secret's name is kept. Opaque parts are kept byte for
    byte, or not at all where the Host keeps something else than the model wrote.
    """
    proposals = tuple(
        _proposal(ordinal, call, secrets) for ordinal, call in enumerate(response.calls, start=1)
    )
    text, altered = clean_text(response.text)
    altered = altered or any(proposal.secret is not None for proposal in proposals)
    altered = altered or _holds_secret([text, *response.parts], secrets)
    return e.ModelTurnRecorded(
        turn=start.turn,
        attempt=start.attempt,
        model=clean_text(response.model[:NAME_LIMIT])[0],
        contract=start.contract,
        epoch=start.epoch,
        text=text,
        parts=() if altered else response.parts,
        proposals=proposals,
        finish=response.finish,
        usage=response.usage,
        cost_usd=cost_usd,
        request_id=clean_text(response.request_id[:NAME_LIMIT])[0] if response.request_id else None,
        state_versions=start.state_versions,
    )


def _proposal(ordinal: int, call: ProposedCall, secrets: Secrets | None) -> e.Proposal:
    secret = named_in(call.arguments, secrets)
    given = call.arguments if secret is None else f"[secret {secret}]"
    text, sanitised = clean_text(given[:ARGUMENTS_LIMIT])
    return e.Proposal(
        ordinal=ordinal,
        tool=clean_text(call.tool[:NAME_LIMIT])[0],
        arguments=text,
        provider_id=clean_text(call.provider_id[:NAME_LIMIT])[0] if call.provider_id else None,
        cut_from=len(given) if len(given) > ARGUMENTS_LIMIT else None,
        sanitised=sanitised,
        secret=secret,
    )


def _holds_secret(values: Sequence[object], secrets: Secrets | None) -> bool:
    if secrets is None:
        return False
    try:
        return secrets.find(canonical(list(values))) is not None
    except NotJson:
        return False
