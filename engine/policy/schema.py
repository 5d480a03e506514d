"""Owns the JSON Schema of declared types: what a model is told about the parameters of a tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from engine.domain.canonical import Json, JsonObject
from engine.domain.policy import ToolSpec
from engine.domain.types import Field, TypeName, ValueType

DECIMAL: Final = r"-?\d+(?:\.\d+)?"
DURATION: Final = r"(?:\d{1,9}h)?(?:\d{1,9}m)?(?:\d{1,9}s)?(?:\d{1,9}ms)?"
MAX_ID: Final = 256
MAX_ITEMS: Final = 1000
"""Of a list whose type states no `max_items`."""

_STRINGS: Final[Mapping[TypeName, JsonObject]] = {
    TypeName.DECIMAL: {"type": "string", "pattern": f"^{DECIMAL}$", "maxLength": 64},
    TypeName.REF: {"type": "string", "minLength": 1, "maxLength": MAX_ID},
    TypeName.PATH: {"type": "string", "minLength": 1, "maxLength": 1024},
    TypeName.EMAIL: {"type": "string", "format": "email", "maxLength": 254},
    TypeName.URL: {"type": "string", "format": "uri", "maxLength": 2048},
    TypeName.TIMESTAMP: {"type": "string", "format": "date-time", "maxLength": 40},
    TypeName.DURATION: {"type": "string", "pattern": f"^{DURATION}$", "minLength": 2, "maxLength": 40},
}
_HINTS: Final[Mapping[TypeName, str]] = {
    TypeName.DECIMAL: "A decimal number as a string, such as 12.50.",
    TypeName.PATH: "A relative path without `..`.",
    TypeName.TIMESTAMP: "A time with its zone, such as 2026-01-31T00:00:00Z.",
    TypeName.DURATION: "A duration such as 1h30m or 90s.",
    TypeName.ARGV: "A command as a list of words; no shell reads it.",
}


def schema_of(type_: ValueType, description: str | None = None) -> JsonObject:
    """The strict schema of one value."""
    found = _plain(type_)
    hint = description or _hint(type_)
    return {**found, "description": hint} if hint else found


def _hint(type_: ValueType) -> str | None:
    if type_.name is TypeName.REF and type_.kind:
        return f"The id of a {type_.kind} that an earlier result returned."
    return _HINTS.get(type_.name)


def _plain(type_: ValueType) -> JsonObject:
    match type_.name:
        case TypeName.BOOL:
            return {"type": "boolean"}
        case TypeName.INT:
            return {"type": "integer", **_bounds(type_)}
        case TypeName.ENUM:
            return {"type": "string", "enum": list(type_.values)}
        case TypeName.LIST:
            return _list(schema_of(type_.of or ValueType(TypeName.ID)), type_)
        case TypeName.ARGV:
            return {**_list({"type": "string", "maxLength": type_.max_len or 4096}, type_), "minItems": 1}
        case TypeName.RECORD:
            return record_schema(type_.fields)
        case TypeName.TEXT | TypeName.RICH_TEXT:
            return (
                {"type": "string"}
                if type_.max_len is None
                else {"type": "string", "maxLength": type_.max_len}
            )
        case _:
            return _string(type_)


def _string(type_: ValueType) -> JsonObject:
    found: JsonObject = dict(
        _STRINGS.get(type_.name, {"type": "string", "minLength": 1, "maxLength": MAX_ID})
    )
    if type_.max_len is not None:
        found["maxLength"] = type_.max_len
    if type_.pattern is not None:
        found["pattern"] = f"^(?:{type_.pattern})$"
    return found


def _bounds(type_: ValueType) -> JsonObject:
    found: JsonObject = {}
    if type_.min is not None:
        found["minimum"] = type_.min
    if type_.max is not None:
        found["maximum"] = type_.max
    return found


def _list(items: JsonObject, type_: ValueType) -> JsonObject:
    return {"type": "array", "items": items, "maxItems": type_.max_items or MAX_ITEMS}


def record_schema(fields: Mapping[str, Field]) -> JsonObject:
    return object_schema(
        {name: schema_of(field.type) for name, field in fields.items()},
        [name for name, field in fields.items() if field.required],
    )


def object_schema(properties: Mapping[str, Json], required: Iterable[str]) -> JsonObject:
    """An object that takes these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def parameters_of(spec: ToolSpec) -> JsonObject:
    """The parameters that the model supplies, every enum whole; what the Host binds is absent."""
    params = spec.model_params
    return object_schema(
        {param.name: schema_of(param.type, param.description) for param in params},
        [param.name for param in params if param.required],
    )


def narrowed(parameters: JsonObject, kept: Mapping[str, tuple[str, ...]]) -> JsonObject:
    """The same parameters with some enums cut to `kept`; one that keeps nothing is left out."""
    properties = dict(parameters["properties"])  # type: ignore[arg-type]  # always an object here
    for name, values in kept.items():
        whole = properties[name]
        if values:
            properties[name] = {**whole, "enum": list(values)}  # type: ignore[dict-item]
        else:
            del properties[name]
    return {**parameters, "properties": properties}
