"""Owns the counting of tokens: a cheap estimate by default, litellm's and Anthropic's counters on demand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.adapters.wire.anthropic import anthropic_tools, to_anthropic
from engine.adapters.wire.profile import profile_of, provider_of
from engine.adapters.wire.projection import to_openai
from engine.domain.messages import Message, ToolSchema
from engine.ports import Counted, ModelRequest

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


class EstimateCounter:
    """The same number for the same text, without any library: the UTF-8 bytes divided by 3.5, rounded up.

    English prose has about 4.5 bytes a token and JSON about 3, so it leans to the high side for prose, and text
    in other scripts is counted by its bytes. It is for budgets and context, where too high is the safe error.
    """

    def count(self, text: str) -> int:
        size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        return (size * 2 + 6) // 7


class LitellmCounter:
    """litellm's counter for one model: exact for OpenAI's tokenizers, an estimate for others. Loads litellm."""

    def __init__(self, model: str) -> None:
        from engine.adapters.litellm_library import load_litellm

        self._count = load_litellm().token_counter
        self._model = model

    def count(self, text: str) -> int:
        return max(int(self._count(model=self._model, text=text)), -(-len(text) // 8))


class AnthropicCounter:
    """Anthropic's own count of a whole request, over the network: exact, for use where a budget is near.

    `client` is an `anthropic.AsyncAnthropic`; without one, the key comes from `ANTHROPIC_API_KEY`.
    """

    def __init__(self, model: str, client: AsyncAnthropic | None = None) -> None:
        import anthropic

        self._client = client or anthropic.AsyncAnthropic(max_retries=0, timeout=10.0)
        self._model = model

    async def count(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> int:
        """Input tokens of the request as it would be sent. Raises anthropic's errors."""
        native = to_anthropic(to_openai(messages, self._model, profile_of(self._model)))
        count = await self._client.messages.count_tokens(
            model=self._model.removeprefix("anthropic/"),
            system=native.system,  # type: ignore[arg-type]  # plain JSON that `anthropic_types` checks
            messages=native.messages,  # type: ignore[arg-type]  # as above
            tools=anthropic_tools(tools),  # type: ignore[arg-type]  # as above
        )
        return count.input_tokens


class ProviderMeter:
    """An InputMeter: Anthropic's own count for its models, litellm's counter (an estimate) for all others.

    `key` and `base_url` are for Anthropic; without a key, `ANTHROPIC_API_KEY` is used.
    """

    def __init__(self, *, key: str | None = None, base_url: str | None = None) -> None:
        self._key = key
        self._base_url = base_url

    async def count(self, request: ModelRequest) -> Counted | None:
        """None where the count cannot be had: no key, no connection, a model that the counter does not know."""
        model = request.model.id
        if provider_of(model) != "anthropic":
            text = request_text(request.messages, request.tools, model)
            return Counted(LitellmCounter(model).count(text))
        return await self._counted(model, request)

    async def _counted(self, model: str, request: ModelRequest) -> Counted | None:
        import anthropic

        try:
            async with anthropic.AsyncAnthropic(
                api_key=self._key, base_url=self._base_url, max_retries=0, timeout=10.0
            ) as client:
                counter = AnthropicCounter(model, client)
                return Counted(await counter.count(request.messages, request.tools), exact=True)
        except (anthropic.AnthropicError, TypeError):  # a TypeError is how it says that there is no key
            return None


def request_text(messages: Sequence[Message], tools: Sequence[ToolSchema], model: str) -> str:
    """The request as one text, for counters that count text: what is sent, without the envelope."""
    shown = to_openai(messages, model, profile_of(model))
    schemas = [[tool.name, tool.description, tool.parameters] for tool in tools]
    return json.dumps([shown, schemas], ensure_ascii=False)
