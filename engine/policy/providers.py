"""Owns what providers accept of a contract, as data: tool names, how many tools, and which parts of JSON Schema.

As far as known; not checked against a live provider. Read in what providers publish: names and lengths of Bedrock
(Converse, ToolSpecification) and Gemini (FunctionDeclaration; older Vertex AI pages say at most 64 declarations). Read
in errors that others reported: names and 128 tools of OpenAI (zed-industries/zed#32946), 128 characters of Anthropic
(anthropics/claude-code#96152), `additionalProperties` and `const` refused by Gemini (felinics/Memoh#620,
zed-industries/zed#44875), 1024 characters of a description at OpenAI until spring 2025 (run-llama/llama_index#18784:
no longer), nesting (of strict schemas, which are not asked for). From memory alone: Mistral, Cohere, Groq, Ollama, and
what Bedrock passes over. A provider that is not listed is taken to be as strict as the strictest.

A contract is sent under wire names that all of them accept: a name that does not fit is mapped, not refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Provider:
    """`names` is a whole-match pattern; `tools` the most that one request may offer, None where none is stated."""

    name: str
    names: re.Pattern[str]
    tools: int | None
    description: int | None
    """Most characters of one description; None where none is stated."""
    unread: frozenset[str]
    """JSON Schema keywords that the provider refuses or passes over: the Host checks them, the model is not bound."""
    depth: int | None = None
    """Most levels of nested objects; None where none is stated."""

    @property
    def longest(self) -> int:
        """Most characters of a name."""
        return max(length for length in range(1, 257) if self.names.fullmatch("a" * length))


_PLAIN: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONG: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_GOOGLE: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_BOUNDS: Final = frozenset(
    {"minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "pattern"}
)

PROVIDERS: Final[Mapping[str, Provider]] = {
    each.name: each
    for each in (
        Provider("openai", _PLAIN, 128, 1024, frozenset(), 10),
        Provider("azure", _PLAIN, 128, 1024, frozenset(), 10),
        Provider("anthropic", _LONG, None, None, frozenset()),
        Provider("bedrock", _PLAIN, None, None, frozenset({"$ref", "oneOf"})),
        Provider("gemini", _GOOGLE, 128, None, frozenset({"additionalProperties", "$ref", "oneOf", "const"})),
        Provider(
            "vertex_ai", _GOOGLE, 128, None, frozenset({"additionalProperties", "$ref", "oneOf", "const"})
        ),
        Provider("mistral", _PLAIN, None, None, frozenset({"$ref"})),
        Provider("cohere", _PLAIN, None, None, _BOUNDS),
        Provider("groq", _PLAIN, 128, None, frozenset()),
        Provider("ollama", _PLAIN, None, None, _BOUNDS),
    )
}
STRICTEST: Final = Provider(
    "any provider", _PLAIN, 128, 1024, _BOUNDS | {"additionalProperties", "$ref", "oneOf", "const"}, 5
)
"""For an id whose provider is not in the table."""


def provider_for(model: str) -> Provider:
    """The provider of a litellm model id; bare `gpt-…` and `claude…` names are known, others get STRICTEST."""
    head, slash, _ = model.partition("/")
    if slash:
        return PROVIDERS.get(head, STRICTEST)
    if model.startswith(("gpt-", "chatgpt-", "o1", "o3", "o4")):
        return PROVIDERS["openai"]
    return PROVIDERS["anthropic"] if model.startswith("claude") else STRICTEST


def keywords(schema: object) -> frozenset[str]:
    """Every JSON Schema keyword that a schema uses, at any depth; names of properties are none."""
    found: set[str] = set()
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            found.add(str(key))
            inner = value.values() if key == "properties" and isinstance(value, Mapping) else [value]
            for each in inner:
                found |= keywords(each) if isinstance(each, Mapping | list) and key != "enum" else set()
    elif isinstance(schema, list):
        for each in schema:
            found |= keywords(each)
    return frozenset(found)


def nesting(schema: object) -> int:
    """Levels of objects in a schema."""
    if not isinstance(schema, Mapping):
        return 0
    inner = [*_properties(schema), schema.get("items")]
    deepest = max((nesting(each) for each in inner), default=0)
    return deepest + (1 if schema.get("type") == "object" else 0)


def _properties(schema: Mapping[object, object]) -> list[object]:
    properties = schema.get("properties")
    return list(properties.values()) if isinstance(properties, Mapping) else []
