"""Owns what conditions may read at each place of a policy: environments made from its documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from engine.domain.types import Trust, TypeName, ValueType
from engine.policy import names
from engine.policy.conditions import BASE_ROOTS, Environment, ParamShape, ToolShape
from engine.policy.documents.policy import LimitPart, OutputPart, PolicyDocument
from engine.policy.documents.tools import SourcePart, ToolPart
from engine.policy.documents.types import arg_class, field_type, value_type
from engine.policy.model import Model

BIND_ROOTS: Final = frozenset({"principal", "task", "state", "grant", "run", "limits", "now"})
"""What a parameter may be bound to, beside `evidence.<kind>`."""
KEY_ROOTS: Final = BIND_ROOTS | {"call"}
"""Host facts that an idempotency or cache key may name."""
PROMPT_ROOTS: Final = frozenset({"principal", "task", "run", "limits", "now"})
PUBLISH_ROOTS: Final = BASE_ROOTS | {"tool", "args"}


def environment(model: Model) -> Environment:
    """The environment of a whole policy; `at(...)` narrows it to a place."""
    tools = {name: tool_shape(tool, model.sources) for name, tool in model.tools.items()}
    policy = model.policy_part
    if policy is None:
        return Environment(tools=tools, sources=tuple(model.sources), evidence_kinds=_kinds(model))
    tools.update((f"publish_{name}", _publish_shape(output)) for name, output in policy.outputs.items())
    return Environment(
        attrs={name: value_type(part) for name, part in policy.principals.attrs.items()},
        roles=tuple(policy.principals.roles),
        task={name: field_type(part) for name, part in policy.task.items()},
        state={
            name: {key: field_type(part) for key, part in slice_.fields.items()}
            for name, slice_ in policy.state.items()
        },
        sources=tuple(model.sources),
        capabilities=_capabilities(policy),
        limits={name: limit_type(part) for name, part in policy.limits.items()},
        budgets=names.BUDGETS,
        labels=model.labels,
        outputs=tuple(policy.outputs),
        tools=tools,
        evidence_kinds=_kinds(model),
    )


def tool_shape(tool: ToolPart, sources: Mapping[str, SourcePart]) -> ToolShape:
    params = {}
    for name, part in tool.params.items():
        type_ = value_type(part)
        params[name] = ParamShape(type_, part.required, part.bind is not None, arg_class(part, type_))
    source = sources.get(tool.source or "")
    return ToolShape(
        params=params,
        result={name: field_type(part) for name, part in (tool.result or {}).items()},
        trust=Trust(source.trust) if source is not None else Trust.TRUSTED,
    )


def limit_type(part: LimitPart) -> ValueType:
    if part.type == "enum" and not part.values:
        return ValueType(TypeName.ID)
    return ValueType(TypeName(part.type), values=tuple(part.values or ()))


def _publish_shape(output: OutputPart) -> ToolShape:
    return ToolShape({name: ParamShape(value_type(part), False) for name, part in output.fields.items()})


def _capabilities(policy: PolicyDocument) -> dict[str, dict[str, ValueType]]:
    return {
        name: {key: value_type(part) for key, part in capability.params.items()}
        for name, capability in policy.capabilities.items()
    }


def _kinds(model: Model) -> tuple[str, ...]:
    return tuple(sorted(model.evidence_kinds))


def names_of(entries: Iterable[str], env: Environment) -> list[str]:
    """The tools that a rule names one by one and that exist."""
    return [entry for entry in entries if entry in env.tools]
