"""Owns which facts the contract of each tool depends on, and which of them changed since it was last asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from engine.domain.conditions import Condition
from engine.domain.facts import Facts
from engine.domain.policy import Capability, Policy, Rule, ToolSpec
from engine.domain.state import RunState, unattended_tool
from engine.policy import budgets, builtin
from engine.policy.view import look, new_caps

_STATIC: Final = ("tool", "call", "origin", "args_of", "params", "limits", "task", "principal")
"""Roots that cannot change while a Run lives, or that only the model's own arguments settle."""

Getter = Callable[[RunState, Facts], object]


class Readers:
    """Which tool reads which fact: the same for every Run under the same policies."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        own = policies[0]
        outputs = [output.tool for output in own.outputs.values()]
        self.names = (*own.tools, builtin.REQUEST_CAPABILITY, builtin.ASK_USER, *outputs, builtin.FINISH)
        """Every tool that a contract may hold, in the order of tools[]."""
        self.of_path: dict[str, list[str]] = {}
        self.of_clock: dict[str, None] = {}
        """Tools whose answer time alone can change."""
        self.args: dict[str, frozenset[str]] = {}
        """Tool -> its arguments that any rule or hide reads."""
        self.of_cap: dict[str, list[str]] = {}
        """Unattended rule, or tool, whose calls are counted -> the tools that their number may take away."""
        for name in self.names:
            self._add(name, policies)
        total = budgets.of(policies).calls_total
        self.getters = [(path, _getter(path, total)) for path in self.of_path]

    def _add(self, name: str, policies: Sequence[Policy]) -> None:
        spec = policies[0].tools.get(name)
        args: set[str] = set()
        paths = set(_structure(name, spec))
        for policy in policies:
            for rule in policy.rules_of.get(name, ()):
                self._add_rule(name, rule, paths, args)
                if policy is not policies[0] and rule in new_caps(policies[0], policy):
                    for counted in rule.matches:
                        self.of_cap.setdefault(unattended_tool(counted), []).append(name)
            for hide in policy.hides_of.get(name, ()):
                self._add_condition(hide.when, paths, args)
            if name == builtin.REQUEST_CAPABILITY:
                for capability in policy.capabilities.values():
                    self._add_capability(capability, paths, args)
            output = policy.outputs.get(name.removeprefix("publish_"))
            if spec is None and output is not None and output.publish is not None:
                self._add_condition(output.publish.when, paths, args)
        self.args[name] = frozenset(args)
        for path in _resolved(paths, spec):
            if path == "now" or path.endswith(".age") or path == "run.budget_left.wall_time":
                self.of_clock[name] = None
            else:
                self.of_path.setdefault(path, []).append(name)

    def _add_rule(self, name: str, rule: Rule, paths: set[str], args: set[str]) -> None:
        paths.update(f"grant.{capability}" for capability in rule.needs)
        if rule.unattended is not None:
            self.of_cap.setdefault(rule.id, []).append(name)
        self._add_condition(rule.when, paths, args)
        self._add_condition(rule.unless, paths, args)

    def _add_capability(self, capability: Capability, paths: set[str], args: set[str]) -> None:
        paths.add(f"grant.{capability.name}")
        self._add_condition(capability.request_when, paths, args)
        for branch in capability.approve:
            self._add_condition(branch.when, paths, args)

    @staticmethod
    def _add_condition(condition: Condition | None, paths: set[str], args: set[str]) -> None:
        if condition is not None:
            paths.update(condition.reads)
            args.update(condition.args_read)


class Watch:
    """Remembers what one Run's facts were; `changed` names the tools to compute again."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._seen: list[object] | None = None
        self._per_tool: dict[str, int] = {}
        self._unattended: dict[str, int] = {}

    def changed(self, state: RunState, facts: Facts) -> list[str]:
        """Tools of which a fact may have changed since the last call; all of them the first time."""
        now = [get(state, facts) for _, get in self._readers.getters]
        before, self._seen = self._seen, now
        if before is None:
            self._counts(state)
            return list(self._readers.names)
        dirty = dict(self._readers.of_clock)
        if now != before:
            for (path, _), old, new in zip(self._readers.getters, before, now, strict=True):
                if old is not new and old != new:
                    dirty.update(dict.fromkeys(self._readers.of_path[path]))
        for name in self._counts(state):
            dirty[name] = None
        return list(dirty)

    def _counts(self, state: RunState) -> Iterator[str]:
        spent = state.spent
        moved: list[str] = []
        if spent.per_tool != self._per_tool:
            moved += [name for name, used in spent.per_tool.items() if self._per_tool.get(name) != used]
            self._per_tool = dict(spent.per_tool)
        if spent.unattended != self._unattended:
            for rule, used in spent.unattended.items():
                if self._unattended.get(rule) != used:
                    moved += self._readers.of_cap.get(rule, [])
            self._unattended = dict(spent.unattended)
        return (name for name in moved if name in self._readers.args)


def _structure(name: str, spec: ToolSpec | None) -> Iterator[str]:
    if spec is not None:
        yield "$total"
        if spec.source is not None:
            yield f"source.{spec.source}.state"
        for param in spec.bound_params:
            yield str(param.bind)
    elif name == builtin.ASK_USER:
        yield "$questions"
    elif name.startswith("publish_"):
        yield "$published"


def _resolved(paths: set[str], spec: ToolSpec | None) -> Iterator[str]:
    """Arguments become what they are bound to; those of the model, and what never changes, are left out."""
    found: dict[str, None] = {}
    for path in sorted(paths):
        root, _, rest = path.partition(".")
        if root == "args":
            param = spec.params.get(rest.partition(".")[0]) if spec is not None else None
            root = param.bind.partition(".")[0] if param is not None and param.bind else "tool"
            path = param.bind if param is not None and param.bind else path
        if root == "grant":
            path = ".".join(path.split(".")[:2])
        if root not in _STATIC:
            found[path] = None
    return iter(found)


def _getter(path: str, total: int) -> Getter:
    if path == "$total":
        return lambda state, _: state.spent.calls >= total
    root, _, rest = path.partition(".")
    if root == "history":
        return lambda _, facts: _receipts(facts, rest)
    if root == "grant":
        return lambda _, facts: list(facts.grants.get(rest, ()))
    if root == "state":
        return _state_getter(rest)
    special = _SPECIAL.get(path)
    return special if special is not None else lambda _, facts: look(facts, path)


def _state_getter(rest: str) -> Getter:
    """A field by its value, which is the same object while its slice has not changed; a whole slice by its version."""
    name, _, path = rest.partition(".")
    field = path.partition(".")[0]

    def value(state: RunState, _: Facts) -> object:
        held = state.state.get(name)
        return None if held is None else held.value.get(field) if field else held.version

    return value


def _receipts(facts: Facts, tool: str) -> object:
    past = facts.history.get(tool)
    if past is None:
        return None
    return past.changes


_SPECIAL: Final[Mapping[str, Any]] = {
    "$questions": lambda state, _: state.spent.questions,
    "$published": lambda state, _: tuple(state.publications),
}
