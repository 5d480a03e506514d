"""Owns I903 unpinned-mcp-tool."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.tools import McpPart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    for name, tool in model.tools.items():
        handler = tool.handler
        if not isinstance(handler, McpPart) or handler.is_lost("schema_sha256"):
            continue
        if handler.schema_sha256 is None:
            yield finding(
                "I903",
                tool.key_place("handler"),
                f"the MCP tool of `{name}` is not pinned to a schema",
                "add `schema_sha256:` with the SHA-256 of the schema that you have read",
            )


_PYTHON = 'handler: "python:library.tools:read_archive"'
_PINNED = f"handler: {{mcp: vault, tool: read, schema_sha256: {'ab12' * 16}}}"

RULE = Rule(
    id="I903",
    name="unpinned-mcp-tool",
    severity=Severity.ERROR,
    summary="An MCP tool without a schema digest.",
    why=(
        "An MCP server can change what a tool takes and how it describes itself between two Runs. The "
        "digest fixes what was read when the tool was granted; a tool that no longer matches is refused."
    ),
    bad=base((_PYTHON, "handler: {mcp: vault, tool: read}")),
    good=base((_PYTHON, _PINNED)),
    answers=DECLARED,
    suppressible=False,
    check=check,
)
