"""Owns the tools of the Host in a contract: ask_user, request_capability, publish_<output>, finish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from engine.domain.canonical import Json
from engine.domain.messages import ToolSchema
from engine.domain.policy import Output, Policy
from engine.domain.types import Field, TypeName, ValueType
from engine.policy.schema import object_schema, schema_of

FINISH: Final = "finish"
ASK_USER: Final = "ask_user"
REQUEST_CAPABILITY: Final = "request_capability"

_QUESTION: Final = ValueType(TypeName.TEXT, max_len=2000)
_REASON: Final = ValueType(TypeName.TEXT, max_len=500)
QUESTION_FIELDS: Final = {"question": Field(_QUESTION)}
DRAFT: Final = ValueType(TypeName.ID, max_len=16, pattern=r"D\d+")

FINISH_SCHEMA: Final = ToolSchema(
    FINISH,
    "End the Run. The Host checks its gates over recorded facts; a refusal names the gate.",
    object_schema({}, []),
)
ASK_SCHEMA: Final = ToolSchema(
    ASK_USER,
    "Ask the user one question and wait for the reply.",
    object_schema({"question": schema_of(_QUESTION)}, ["question"]),
)


# --- publications ------------------------------------------------------------------------------------------


def publish_fields(output: Output) -> dict[str, Field]:
    """What `publish_<output>` takes: `draft` and the output's fields, none required by the schema."""
    fields = {"draft": Field(DRAFT, required=False)}
    fields.update((name, Field(field.type, required=False)) for name, field in output.fields.items())
    return fields


def publish_schema(output: Output) -> ToolSchema:
    properties: dict[str, Json] = {
        name: schema_of(field.type, _marks(output, name)) for name, field in output.fields.items()
    }
    properties["draft"] = schema_of(
        DRAFT, "The handle of a refused publication: fields that are left out are taken from it."
    )
    about = output.about or f"the output {output.name}"
    needed = ", ".join(name for name, field in output.fields.items() if field.required)
    return ToolSchema(
        output.tool, f"Publish: {about}. Needed: {needed or 'nothing'}.", object_schema(properties, [])
    )


def _marks(output: Output, name: str) -> str | None:
    field = output.fields[name]
    hints = []
    if field.cites and output.citations is not None:
        kinds = ", ".join(sorted(output.citations.kinds))
        hints.append(f"Cite evidence by its handle as [[E1]] or [[E1#span]] ({kinds}).")
    if field.figures and output.figures is not None:
        hints.append(
            "Figures are slots, {{fig:E1/key/name}} or {{fig:E1/name}}; the Host renders the number."
        )
    return " ".join(hints) or None


# --- capabilities ------------------------------------------------------------------------------------------


def request_schema(policy: Policy, names: Sequence[str]) -> ToolSchema:
    """Flat: the parameters of every capability on offer, optional, beside `capability` and `reason`."""
    properties: dict[str, Json] = {"capability": {"type": "string", "enum": list(names)}}
    lines = []
    for name in names:
        capability = policy.capabilities[name]
        properties.update((param, schema_of(type_)) for param, type_ in capability.params.items())
        takes = f" (needs {', '.join(capability.params)})" if capability.params else ""
        lines.append(f"{name}: {capability.about or name}{takes}")
    properties["reason"] = schema_of(_REASON, "Shown to the person who decides.")
    return ToolSchema(
        REQUEST_CAPABILITY,
        f"Ask for a capability. {'; '.join(lines)}.",
        object_schema(properties, ["capability"]),
    )


def request_fields(policy: Policy, names: Sequence[str]) -> dict[str, Field]:
    """What `request_capability` takes, for reading its arguments."""
    fields = {
        "capability": Field(ValueType(TypeName.ENUM, values=tuple(names))),
        "reason": Field(_REASON, required=False),
    }
    for name in names:
        for param, type_ in policy.capabilities[name].params.items():
            fields[param] = Field(type_, required=False)
    return fields
