"""Owns what a confirmed result brings: citable evidence and the declared fields that conditions may read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from engine.domain.canonical import Json, JsonObject
from engine.domain.events import EvidenceFigure, EvidenceItem, timestamp
from engine.domain.policy import EvidenceSpec, Figure, ToolSpec
from engine.domain.types import Trust
from engine.policy.values import Fault, read_fields

Steps = tuple[str, ...]


def evidence_of(spec: ToolSpec, value: Json, recorded_at: datetime) -> tuple[EvidenceItem, ...]:
    """The evidence items of one result, in the order of the result. An absent path gives no evidence."""
    declared = spec.evidence
    if declared is None:
        return ()
    items = []
    for where, identity in _walk(value, declared.id):
        if isinstance(identity, bool) or not isinstance(identity, str | int):
            continue
        items.append(
            EvidenceItem(
                kind=declared.kind,
                id=str(identity),
                as_of=_as_of(declared, value, where, recorded_at),
                spans=tuple(str(span) for span in _near(value, declared.spans, where)),
                figures=tuple(_figures(declared, value, where)),
            )
        )
    return tuple(items)


def declared_fields(spec: ToolSpec, value: Json) -> JsonObject:
    """The declared fields that conditions may read: typed, not text, of trusted trust; others are left out."""
    if not isinstance(value, dict):
        return {}
    return {
        name: value[name]
        for name, field in spec.result.items()
        if name in value and not field.type.opaque and field.trust is not Trust.UNTRUSTED
    }


def slice_fields(spec: ToolSpec, value: Json) -> JsonObject | str:
    """What a refresh brings to its slice: every declared field, prose too; or in words why it is no value of it."""
    if not isinstance(value, dict):
        return "the answer is no object of the declared fields"
    faults: list[Fault] = []
    found = read_fields({name: value[name] for name in spec.result if name in value}, spec.result, "", faults)
    return "; ".join(fault.message for fault in faults) or found


def _as_of(declared: EvidenceSpec, value: Json, where: Steps, recorded_at: datetime) -> str | None:
    if declared.as_of is None:
        return None
    if declared.as_of == "receipt.at":
        return timestamp(recorded_at)
    return next((str(found) for found in _near(value, declared.as_of, where) if found is not None), None)


def _figures(declared: EvidenceSpec, value: Json, where: Steps) -> Iterator[EvidenceFigure]:
    for figure in declared.figures:
        unit = next((str(found) for found in _near(value, figure.currency, where)), None)
        for place, found in _walk(value, figure.at):
            if _fits(where, place) and isinstance(found, str | int) and not isinstance(found, bool):
                yield EvidenceFigure(
                    name=figure.name,
                    type=figure.type,
                    value=str(found),
                    key=_key(figure, value, place),
                    unit="%" if figure.type == "percent" else unit,
                )


def _key(figure: Figure, value: Json, place: Steps) -> str | None:
    if figure.key is None:
        return None
    element: Any = value
    for step in place[:-1]:
        element = element[int(step)] if isinstance(element, list) else element[step]
    found = element.get(figure.key) if isinstance(element, dict) else None
    return None if found is None else str(found)


def _near(value: Json, path: str | None, where: Steps) -> Iterator[Json]:
    """What `path` finds within the same elements as `where`."""
    if path is None:
        return
    for place, found in _walk(value, path):
        if _fits(where, place):
            yield found


def _fits(where: Steps, place: Steps) -> bool:
    """Two places belong together if they agree on every list index that they share."""
    for one, other in zip(where, place, strict=False):
        if one != other:
            return not (one.isdigit() and other.isdigit())
    return True


def _walk(value: Json, path: str) -> Iterator[tuple[Steps, Json]]:
    """(place, value) of everything that a result path such as `result.hits[].id` names."""
    head, *names = path.split(".")
    if head != "result":
        return
    yield from _descend(value, names, ())


def _descend(value: Json, names: list[str], place: Steps) -> Iterator[tuple[Steps, Json]]:
    if not names:
        yield place, value
        return
    name, rest = names[0], names[1:]
    each = name.endswith("[]")
    name = name.removesuffix("[]")
    if not isinstance(value, dict) or name not in value:
        return
    found = value[name]
    if not each:
        yield from _descend(found, rest, (*place, name))
    elif isinstance(found, list):
        for index, element in enumerate(found):
            yield from _descend(element, rest, (*place, name, str(index)))
