"""Owns W219 write-named-read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engine.domain.diagnostics import Confidence, Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import WORDING
from engine.policy.rules.examples import base

_VERBS: Final = frozenset(
    """
    add append approve assign cancel change charge close create delete deploy destroy disable drop edit enable
    erase execute grant insert install merge modify overwrite patch pay place publish purchase push put refund
    remove rename replace reserve reset restart restore revoke rollback save schedule send set submit
    terminate transfer trigger uninstall update upload withdraw write
    """.split()  # noqa: SIM905 - sixty quoted words would be harder to read
)
_THINGS: Final = frozenset(
    {"count", "date", "distance", "history", "info", "list", "log", "logs", "name", "names", "notes", "number",
     "options", "policy", "price", "quote", "report", "schedule", "state", "status", "summary", "times", "types"}
)  # fmt: skip
"""Second words that make the first one an adjective: `delete_history`, `edit_distance`, `push_status`."""


def check(model: Model) -> Iterator[Diagnostic]:
    for name, tool in model.tools.items():
        words = _words(name)
        if tool.kind == "read" and words[0] in _VERBS and not _THINGS.intersection(words[1:]):
            yield finding(
                "W219",
                tool.place("kind"),
                f"`{name}` sounds like a write and its kind is read",
                "say `kind: write`; if it only looks, ignore this with a reason",
            )


def _words(name: str) -> list[str]:
    """`place_order` and `placeOrder` as words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")


RULE = Rule(
    id="W219",
    name="write-named-read",
    severity=Severity.WARNING,
    summary="The name says write and the kind says read.",
    why=(
        "A read may be cached, repeated and run beside others, and needs no approval. One that changes the "
        "world under that flag escapes everything that is said about writes."
    ),
    bad=base(
        (
            "  read_page:\n    kind: read\n",
            "  reserve_room:\n    kind: read\n    source: shelf\n"
            '    handler: "python:library.tools:reserve_room"\n    description: "Keep a room for an hour."\n'
            "  read_page:\n    kind: read\n",
        ),
        ("tools: [find_books, read_page]", "tools: [find_books, read_page, reserve_room]"),
    ),
    good=base(
        (
            "  read_page:\n    kind: read\n",
            "  place_history:\n    kind: read\n    source: shelf\n"
            '    handler: "python:library.tools:place_history"\n    description: "Where a book has stood."\n'
            "  read_page:\n    kind: read\n",
        ),
        ("tools: [find_books, read_page]", "tools: [find_books, read_page, place_history]"),
    ),
    answers=WORDING,
    confidence=Confidence.LIKELY,
    check=check,
)
