"""Owns the world outside the engine: a tau2 domain's own environment, and a ledger of what was done to it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from loguru import logger

from benchmarks.tau2.probes import PROBES
from engine.domain.calls import Failed
from engine.domain.policy import ToolSpec
from engine.ports import ToolRequest
from tau2.data_model.message import ToolCall
from tau2.data_model.tasks import Task
from tau2.domains.airline import environment as airline
from tau2.domains.retail import environment as retail
from tau2.domains.telecom import environment as telecom
from tau2.environment.db import DB
from tau2.environment.environment import Environment
from tau2.environment.toolkit import ToolType

logger.disable("tau2")
DOMAINS = ("airline", "retail", "telecom")


class _Table(dict[str, Any]):
    """One table of a database whose entries are copied from the pristine one when they are first looked up."""

    def __init__(self, pristine: Mapping[str, Any]) -> None:
        super().__init__(pristine)
        self._shared = set(pristine)

    def __getitem__(self, key: str) -> Any:
        if key in self._shared:
            self._shared.discard(key)
            super().__setitem__(key, copy.deepcopy(super().__getitem__(key)))
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401 - `get` itself

    def __setitem__(self, key: str, value: Any) -> None:
        self._shared.discard(key)
        super().__setitem__(key, value)


@lru_cache(maxsize=1)
def _airline() -> DB:
    return airline.get_environment().tools.db


@lru_cache(maxsize=1)
def _retail() -> DB:
    return retail.get_environment().tools.db


@lru_cache(maxsize=1)
def _telecom() -> tuple[DB, DB]:
    made = telecom.get_environment_manual_policy()
    return made.tools.db, made.user_tools.db


def pristine(domain: str) -> DB:
    """The database as it ships; nobody may change it."""
    return _airline() if domain == "airline" else _retail() if domain == "retail" else _telecom()[0]


def _on_demand(db: DB) -> DB:
    """A database that shares every entry with `db` until somebody looks at it."""
    return type(db).model_construct(
        **{name: _Table(getattr(db, name)) if isinstance(getattr(db, name), dict) else copy.deepcopy(getattr(db, name))
           for name in type(db).model_fields}
    )  # fmt: skip


def environment(domain: str, task: Task) -> Environment:
    """A fresh environment in the task's initial state."""
    if domain == "airline":
        made = airline.get_environment(db=_on_demand(_airline()))
    elif domain == "retail":
        made = retail.get_environment(db=_on_demand(_retail()))
    else:
        db, user = _telecom()
        made = telecom.get_environment_manual_policy(db=copy.deepcopy(db), user_db=copy.deepcopy(user))
    initial = task.initial_state
    made.set_state(
        initialization_data=initial.initialization_data if initial else None,
        initialization_actions=initial.initialization_actions if initial else None,
        message_history=(initial.message_history or []) if initial else [],
    )
    return made


def tasks(domain: str, full: bool = False) -> list[Task]:
    """The tasks of the base split; for telecom `full` gives every task."""
    if domain == "airline":
        return list(airline.get_tasks())
    if domain == "retail":
        return list(retail.get_tasks())
    return list(telecom.get_tasks("full" if full else "base"))


def same(one: Environment, other: Environment) -> bool:
    """Whether two environments hold the same data, entry by entry: what equal hashes say, and much cheaper."""
    kits = [(one.tools, other.tools), (one.user_tools, other.user_tools)]
    return all((a is None and b is None) or (a.db.__dict__ == b.db.__dict__) for a, b in kits)


def writes(made: Environment, tool: str) -> bool:
    kit = made.tools if made.tools.has_tool(tool) else made.user_tools
    return bool(kit.tool_type(tool) is ToolType.WRITE)


@dataclass
class World:
    """The environment of one Run with what was done to it: lives on when the engine's process dies."""

    domain: str
    made: Environment
    ledger: list[str] = field(default_factory=list)
    """One line per effect that the environment accepted, whatever the event log says."""
    keys: list[str] = field(default_factory=list)
    """The idempotency key of each effect, for the operator who looks it up."""
    reads: int = 0

    @classmethod
    def of(cls, domain: str, task: Task) -> World:
        return cls(domain, environment(domain, task))

    def call(self, tool: str, args: Mapping[str, Any], key: str | None, effect: bool) -> tuple[bool, Any]:
        """(True, the tool's answer), or (False, what the domain reports as its failure)."""
        probe = PROBES[self.domain].get(tool)
        if probe is not None:
            return True, {"found": probe.found(self.made, args)}
        requestor = "assistant" if self.made.tools.has_tool(tool) else "user"
        said = self.made.get_response(
            ToolCall(id="x", name=tool, arguments=_native(args), requestor=requestor)
        )
        if said.error:
            return False, said.content
        if effect:
            self.ledger.append(f"{tool} {json.dumps(args, sort_keys=True)}")
            self.keys.append(key or "")
        else:
            self.reads += 1
        return True, _parsed(said.content)


def _native(args: Mapping[str, Any]) -> dict[str, Any]:
    """Decimals travel as strings; the domain that takes a float is given one."""
    return {name: float(value) if name in ("gb_amount",) else value for name, value in args.items()}


def _parsed(content: str | None) -> Any:
    try:
        return None if content is None else json.loads(content)
    except json.JSONDecodeError:
        return content


Call = Callable[[str, Mapping[str, Any], str | None, bool], tuple[bool, Any]]
"""`World.call`, here or in another process."""


class WorldTools:
    """The executor: each tool is the domain's own function over its own environment.

    The domains raise ValueError before they change anything, as their docstrings declare: a failure whose effects
    are known.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    async def execute(self, request: ToolRequest) -> object:
        effect = request.spec.kind.value != "read"
        done, answer = self._call(request.spec.name, request.args, request.idempotency_key, effect)
        if not done:
            raise Failed(str(answer))
        return answer

    def check(self, specs: Sequence[ToolSpec]) -> list[str]:  # noqa: ARG002 - every tool is the world's
        return []
