"""Owns the differences between providers that the projection has to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.adapters.wire.ids import IdStyle


@dataclass(frozen=True, slots=True)
class Profile:
    host_blocks: Literal["in_place", "head"]
    """`in_place`: a system message where the block stands; `head`: inside the one system part."""
    ids: IdStyle = "plain"
    cache_marks: bool = False
    """Send `cache_control` on the instructions, the last tool and the last message."""
    closed_edges: bool = True
    """The history must open with the user and must not close with the assistant."""


_PLAIN = Profile("head")
_OPENAI = Profile("in_place", closed_edges=False)
_ANTHROPIC = Profile("head", cache_marks=True)
_PROFILES = {
    "openai": _OPENAI,
    "azure": _OPENAI,
    "anthropic": _ANTHROPIC,
    "mistral": Profile("head", ids="nine"),
    "codestral": Profile("head", ids="nine"),
}


def provider_of(model: str) -> str:
    """The provider part of a litellm model id: `anthropic/claude-x` -> `anthropic`; guessed for bare names."""
    head, slash, _ = model.partition("/")
    if slash:
        return head
    if model.startswith(("gpt-", "chatgpt-", "o1", "o3", "o4")):
        return "openai"
    return "anthropic" if model.startswith("claude") else ""


def profile_of(model: str) -> Profile:
    """The profile of a litellm model id; a provider that is not listed gets the most cautious one."""
    return _PROFILES.get(provider_of(model), _PLAIN)
