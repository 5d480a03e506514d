"""Owns the model port: one attempt per request, through litellm, closed responses only."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from engine.adapters.litellm_failures import attempt_failed, missing_key
from engine.adapters.litellm_library import load_litellm
from engine.adapters.litellm_prices import Price, Prices
from engine.adapters.litellm_responses import Collected, closed_response, collect, reading, whole_message
from engine.adapters.token_counter import EstimateCounter, request_text
from engine.adapters.wire.names import ToolNames
from engine.adapters.wire.profile import profile_of
from engine.adapters.wire.projection import openai_tools, to_openai
from engine.domain.events import Usage
from engine.domain.policy import ModelUse
from engine.ports import AttemptFailed, ModelRequest, ModelResponse

DEFAULT_TIMEOUT = 300.0
"""Seconds for one attempt where the policy gives no timeout."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """What the reading of an answer has to know about its request."""

    request: ModelRequest
    names: ToolNames
    provider: str


class LitellmGateway:
    """Any litellm model id (`anthropic/…`, `openai/…`, `ollama/…`). Loads litellm when it is first used.

    `prices` overrides litellm's bundled price map. `options` are passed to every `litellm.acompletion`
    (`api_base`, `api_key`, `extra_headers`); they come from the Host, never from a policy or a model. `keys` are
    model keys by the environment variable that they stand for (`ANTHROPIC_API_KEY`), used where that is not set.
    """

    def __init__(
        self,
        *,
        prices: Mapping[str, Price] | None = None,
        options: Mapping[str, object] | None = None,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        self._prices = Prices(prices or {}, load_litellm)
        self._options = dict(options or {})
        self._keys = dict(keys or {})

    async def propose(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelResponse:
        """One attempt; streams where `on_text` is given. Raises AttemptFailed, nothing else."""
        seconds = request.model.timeout.total_seconds() if request.model.timeout else DEFAULT_TIMEOUT
        try:
            async with asyncio.timeout(seconds):
                return await self._attempt(request, on_text, seconds)
        except AttemptFailed:
            raise
        except Exception as error:  # every failure of an attempt is a recorded fact, classed by its type
            raise attempt_failed(error, request.model, seconds, self._options) from error

    def price(self, model: ModelUse, input_tokens: int, output_tokens: int) -> Decimal | None:
        """USD for so many tokens by the override table, else by litellm's bundled map; None where unpriced."""
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        return self._prices.cost(model.id, model.id, usage)

    async def _attempt(
        self, request: ModelRequest, on_text: Callable[[str], None] | None, seconds: float
    ) -> ModelResponse:
        litellm = load_litellm()
        provider = litellm.get_llm_provider(request.model.id)[1]
        options = self._options | self._key(provider)
        absent = missing_key(litellm, request.model.id, provider, options)
        if absent:
            raise absent
        sent = _Sent(request, ToolNames(tool.name for tool in request.tools), provider)
        parameters = self._parameters(request, seconds, stream=on_text is not None) | options
        answer = await litellm.acompletion(**parameters)
        with reading():
            got = whole_message(answer) if on_text is None else await _streamed(answer, on_text)
            return self._closed(sent, got)

    def _parameters(self, request: ModelRequest, seconds: float, *, stream: bool) -> dict[str, object]:
        profile = profile_of(request.model.id)
        parameters: dict[str, object] = {
            "model": request.model.id,
            "messages": to_openai(request.messages, request.model.id, profile),
            "timeout": seconds,
            "num_retries": 0,
            "max_retries": 0,
            "stream": stream,
        }
        if request.tools:
            parameters |= {"tools": openai_tools(request.tools, profile), "tool_choice": "auto"}
        if stream:
            parameters["stream_options"] = {"include_usage": True}
        if request.model.temperature is not None:
            parameters["temperature"] = float(request.model.temperature)
        if request.model.max_output_tokens is not None:
            parameters["max_tokens"] = request.model.max_output_tokens
        return parameters

    def _key(self, provider: str) -> dict[str, object]:
        """The key of agentctl.yaml for this provider, where neither caller nor environment gives one."""
        variable = f"{provider.upper()}_API_KEY"
        if self._options.get("api_key") or os.environ.get(variable) or variable not in self._keys:
            return {}
        return {"api_key": self._keys[variable]}

    def _closed(self, sent: _Sent, got: Collected) -> ModelResponse:
        use = sent.request.model
        usage = got.usage or _estimated(sent.request, got)
        named = got.model or use.id
        cost = self._prices.cost(use.id, named, usage, raw=got.raw_usage, provider=sent.provider)
        return closed_response(got, use.id, sent.names, usage, cost)


async def _streamed(chunks: AsyncIterator[Any], on_text: Callable[[str], None]) -> Collected:
    try:
        return await collect(chunks, on_text)
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()


def _estimated(request: ModelRequest, got: Collected) -> Usage:
    """Our own count where the provider gave none; marked as such."""
    count = EstimateCounter().count
    said = "".join([got.text, *(call.arguments for call in got.calls)])
    asked = request_text(request.messages, request.tools, request.model.id)
    return Usage(input_tokens=count(asked), output_tokens=count(said), estimated=True)
