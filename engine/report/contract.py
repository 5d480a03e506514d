"""Owns how a contract is printed: tools[] as it is sent, or a line for each tool and each that is absent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.domain.canonical import Json, JsonObject
from engine.domain.messages import ToolSchema
from engine.domain.policy import Policy
from engine.domain.state import RunState
from engine.policy.builtin import ASK_USER, REQUEST_CAPABILITY
from engine.policy.contract import Contract
from engine.policy.watch import Readers
from engine.report.words import safe
from engine.runtime.outlook import estimate


class Offered(NamedTuple):
    contract: Contract
    policies: Sequence[Policy]
    state: RunState

    @property
    def policy(self) -> Policy:
        return self.policies[0]

    @property
    def absent(self) -> dict[str, str]:
        """Tools that the model could have and has not now -> why; those of the Host alone are left out."""
        return {name: why for name, why in self.contract.absent.items() if _can_be_offered(self.policy, name)}


def tools_json(contract: Contract) -> list[Json]:
    """The array of functions, names as the policy has them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in contract.tools
    ]


def tools_text(contract: Contract) -> str:
    return json.dumps(tools_json(contract), ensure_ascii=False, indent=1)


def tokens(contract: Contract) -> int:
    """An estimate; the provider's own count can differ by a third."""
    return estimate(json.dumps(tools_json(contract), ensure_ascii=False))


# --- --names ------------------------------------------------------------------------------------------------


def names_lines(offered: Offered) -> Iterator[str]:
    contract, policy = offered.contract, offered.policy
    who = offered.state.principal
    named = f"{safe(who.id)} ({', '.join(who.roles)})" if who is not None else "nobody"
    yield f"contract {contract.digest[:12]} for {named}, policy {policy.id} v{policy.version}"
    for tool in contract.tools:
        yield _tool(tool, policy)
    absent = offered.absent
    yield f"not shown: {', '.join(absent) or '-'}"
    for name, why in absent.items():
        yield f"  {name:<22} {safe(why)}"
    yield f"about {tokens(contract):,} tokens of tools[] (estimate)"


def _tool(tool: ToolSchema, policy: Policy) -> str:
    spec = policy.tools.get(tool.name)
    kind = "host" if spec is None else spec.kind.value
    params = ", ".join(_properties(tool)) or "-"
    line = f"  {tool.name:<22} {kind:<7} {params:<39}"
    bound = [] if spec is None else [param.name for param in spec.bound_params]
    if bound:
        line += f" Host binds: {', '.join(bound)}"
    for name, values in narrowed(tool, policy).items():
        line += f"  {name}: only {', '.join(values)}"
    return line.rstrip()


def _properties(tool: ToolSchema) -> Mapping[str, Json]:
    found = tool.parameters.get("properties")
    return found if isinstance(found, dict) else {}


def narrowed(tool: ToolSchema, policy: Policy) -> dict[str, list[str]]:
    """Enum parameters of which only some values are left."""
    spec = policy.tools.get(tool.name)
    found: dict[str, list[str]] = {}
    for param in spec.model_params if spec is not None else ():
        shown = _properties(tool).get(param.name)
        values = shown.get("enum") if isinstance(shown, dict) else None
        if param.type.values and isinstance(values, list) and len(values) < len(param.type.values):
            found[param.name] = [str(value) for value in values]
    return found


# --- --explain-changes --------------------------------------------------------------------------------------


_NAMED = {"$total": "budgets.calls.total", "$questions": "budgets.questions_to_user"}


def moving_facts(policy: Policy, readers: Readers) -> dict[str, list[str]]:
    """Fact -> the tools whose place in the contract it can change while a Run lives, in the order of tools[]."""
    offered = {name for name in readers.names if _can_be_offered(policy, name)}
    paths = {**readers.of_path, **({"time": [*readers.of_clock]} if readers.of_clock else {})}
    found = {_named(path): [name for name in tools if name in offered] for path, tools in paths.items()}
    return {fact: tools for fact, tools in sorted(found.items()) if tools}


def _can_be_offered(policy: Policy, name: str) -> bool:
    spec = policy.tools.get(name)
    if spec is not None:
        return spec.exposed == "model"
    if name == REQUEST_CAPABILITY:
        return bool(policy.capabilities)
    return name != ASK_USER or policy.budgets.questions_to_user is not None


def _named(path: str) -> str:
    return f"receipts of {path[8:]}" if path.startswith("history.") else _NAMED.get(path, path)


def changes_lines(offered: Offered, moved: Mapping[str, Sequence[str]]) -> Iterator[str]:
    policy = offered.policy
    yield f"facts that move the contract of policy {policy.id} v{policy.version}; each change re-reads the prompt cache"
    for fact, tools in moved.items():
        yield f"  {fact:<34} {', '.join(tools)}"
    for rule in policy.rules:
        if rule.unattended is not None:
            cap = f"calls under `{rule.id}`"
            yield f"  {cap:<34} {', '.join(sorted(rule.matches))} (at most {rule.unattended.max_per_run})"
    if policy.budgets.calls_per_tool:
        capped = ", ".join(f"{name} {cap}" for name, cap in policy.budgets.calls_per_tool.items())
        yield f"  {'budgets.calls.per_tool':<34} {capped}"
    yield f"about {tokens(offered.contract):,} tokens of tools[] (estimate)"


def contract_json(offered: Offered, moved: Mapping[str, Sequence[str]] | None) -> JsonObject:
    contract, policy = offered.contract, offered.policy
    form: JsonObject = {
        "schema": "agentctl.contract/v1",
        "policy": policy.id,
        "version": policy.version,
        "policy_digest": policy.digest,
        "digest": contract.digest,
        "tools": tools_json(contract),
        "absent": dict(offered.absent),
        "tokens": {"tools": tokens(contract), "counter": "estimate"},
    }
    if moved is not None:
        form["moved_by"] = {fact: [*tools] for fact, tools in moved.items()}
    return form
