"""Owns what tokens cost: the project's own prices first, then litellm's bundled map; unknown is never zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from engine.domain.events import Usage

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens, as `prices` in `agentctl.yaml` gives it."""

    input_per_mtok: Decimal
    output_per_mtok: Decimal
    cached_per_mtok: Decimal | None = None
    """For input that the provider read from its cache; None: as other input."""

    def of(self, usage: Usage) -> Decimal:
        cached = min(usage.cached_tokens, usage.input_tokens)
        cached_price = self.input_per_mtok if self.cached_per_mtok is None else self.cached_per_mtok
        total = self.input_per_mtok * (usage.input_tokens - cached) + cached_price * cached
        return (total + self.output_per_mtok * usage.output_tokens) / _MILLION


class Prices:
    """`own` maps a litellm model id, or a model name as responses give it, to its price."""

    def __init__(self, own: Mapping[str, Price], load: Callable[[], Any]) -> None:
        self._own = dict(own)
        self._load = load

    def cost(
        self, asked: str, named: str, usage: Usage, *, raw: object = None, provider: str | None = None
    ) -> Decimal | None:
        """USD of `usage` by the model that the response names, else by the one that was asked; None: no price.

        `raw` is litellm's usage object: it knows cached tokens, which may cost less.
        """
        for name in (named, asked):
            if name in self._own:
                return self._own[name].of(usage)
        for name in (named, asked):
            found = self._mapped(name, provider)
            if found:
                return self._charged(found, usage, raw, provider)
        return None

    def _mapped(self, name: str, provider: str | None) -> str | None:
        """The key under which litellm's map gives both prices. Its own look-up reads a missing price as zero."""
        known: Mapping[str, Mapping[str, object]] = self._load().model_cost
        head, slash, bare = name.partition("/")
        keys = [
            name,
            f"{provider}/{name}" if provider else name,
            bare if slash and head == provider else name,
        ]
        if slash and provider is None:
            keys.append(bare)
        for key in keys:
            entry = known.get(key)
            if entry and all(entry.get(f"{side}_cost_per_token") is not None for side in ("input", "output")):
                return key
        return None

    def _charged(self, key: str, usage: Usage, raw: object, provider: str | None) -> Decimal:
        more = {"usage_object": raw} if raw is not None else {}
        asked, said = self._load().cost_per_token(
            model=key,
            custom_llm_provider=provider,
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            **more,
        )
        return round(Decimal(str(asked)) + Decimal(str(said)), 12).normalize()
