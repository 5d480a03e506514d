"""Owns N103 egress-not-declared."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Confidence, Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.tools import McpPart, ToolPart
from engine.policy.documents.types import TypePart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import WORDING
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    for name, tool in model.tools.items():
        param = _address(tool)
        if param is not None and isinstance(tool.handler, McpPart) and not _says(tool):
            yield finding(
                "N103",
                tool.here,
                f"`{name}` takes the address `{param}` from the model and does not say whether it sends anything",
                "add `egress: true`; `egress: false` if nothing leaves",
            )


def _says(tool: ToolPart) -> bool:
    return tool.is_written("egress") or tool.is_lost("egress")


def _address(tool: ToolPart) -> str | None:
    """The first url or email that the model supplies."""
    return next(
        (
            name
            for name, part in tool.params.items()
            if part.bind is None and _inner(part).type in ("url", "email")
        ),
        None,
    )


def _inner(part: TypePart) -> TypePart:
    return _inner(part.of) if isinstance(part.of, TypePart) else part


_FETCH = """\
  fetch_page:
    kind: read
    source: shelf
    handler: {{mcp: web, tool: fetch, schema_sha256: "{digest}"}}
    description: "Fetch one page of a publisher."
{egress}    params: {{address: {{type: url}}}}
  read_page:
"""


def _files(egress: str) -> dict[str, str]:
    fetch = _FETCH.format(digest="ab" * 32, egress=egress)
    return base(
        ("  read_page:\n", fetch),
        ("tools: [find_books, read_page]", "tools: [find_books, read_page, fetch_page]"),
    )


RULE = Rule(
    id="N103",
    name="egress-not-declared",
    severity=Severity.WARNING,
    summary="An MCP tool takes a `url` or `email` and does not say `egress`.",
    why=(
        "Fetching a page sends its address out, and with it whatever the model put there. Rules about what may "
        "leave speak of tools that say `egress`."
    ),
    bad=_files(""),
    good=_files("    egress: true\n"),
    answers=WORDING,
    confidence=Confidence.LIKELY,
    check=check,
)
