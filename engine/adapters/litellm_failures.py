"""Owns the reading of litellm's exceptions: by class and status, never by wording."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from engine.domain.canonical import clean_text
from engine.domain.events import Usage
from engine.domain.policy import ModelUse
from engine.ports import AttemptError, AttemptFailed

MAX_MESSAGE = 300
_BY_CLASS: tuple[tuple[str, AttemptError], ...] = (
    ("ContextWindowExceededError", "context_too_long"),
    ("RateLimitError", "rate_limited"),
    ("AuthenticationError", "auth"),
    ("PermissionDeniedError", "auth"),
    ("PaymentRequiredError", "auth"),
    ("Timeout", "timeout"),
    ("MidStreamFallbackError", "cut"),
    ("APIResponseValidationError", "invalid_response"),
    ("BadRequestError", "bad_request"),
    ("NotFoundError", "bad_request"),
    ("UnprocessableEntityError", "bad_request"),
    ("ServiceUnavailableError", "unavailable"),
    ("BadGatewayError", "unavailable"),
    ("InternalServerError", "unavailable"),
    ("APIConnectionError", "unavailable"),
)
"""litellm class -> error class; the first that fits counts, subclasses before their bases."""
_BY_STATUS: dict[int, AttemptError] = {
    401: "auth", 402: "auth", 403: "auth", 408: "timeout", 413: "context_too_long", 429: "rate_limited", 504: "timeout"
}  # fmt: skip
_NOT_BEGUN = frozenset({"auth", "bad_request", "context_too_long", "rate_limited"})
"""Answers with which a provider refuses a request before it works on it: nothing is charged."""
_NEEDS_NO_KEY = frozenset(
    {"ollama", "ollama_chat", "lm_studio", "vllm", "hosted_vllm", "llamafile", "xinference"}
)
_SECRET_NAMES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")


def attempt_failed(
    error: Exception, use: ModelUse, seconds: float, options: Mapping[str, object]
) -> AttemptFailed:
    """The attempt's failure as the loop records it."""
    if isinstance(error, TimeoutError):
        return AttemptFailed("timeout", f"model `{use.id}` did not answer within {seconds:g} s")
    kind = _class_of(error)
    status = getattr(error, "status_code", None)
    said = _first_line(error, options)
    message = f"model `{use.id}`: {type(error).__name__}{f' {status}' if status else ''}: {said}"
    usage = Usage() if kind in _NOT_BEGUN and isinstance(status, int) and not _in_a_stream(error) else None
    return AttemptFailed(
        kind, message, remedy=_remedy(kind, use), retry_after=_retry_after(error), usage=usage
    )


def missing_key(
    litellm: Any, model: str, provider: str, options: Mapping[str, object]
) -> AttemptFailed | None:
    """The failure that names the environment variables which the provider needs, or None."""
    if provider in _NEEDS_NO_KEY or options.get("api_key"):
        return None
    absent = [
        name for name in litellm.validate_environment(model=model)["missing_keys"] if _is_secret_name(name)
    ]
    if provider == "gemini" and any(os.environ.get(name) for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY")):
        return None
    if not absent:
        return None
    names = " or ".join(f"`{name}`" for name in absent) if provider == "gemini" else _listed(absent)
    return AttemptFailed(
        "auth",
        f"no key for `{model}`: {names} is not set",
        remedy=f"export {absent[-1]}=…, or choose another model with `--model`",
        usage=Usage(),
    )


def without_secrets(text: str, options: Mapping[str, object]) -> str:
    """`text` without the keys that this process holds in its environment or was given."""
    held = [value for name, value in os.environ.items() if _is_secret_name(name)]
    held += [value for value in (options.get("api_key"),) if isinstance(value, str)]
    for value in held:
        if len(value) >= 8:
            text = text.replace(value, "[secret]")
    return text


def _class_of(error: BaseException) -> AttemptError:
    names = [cls.__name__ for cls in type(error).__mro__]
    for name, kind in _BY_CLASS:
        if name in names:
            return _inner(error, kind) if kind == "cut" else kind
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return _BY_STATUS.get(status, "unavailable" if status >= 500 else "bad_request")
    return "fault"


def _in_a_stream(error: BaseException) -> bool:
    return any(cls.__name__ == "MidStreamFallbackError" for cls in type(error).__mro__)


def _inner(error: BaseException, otherwise: AttemptError) -> AttemptError:
    """A stream that breaks off wraps its cause; a typed one (rate limit, time-out) says more than the break."""
    cause = getattr(error, "original_exception", None)
    kind = _class_of(cause) if isinstance(cause, BaseException) else otherwise
    return kind if kind in ("rate_limited", "timeout", "context_too_long", "auth") else otherwise


def _first_line(error: BaseException, options: Mapping[str, object]) -> str:
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "no text")
    return clean_text(without_secrets(line, options))[0][:MAX_MESSAGE]


def _remedy(kind: AttemptError, use: ModelUse) -> str:
    if kind == "auth":
        return f"check the key and the account for `{use.id}`"
    if kind == "bad_request":
        return f"check the model id `{use.id}` and what the policy's `model` asks of it"
    return ""


def _retry_after(error: BaseException) -> float | None:
    """Seconds that the provider asks to wait: `retry-after-ms`, else `retry-after` in seconds or as a date; never
    below zero, and None for what is no time."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    given = getattr(error, "litellm_response_headers", None) or headers
    for name, read in (("retry-after-ms", _milliseconds), ("retry-after", _seconds)):
        text = given.get(name)
        seconds = read(text) if text else None
        if seconds is not None and math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _milliseconds(text: str) -> float | None:
    try:
        return float(text) / 1000
    except ValueError:
        return None


def _seconds(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, ArithmeticError):
        return None


def _is_secret_name(name: str) -> bool:
    return name.upper().endswith(_SECRET_NAMES) or name.upper().endswith("_ACCESS_KEY_ID")


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
