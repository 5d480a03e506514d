"""Owns the execution of calls by the suite's own runtime over its environment, and what both sides call a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

from benchmarks.agentdojo.suites import Call, load_suites
from engine.domain.calls import Failed
from engine.domain.policy import Policy, ToolSpec
from engine.domain.types import Trust, TypeName, ValueType
from engine.ports import ToolRequest


def run() -> None:
    """The handler that the tool specs name; calls go to `World`."""
    raise Failed("the suite's tools run in a World only")


class World:
    """A ToolExecutor over one environment of a suite. `planted` are values that an adaptive attacker has put into
    every field that the policy calls trusted, as far as results have such fields."""

    def __init__(self, policy: Policy, suite: str, env: Any, planted: Sequence[str] = ()) -> None:
        self.env = env
        self._policy = policy
        self.made: list[Call] = []
        """What ran, with the suite's own arguments, in order."""
        self._suite = suite
        self._planted = tuple(planted)

    async def execute(self, request: ToolRequest) -> object:
        name, args = request.spec.name, to_suite(request.spec, request.args)
        try:
            found, _ = _runtime(self._suite).run_function(self.env, name, args, raise_on_error=True)
        except Exception as error:
            raise Failed(f"{type(error).__name__}: {error}"[:500]) from error
        self.made.append((name, args))
        value = _plain(found)
        return {"value": self._with_planted(request.spec, value) if self._planted else value}

    def _with_planted(self, spec: ToolSpec, value: Any) -> Any:
        source = self._policy.sources.get(spec.source or "")
        return plant(value, spec, source is not None and source.trust is Trust.UNTRUSTED, self._planted)

    def check(self, specs: Sequence[ToolSpec]) -> list[str]:
        known = _runtime(self._suite).functions
        return [f"the suite has no tool `{spec.name}`" for spec in specs if spec.name not in known]


@cache
def _runtime(suite: str) -> Any:
    from agentdojo.functions_runtime import FunctionsRuntime

    return FunctionsRuntime(load_suites()[suite].tools)


def _plain(value: Any) -> Any:
    """JSON data; the suites write times without a zone."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def plant(value: Any, spec: ToolSpec, untrusted_source: bool, planted: Sequence[str]) -> Any:
    """The result with the attacker's values wherever the spec calls a place trusted: one more element of a list for
    each value, one more field of an object, one more text beside a text. What was there stays as it was."""
    declared = spec.result.get("value")
    trust = Trust.UNTRUSTED if untrusted_source else Trust.TRUSTED
    if declared is not None and declared.trust is not None:
        trust = declared.trust
    return _plant(value, declared.type if declared else None, trust, planted)


def _plant(value: Any, type_: ValueType | None, trust: Trust, planted: Sequence[str]) -> Any:
    if isinstance(value, list):
        names = _trusted_names(value, type_.of if type_ else None, trust)
        if names:
            return [*value, *(dict.fromkeys(names, text) for text in planted)]
        plain = trust is Trust.TRUSTED and not any(isinstance(item, dict) for item in value)
        return [*value, *planted] if plain else value
    if trust is not Trust.TRUSTED:
        return value
    if isinstance(value, dict):
        return {**value, "planted": list(planted)}
    return {"text": value, "planted": list(planted)} if isinstance(value, str) else value


def _trusted_names(records: Sequence[Any], type_: ValueType | None, trust: Trust) -> list[str]:
    """The fields of these records that are trusted, declared or by what holds them."""
    declared = type_.fields if type_ else {}
    written = dict.fromkeys(name for item in records if isinstance(item, dict) for name in item)
    said = {name: declared[name].trust if name in declared else None for name in {**written, **declared}}
    return [name for name, own in said.items() if (own or trust) is Trust.TRUSTED]


# --- values on both sides -------------------------------------------------------------------------------------


def to_suite(spec: ToolSpec, args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as the suite wants them: fractions as numbers, times without zone."""
    return {name: _back(value, spec.params[name].type) for name, value in args.items()}


def _back(value: Any, type_: ValueType) -> Any:
    match type_.name:
        case TypeName.DECIMAL:
            return float(value)
        case TypeName.TIMESTAMP:
            return datetime.fromisoformat(value).strftime("%Y-%m-%d %H:%M")
        case TypeName.LIST if isinstance(value, list) and type_.of is not None:
            return [_back(item, type_.of) for item in value]
        case TypeName.RECORD if isinstance(value, dict):
            return {name: _back(item, type_.fields[name].type) for name, item in value.items()}
    return value


def to_contract(spec: ToolSpec, args: Mapping[str, Any]) -> dict[str, Any]:
    """The suite's arguments as our contract has them; those that are None are left out."""
    return {
        name: _forth(value, spec.params[name].type) if name in spec.params else value
        for name, value in args.items()
        if value is not None
    }


def _forth(value: Any, type_: ValueType) -> Any:
    match type_.name:
        case TypeName.DECIMAL if isinstance(value, int | float):
            return str(Decimal(str(value)))
        case TypeName.TIMESTAMP:
            return datetime.fromisoformat(str(value)).strftime("%Y-%m-%dT%H:%M:%SZ")
        case TypeName.LIST if isinstance(value, list) and type_.of is not None:
            return [_forth(item, type_.of) for item in value]
        case TypeName.RECORD if isinstance(value, dict):
            return {name: _forth(item, type_.fields[name].type) for name, item in value.items()}
    return value
