"""Owns how findings about files are printed: as text with the source line, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.domain.canonical import JsonObject
from engine.domain.diagnostics import Confidence, Diagnostic, Severity, many
from engine.report.words import PLAIN, Style, safe

SCHEMA: Final = "agentctl.lint/v1"


@dataclass(frozen=True, slots=True)
class Checked:
    """What there is to print: findings, the texts they point into, how much was looked at."""

    diagnostics: tuple[Diagnostic, ...]
    texts: Mapping[str, str]
    files: int = 0
    rules: int = 0
    conditions: int = 0
    silenced: int = 0
    notes: tuple[str, ...] = ()
    """What the report as a whole is limited by."""
    timings: Mapping[str, float] = field(default_factory=dict)


Renderer = Callable[[Checked, Style], str]


def as_text(checked: Checked, style: Style = PLAIN) -> str:
    """Each finding with its place, then one line that sums up."""
    parts = [finding_text(found, checked.texts, style) for found in checked.diagnostics]
    notes = [f"note: {note}" for note in checked.notes]
    return "\n\n".join([*parts, "\n".join([summary(checked), *notes])])


def as_json(checked: Checked, style: Style = PLAIN) -> str:  # noqa: ARG001 - the signature of a renderer
    import json

    report: JsonObject = {
        "schema": SCHEMA,
        "files": checked.files,
        "rules": checked.rules,
        "conditions": checked.conditions,
        "silenced": checked.silenced,
        "notes": list(checked.notes),
        "findings": [finding_json(found) for found in checked.diagnostics],
    }
    return json.dumps(report, ensure_ascii=False, indent=2)


RENDERERS: Final[Mapping[str, Renderer]] = {"text": as_text, "json": as_json}
"""`--format` -> how it prints."""


def finding_text(found: Diagnostic, texts: Mapping[str, str], style: Style = PLAIN) -> str:
    paint = style.bad if found.severity is Severity.ERROR else style.caution
    head = f"{found.severity}[{found.code} {found.name}]"
    lines = [f"{paint(head)}: {safe(found.message)}", f"  --> {safe(str(found.location))}"]
    lines += _source_lines(found, texts, style)
    lines.append(f"   = help: {safe(found.help)}" if found.help else "")
    return "\n".join(line for line in lines if line)


def _source_lines(found: Diagnostic, texts: Mapping[str, str], style: Style) -> list[str]:
    """The line and carets under the stretch; a tab stays a tab so that the carets stay below it."""
    text = texts.get(found.location.file)
    line, column = found.location.line, found.location.column
    source = text.splitlines()[line - 1] if text is not None and 0 < line <= len(text.splitlines()) else None
    if source is None or not source.strip():
        return []
    end = min(found.location.end_column or column + 1, len(source) + 1)
    under = "".join("\t" if sign == "\t" else " " for sign in source[: column - 1])
    carets = style.strong("^" * max(1, end - column))
    return ["   |", f"{line:<3}| {safe(source)}", f"   | {under}{carets}"]


def summary(checked: Checked) -> str:
    """`3 files, 9 rules, 6 conditions checked: 6 errors, 1 warning`."""
    parts = (("file", checked.files), ("rule", checked.rules), ("condition", checked.conditions))
    looked = f"{', '.join(many(count, noun) for noun, count in parts)} checked"
    counts = [many(count, severity) for severity, count in _counts(checked.diagnostics) if count]
    silenced = f" ({checked.silenced} suppressed)" if checked.silenced else ""
    return f"{looked}: {', '.join(counts) or 'nothing found'}{silenced}"


def _counts(diagnostics: Iterable[Diagnostic]) -> list[tuple[str, int]]:
    found = [each.severity for each in diagnostics]
    return [(severity.value, found.count(severity)) for severity in Severity]


def finding_json(found: Diagnostic) -> JsonObject:
    """Lines and columns count from 1."""
    return {
        "code": found.code,
        "name": found.name,
        "severity": found.severity.value,
        "confidence": found.confidence.value,
        "message": found.message,
        "help": found.help,
        "file": found.location.file,
        "line": found.location.line,
        "column": found.location.column,
        "end_column": found.location.end_column,
    }


def counts_for_exit(found: Diagnostic, *, pedantic: bool) -> bool:
    """Errors and certain warnings; with `pedantic`, warnings that are only likely too."""
    if found.severity is Severity.NOTE:
        return False
    return pedantic or found.severity is Severity.ERROR or found.confidence is Confidence.CERTAIN
