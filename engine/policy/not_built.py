"""Owns the list of what the language has and this engine does not run: refused by name when a Run starts."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.policy import McpHandler, Policy


def not_built(policy: Policy) -> list[str]:
    """One line for each part of the policy that this engine does not run; empty when it runs it all."""
    return list(_parts(policy))


def _parts(policy: Policy) -> Iterator[str]:
    for tool in policy.tools.values():
        if isinstance(tool.handler, McpHandler):
            yield f"the MCP handler of `{tool.name}` ({tool.place})"
        if tool.cache is not None and tool.cache.scope == "shared":
            yield f"the shared cache of `{tool.name}` ({tool.place})"
