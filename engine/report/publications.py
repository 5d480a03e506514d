"""Owns how a published output is shown: its rendered fields, then its sources by number."""

from __future__ import annotations

import json
from collections.abc import Iterable

from engine.domain import events as e
from engine.domain.canonical import Json, JsonObject
from engine.domain.state import RunState
from engine.report.words import PLAIN, Style, one_line, safe


def published(events: Iterable[e.Event]) -> list[e.OutputPublished]:
    return [event.body for event in events if isinstance(event.body, e.OutputPublished)]


def publication_lines(body: e.OutputPublished, state: RunState, style: Style = PLAIN) -> list[str]:
    """Its fields one after the other; the numbers in the text are those of the sources."""
    lines = [style.strong(f"== {body.output} =="), ""]
    for name, value in body.rendered.items():
        lines += _field(name, value, style)
    sources = sources_of(body, state)
    if sources:
        lines += [style.strong("Sources"), *map(_source, sources), ""]
    for flag in state.publications[body.output].flags if body.output in state.publications else ():
        lines += [style.caution(f"note: {one_line(flag)}"), ""]
    return lines


def _field(name: str, value: Json, style: Style) -> list[str]:
    if not isinstance(value, str):
        return [f"{style.dim(f'{name}:')} {safe(json.dumps(value, ensure_ascii=False, indent=2))}", ""]
    if _long(value):
        return [safe(value), ""]
    return [f"{style.dim(f'{name}:')} {safe(value)}", ""]


def _long(value: Json) -> bool:
    return isinstance(value, str) and ("\n" in value or len(value) > 200)


def sources_of(body: e.OutputPublished, state: RunState) -> list[JsonObject]:
    """One source for each number in the rendered text: kind, id, as_of, and the part that is cited."""
    marks = {citation.mark: citation for citation in body.citations}
    found: list[JsonObject] = []
    for number, (mark, citation) in enumerate(marks.items(), start=1):
        evidence = state.evidence.get(citation.evidence)
        found.append(
            {
                "number": number,
                "mark": mark,
                "kind": evidence.item.kind if evidence else "",
                "id": evidence.item.id if evidence else "",
                "as_of": evidence.item.as_of if evidence else None,
                "span": citation.span,
                "tool": evidence.tool if evidence else "",
                "call": str(evidence.call) if evidence else "",
            }
        )
    return found


def _source(source: JsonObject) -> str:
    part = f"#{source['span']}" if source["span"] else ""
    day = str(source["as_of"] or "").removesuffix("T00:00:00Z")
    as_of = f", as of {day}" if day else ""
    read = f"{source['tool']} {source['call']}"
    return (
        f"  {source['number']:>2}  {source['kind']} {one_line(str(source['id']), 100)}{part}{as_of} ({read})"
    )
