"""Owns R201 unknown-tool."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base

RULE = Rule(
    id="R201",
    name="unknown-tool",
    severity=Severity.ERROR,
    summary="No tool spec has this name.",
    why=(
        "A rule over a tool that does not exist grants and forbids nothing. After a tool is renamed, a "
        "deny that still names the old one would silently stop working."
    ),
    bad=base(("tools: [find_books, read_page]", "tools: [find_books, read_pages, read_page]")),
    good=base(),
    answers=NAMES,
)
