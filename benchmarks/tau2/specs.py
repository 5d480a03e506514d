"""Owns the translation of a domain's toolkits into `tools/v1`: parameters from their signatures, probes from ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.tau2.probes import PROBES
from engine.domain.policy import Policy
from engine.policy.compiler import load_policy
from tau2.environment.environment import Environment
from tau2.environment.tool import Tool
from tau2.environment.toolkit import ToolKitBase, ToolType

HERE = Path(__file__).parent
WIDEST = 1_000_000_000
Schema = Mapping[str, Any]


def _param(schema: Schema, defs: Schema, name: str) -> dict[str, Any]:
    """One JSON Schema as a value type of the policy language."""
    if "$ref" in schema:
        return _param(defs[schema["$ref"].rsplit("/", 1)[1]], defs, name)
    if "anyOf" in schema:
        # a union of a model and a bare dict, or of a type and null: the named shape is the one that is meant
        shapes = [each for each in schema["anyOf"] if each.get("type") != "null"]
        return _param(next((each for each in shapes if "$ref" in each), shapes[0]), defs, name)
    if "enum" in schema:
        return {"type": "enum", "values": list(schema["enum"])}
    kind = schema.get("type", "string")
    if kind == "integer":
        return {"type": "int", "min": -WIDEST, "max": WIDEST}
    if kind == "number":
        return {"type": "decimal"}
    if kind == "boolean":
        return {"type": "bool"}
    if kind == "array":
        return {"type": "list", "of": _param(schema["items"], defs, name), "max_items": 100}
    if kind == "object":
        return {"type": "record", "fields": _fields(schema, defs)}
    prose = name in ("summary", "expression", "reason", "address1", "address2")
    return {"type": "text", "max_len": 4000} if prose else {"type": "id"}


def _fields(schema: Schema, defs: Schema) -> dict[str, Any]:
    needed = set(schema.get("required", ()))
    return {
        name: {**_param(each, defs, name), **({} if name in needed else {"required": False})}
        for name, each in schema.get("properties", {}).items()
    }


def _tool(tool: Tool, kind: ToolType, probe: str | None) -> dict[str, Any]:
    schema = tool.params.model_json_schema()
    spec: dict[str, Any] = {
        "kind": "read",
        "handler": f"python:tau2:{tool.name}",
        "description": (tool.short_desc or tool.name)[:1024],
        "params": _fields(schema, schema.get("$defs", {})),
    }
    if kind is ToolType.WRITE or tool.name == "transfer_to_human_agents":
        spec |= {
            "kind": "write",
            "effects": [f"tau2.{tool.name}"],
            "idempotency": {"key": ["call.id"]},
            "timeout": "5s",
            "reconcile": {"manual": "Look at the record in the domain's own database"},
        }
        if probe is not None:
            spec["reconcile"] = {
                "probe": probe,
                "args": {name: f"args.{name}" for name in spec["params"]},
                "confirms": "result.found",
                "refutes": "!result.found",
            }
    return spec


def _kit(kit: ToolKitBase, probes: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: _tool(tool, kit.tool_type(name), probes.get(name)) for name, tool in kit.get_tools().items()
    }


def tool_specs(domain: str, made: Environment) -> str:
    """The domain's tools, its user's tools, and our probes, as one `tools/v1` text (JSON is YAML)."""
    probes = {probe.settles: name for name, probe in PROBES[domain].items()}
    tools = _kit(made.tools, probes)
    if made.user_tools is not None:
        tools |= _kit(made.user_tools, probes)
    for name, probe in PROBES[domain].items():
        tools[name] = {
            "kind": "read",
            "exposed": "host",
            "handler": f"python:tau2:{name}",
            "params": tools[probe.settles]["params"],
            "result": {"found": {"type": "bool"}},
        }
    return json.dumps({"agentctl": "tools/v1", "id": f"tau2-{domain}", "tools": tools}, indent=1)


@lru_cache(maxsize=3)
def policy_of(domain: str) -> Policy:
    """The committed policy of a domain, compiled over its tools."""
    from benchmarks.tau2.world import environment, tasks

    name = f"{domain}.policy.yaml"
    made = environment(domain, tasks(domain)[0])
    files = {
        name: (HERE / name).read_text(encoding="utf-8"),
        f"{domain}.tools.yaml": tool_specs(domain, made),
    }
    return load_policy(name, files)
