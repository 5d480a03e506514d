"""Owns what the entries of `tools:` mean: names, and selectors that restrict many tools at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase

from engine.policy.documents.tools import ToolPart


def is_selector(entry: str) -> bool:
    return entry in ("*", "egress") or ":" in entry or "*" in entry


def selected(entry: str, tools: Mapping[str, ToolPart], publications: Iterable[str]) -> frozenset[str]:
    """The tools that one entry matches; `publications` are the `publish_<output>` tools."""
    if entry == "*":
        return frozenset((*tools, *publications))
    if not is_selector(entry):
        return frozenset({entry} & {*tools, *publications})
    test = _test(entry)
    return frozenset(name for name, tool in tools.items() if test(tool))


def _test(entry: str) -> Callable[[ToolPart], bool]:
    word, _, rest = entry.partition(":")
    match word:
        case "egress" if not rest:
            return lambda tool: tool.egress
        case "kind":
            return lambda tool: tool.kind == rest
        case "source":
            return lambda tool: tool.source == rest
        case "effect":
            return lambda tool: any(fnmatchcase(effect, rest) for effect in tool.effects or ())
        case _:
            return lambda _: False
