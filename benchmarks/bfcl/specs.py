"""Owns the translation of BFCL's schemas: into our tool specs, and into JSON Schema for the judge of both.

What the policy language cannot say is named in `Translated.unsaid` and counted, never hidden.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from benchmarks.bfcl.corpus import Args, Schema

_KIND = {
    "string": "string", "String": "string", "char": "string",
    "integer": "integer", "long": "integer", "short": "integer", "byte": "integer", "Bigint": "integer",
    "float": "number", "double": "number", "number": "number",
    "boolean": "boolean", "Boolean": "boolean", "bool": "boolean",
    "array": "array", "Array": "array", "ArrayList": "array", "tuple": "array", "list": "array",
    "dict": "object", "object": "object", "HashMap": "object",
    "any": "any", "Any": "any", "": "any",
}  # fmt: skip
"""BFCL's type words -> JSON's; `any` takes every value."""
_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
    "array": (list,), "object": (dict,),
}  # fmt: skip
_IDENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_NOTHING = {"type": "id", "pattern": "(?!x)x"}
"""Takes no value: the schema's own type and enum exclude each other."""


RESERVED = ("finish", "ask_user", "request_capability")
"""Tools of the Host; a tool of that name is called otherwise in the spec."""


def tool_name(name: str) -> str:
    return f"their.{name}" if name in RESERVED or name.startswith("publish_") else name


@dataclass(slots=True)
class Translated:
    """A tool of `tools/v1` and what had to be said otherwise."""

    name: str
    spec: dict[str, Any]
    unsaid: set[str] = field(default_factory=set)


def translated(function: Schema) -> Translated:
    found = Translated(tool_name(function["name"]), {})
    if found.name != function["name"]:
        found.unsaid.add("a tool has the name of one of the Host's")
    parameters = function["parameters"]
    required = set(parameters.get("required") or ())
    properties = parameters.get("properties") or {}
    if required - set(properties):
        found.unsaid.add("requires a parameter that it does not declare")
    params = {}
    for name, schema in properties.items():
        param = _type(schema, found)
        described = " ".join(str(schema.get("description", "")).split())[:1024]
        params[_name(name, found)] = {
            **param,
            **({"description": described} if described else {}),
            **({} if name in required else {"required": False}),
        }
    found.spec = {
        "kind": "read",
        "handler": "python:benchmarks.bfcl.tables:run",
        "description": " ".join(function.get("description", "").split())[:1024] or function["name"],
        "params": params,
    }
    return found


def _name(name: str, found: Translated) -> str:
    if _IDENT.match(name):
        return name
    found.unsaid.add("a parameter's name is no identifier")
    return ident(name)


def ident(name: str) -> str:
    """A parameter's name as conditions can read it."""
    return name if _IDENT.match(name) else re.sub(r"[^A-Za-z0-9_]", "_", name)[:64]


def _type(schema: Schema, found: Translated) -> dict[str, Any]:
    kind = _KIND[schema.get("type", "")]
    if "enum" in schema:
        return _enum(kind, list(schema["enum"]), found)
    match kind:
        case "string":
            return {"type": "text"}
        case "integer":
            return {"type": "int", **({"max": schema["maximum"]} if "maximum" in schema else {})}
        case "number":
            return {"type": "decimal"}
        case "boolean":
            return {"type": "bool"}
        case "array":
            if schema.get("minItems"):
                found.unsaid.add("a list has a least number of items")
            most = {"max_items": schema["maxItems"]} if "maxItems" in schema else {}
            return {"type": "list", "of": _type(schema.get("items") or {"type": "any"}, found), **most}
        case "object" if schema.get("properties"):
            return _record(schema, found)
        case "object":
            found.unsaid.add("an object of any shape: sent as JSON text")
        case _:
            found.unsaid.add("a value of any type: sent as JSON text")
    return {"type": "text"}


def _record(schema: Schema, found: Translated) -> dict[str, Any]:
    required = set(schema.get("required") or ())
    return {
        "type": "record",
        "fields": {
            _name(name, found): {**_type(inner, found), **({} if name in required else {"required": False})}
            for name, inner in schema["properties"].items()
        },
    }


def _enum(kind: str, values: list[Any], found: Translated) -> dict[str, Any]:
    fitting = [value for value in values if type(value) in _PYTHON.get(kind, (object,))]
    if not fitting:
        found.unsaid.add("type and enum exclude each other: takes nothing")
        return dict(_NOTHING)
    if kind == "string":
        return {"type": "enum", "values": list(dict.fromkeys(fitting))}
    if kind == "integer":
        if len(set(fitting)) != max(fitting) - min(fitting) + 1:
            found.unsaid.add("whole numbers with gaps: bounded only")
        return {"type": "int", "min": min(fitting), "max": max(fitting)}
    raise ValueError(f"no type for an enum of {kind}: {values}")


# --- values -------------------------------------------------------------------------------------------------


def sent(function: Schema, args: Args) -> Args:
    """Arguments as our contract has them: fractions and values of any type or shape as text."""
    return _object(function["parameters"], args)


def _object(schema: Schema, args: Mapping[str, Any]) -> Args:
    properties = schema.get("properties") or {}
    return {
        ident(name) if name in properties else name: _sent(properties[name], value)
        if name in properties
        else value
        for name, value in args.items()
    }


def _sent(schema: Schema, value: Any) -> Any:
    kind = _KIND[schema.get("type", "")]
    if kind == "number" and type(value) in (int, float):
        return format(Decimal(str(value)), "f")
    if kind == "number" and isinstance(value, str):
        return {"text": value}  # a text in the place of a number stays what it is: no number
    if kind == "array" and isinstance(value, list):
        return [_sent(schema.get("items") or {}, item) for item in value]
    if kind == "object" and isinstance(value, dict) and schema.get("properties"):
        return _object(schema, value)
    if kind == "object" and not schema.get("properties"):
        return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else {"no": "object"}
    if kind == "any" and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return value


# --- the judge of both --------------------------------------------------------------------------------------


def json_schema(schema: Schema, *, top: bool = True) -> dict[str, Any]:
    """BFCL's schema as JSON Schema: nothing beyond what it declares is accepted."""
    kind = _KIND[schema.get("type", "")]
    found: dict[str, Any] = {} if kind == "any" else {"type": kind}
    found.update({key: schema[key] for key in ("enum", "maximum", "minItems", "maxItems") if key in schema})
    if kind == "object" and (schema.get("properties") or top):
        properties = schema.get("properties") or {}
        found["properties"] = {name: json_schema(inner, top=False) for name, inner in properties.items()}
        found["additionalProperties"] = False
        if schema.get("required"):
            found["required"] = list(schema["required"])
    if isinstance(schema.get("items"), dict):
        found["items"] = json_schema(schema["items"], top=False)
    return found
