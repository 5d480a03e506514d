"""Owns the short form of a part that a help line shows where something else was written in its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def form_at(kind: type[BaseModel], steps: tuple[str | int, ...], value: object) -> str:
    """`{key: …}` for the part at a pydantic location below `kind`; empty where it may be several or none.

    It shows the keys that the part needs, or all where it needs none; a text that was written stands for the first.
    """
    parts = [kind]
    for step in steps:
        inner = [
            found for part in parts if (field := _field(part, step)) for found in _parts(field.annotation)
        ]
        parts = inner or parts
    return _form(parts[0], value) if len(set(parts)) == 1 and parts[0] is not kind else ""


def _field(part: type[BaseModel], step: str | int) -> FieldInfo | None:
    return next((field for name, field in part.model_fields.items() if step in (name, field.alias)), None)


def _parts(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _parts(inner)


def _form(part: type[BaseModel], value: object) -> str:
    keys = {field.alias or name: field for name, field in part.model_fields.items()}
    needed = [name for name, field in keys.items() if field.is_required()]
    shown = ["…" for _ in needed or keys]
    if len(needed) == 1 and isinstance(value, str | int) and not isinstance(value, bool):
        shown[0] = f"[{value}]" if get_origin(keys[needed[0]].annotation) is list else str(value)
    return "{" + ", ".join(f"{name}: {text}" for name, text in zip(needed or keys, shown, strict=True)) + "}"
