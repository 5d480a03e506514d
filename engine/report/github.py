"""Owns findings as workflow annotations of GitHub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from engine.domain.diagnostics import Diagnostic, Severity
from engine.report.findings import Checked
from engine.report.words import PLAIN, Style, safe

MOST: Final = 10
"""A step shows so many annotations and drops the rest without a word."""
_COMMAND: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def as_github(checked: Checked, style: Style = PLAIN) -> str:  # noqa: ARG001 - the signature of a renderer
    """One annotation per finding, errors first, at most MOST of them; a last line says what was left out."""
    worst_first = sorted(checked.diagnostics, key=lambda found: list(Severity).index(found.severity))
    lines = [_annotation(found) for found in worst_first[:MOST]]
    left_out = worst_first[MOST:]
    if left_out:
        lines.append(_left_out(left_out, len(worst_first)))
    lines.extend(f"::notice::{_message(note)}" for note in checked.notes)
    return "\n".join(lines)


def _annotation(found: Diagnostic) -> str:
    place = found.location
    properties = {
        "file": safe(place.file),
        "line": str(place.line),
        "col": str(place.column),
        "title": f"{found.code} {found.name}",
    }
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    text = _message("\n".join((safe(found.message), safe(found.help))))
    return f"::{_COMMAND[found.severity]} {told}::{text}"


def _left_out(findings: Sequence[Diagnostic], total: int) -> str:
    counts = Counter(f"{found.code} {found.name}" for found in findings)
    named = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in sorted(counts.items()))
    return f"{len(findings)} of {total} findings are not annotated: {named}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
