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
    for projection in policy.projections:
        yield f"the projection `{projection.id}` ({projection.place})"
    for name, slice_ in policy.state.items():
        yield f"the state slice `{name}` ({slice_.place})"
    if policy.context.compact is not None:
        yield "compaction (`context.compact`)"
