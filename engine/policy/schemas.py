"""Owns the JSON Schemas of the documents, made from their models, for editors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from engine.policy.documents.base import Part
from engine.policy.documents.kinds import NEEDED_BY_EFFECT, NEEDED_BY_KIND, REFUSED_BY_EFFECT, REFUSED_BY_KIND
from engine.policy.documents.overlay import OverlayDocument
from engine.policy.documents.policy import PolicyDocument
from engine.policy.documents.project import ProjectDocument
from engine.policy.documents.test import TestDocument
from engine.policy.documents.tools import ToolsDocument

SCHEMAS: Final[Mapping[str, type[Part]]] = {
    "policy": PolicyDocument,
    "tools": ToolsDocument,
    "overlay": OverlayDocument,
    "test": TestDocument,
    "project": ProjectDocument,
}
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def file_name(name: str) -> str:
    return f"{name}.v1.json"


def schema_text(name: str) -> str:
    """The schema of one document type as it is committed: indented JSON with a final line break."""
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of one document type.

    `kind` and `effect` select by if/then, never by anyOf over objects, so that an editor gives one message
    on the right line.
    """
    made = _plain(SCHEMAS[name].model_json_schema(by_alias=True))
    definitions = made.get("$defs", {})
    if "ToolPart" in definitions:
        definitions["ToolPart"]["allOf"] = [_by_kind(kind) for kind in NEEDED_BY_KIND] + [_reversible()]
    for rule in ("RulePart", "OverlayRulePart"):
        if rule in definitions:
            effects = definitions[rule]["properties"]["effect"]["enum"]
            never = set.intersection(*(set(REFUSED_BY_EFFECT[effect]) for effect in effects))
            for key in never:
                del definitions[rule]["properties"][key]
            definitions[rule]["allOf"] = [_by_effect(effect, never) for effect in effects]
    return {"$schema": _DIALECT, "title": f"agentctl {name}/v1", **made}


def _by_kind(kind: str) -> dict[str, Any]:
    then: dict[str, Any] = {"properties": dict.fromkeys(REFUSED_BY_KIND[kind], False)}
    if NEEDED_BY_KIND[kind]:
        then["required"] = list(NEEDED_BY_KIND[kind])
    return _when("kind", kind, then)


def _reversible() -> dict[str, Any]:
    return _when("reversible", True, {"required": ["compensate"]})


def _by_effect(effect: str, never: set[str]) -> dict[str, Any]:
    refused = [key for key in REFUSED_BY_EFFECT[effect] if key not in never]
    then: dict[str, Any] = {"properties": dict.fromkeys(refused, False)}
    if NEEDED_BY_EFFECT[effect]:
        then["required"] = list(NEEDED_BY_EFFECT[effect])
    return _when("effect", effect, then)


def _when(key: str, value: Any, then: dict[str, Any]) -> dict[str, Any]:
    return {"if": {"properties": {key: {"const": value}}, "required": [key]}, "then": then}


def _plain(node: Any) -> Any:
    """Without titles, null branches and defaults of null; unions of text and mapping as if/then."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    branches = [item for item in (node.get("anyOf") or node.get("oneOf") or ()) if item != {"type": "null"}]
    rest = {key: value for key, value in node.items() if key not in ("anyOf", "oneOf", "discriminator")}
    if isinstance(rest.get("title"), str):
        del rest["title"]
    if "default" in rest and rest["default"] is None:
        del rest["default"]
    made = {key: _plain(value) for key, value in rest.items()}
    if len(branches) == 1:
        return {**_plain(branches[0]), **made}
    if branches:
        made.update(_text_or_mapping([_plain(branch) for branch in branches]))
    return made


def _text_or_mapping(branches: list[Any]) -> dict[str, Any]:
    mapping = next(branch for branch in branches if "$ref" in branch)
    text = next(branch for branch in branches if "$ref" not in branch)
    return {"if": {"type": "object"}, "then": mapping, "else": text}


def write_schemas(folder: Path) -> list[Path]:
    """Writes the schema of every document type into a folder; the paths that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in SCHEMAS:
        path = folder / file_name(name)
        path.write_text(schema_text(name), encoding="utf-8")
        written.append(path)
    return written
