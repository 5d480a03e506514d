"""Owns rules as rules of the linter read them: each with its part of the file and what it claims of the facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from engine.domain.conditions import Condition
from engine.domain.diagnostics import Location
from engine.domain.facts import Value
from engine.domain.policy import Policy
from engine.policy.conditions import compile_value
from engine.policy.documents.policy import HidePart, PolicyDocument, RulePart
from engine.policy.documents.tools import ToolPart
from engine.policy.environments import BIND_ROOTS
from engine.policy.model import Model
from engine.policy.selectors import selected
from engine.policy.solver import (
    FALSE,
    TRUE,
    UNSURE,
    Active,
    Argument,
    Claim,
    HasRole,
    Says,
    Solver,
    View,
    every,
    opposite,
    some,
)


@dataclass(frozen=True, slots=True, eq=False)
class WrittenRule:
    """A rule of the policy or of an overlay."""

    part: RulePart
    tools: frozenset[str]
    """The tools that it matches in this policy."""
    when: Condition | None
    unless: Condition | None
    overlay: str | None
    """The overlay that it stands in; None: the policy."""
    whole: bool
    """Every part of it could be read, so what it does not say it does not mean."""

    @property
    def id(self) -> str:
        return self.part.id

    @property
    def effect(self) -> Literal["allow", "ask", "require", "deny"]:
        return self.part.effect

    @property
    def permits(self) -> bool:
        return self.effect in ("allow", "ask") and self.overlay is None

    @property
    def named(self) -> str:
        return f"{self.effect} `{self.id}`"

    @property
    def matches(self) -> Claim:
        """That the rule takes part in the decision: unknown satisfies deny and require, never allow and ask."""
        return self._holds(0 if self.permits else UNSURE)

    @property
    def matches_surely(self) -> Claim:
        return self._holds(0)

    @property
    def may_match(self) -> Claim:
        return self._holds(UNSURE)

    def _holds(self, unsure: int) -> Claim:
        parts: list[Claim] = [] if self.part.roles is None else [HasRole(frozenset(self.part.roles))]
        parts.extend(Active(name) for name in self.part.needs)
        if self.when is not None:
            parts.append(Says(self.when.expr, TRUE | unsure))
        if self.unless is not None:
            parts.append(Says(self.unless.expr, FALSE | unsure))
        return every(parts)

    def asks_origin(self, param: str, arg_class: str | None) -> bool:
        """True if it asks where an argument comes from, by its name or by its class."""
        wanted = {f"args.{param}", f"args_of.{arg_class}"}
        conditions = [each for each in (self.when, self.unless) if each is not None]
        return any("origin" in each.reads and not wanted.isdisjoint(each.reads) for each in conditions)

    def place_of(self, tool: str) -> Location:
        """Where the rule names the tool, or selects it."""
        entries = self.part.tools
        at = entries.index(tool) if tool in entries else None
        return self.part.key_place("tools") if at is None else self.part.place("tools", at)


@dataclass(frozen=True, slots=True, eq=False)
class WrittenHide:
    part: HidePart
    tools: frozenset[str]
    when: Condition | None
    whole: bool

    @property
    def hides_surely(self) -> Claim:
        roles = self.part.roles
        parts: list[Claim] = [] if roles is None else [HasRole(frozenset(roles))]
        if self.when is not None:
            parts.append(Says(self.when.expr, TRUE))
        return every(parts)


def written(model: Model) -> Written | None:
    """The rules of a policy with what several rules of the linter ask of them; None without a policy."""
    if model.policy_part is None or model.policy is None:
        return None
    found = model.shared.get("written")
    if not isinstance(found, Written):
        found = model.shared["written"] = Written(model, model.policy_part, model.policy)
    return found


def is_limited(model: Model) -> bool:
    """True if a question about this policy stayed open because the SMT solver is not installed."""
    found = model.shared.get("written")
    return isinstance(found, Written) and found.solver.limited


class Written:
    """Everything is worked out when first asked for."""

    def __init__(self, model: Model, part: PolicyDocument, policy: Policy) -> None:
        self.model = model
        self.part = part
        self.policy = policy
        self.solver = Solver()
        self._views: dict[str, View] = {}

    # --- rules

    @cached_property
    def rules(self) -> tuple[WrittenRule, ...]:
        """Those of the policy, then those of its overlays, in the order of the files."""
        found = [self._rule(rule, None) for rule in self.part.permissions]
        for overlay in self.model.overlay_parts.values():
            found.extend(self._rule(rule, overlay.id) for rule in overlay.permissions)
        return tuple(found)

    def _rule(self, part: RulePart, overlay: str | None) -> WrittenRule:
        when, unless = self.model.condition(part, "when"), self.model.condition(part, "unless")
        whole = not part.node.lost and (when is None) == (part.when is None)
        whole = whole and (unless is None) == (part.unless is None)
        return WrittenRule(part, self._matched(part.tools), when, unless, overlay, whole)

    @cached_property
    def hides(self) -> tuple[WrittenHide, ...]:
        found = list(self.part.visibility.hide if self.part.visibility else ())
        for overlay in self.model.overlay_parts.values():
            found.extend(overlay.visibility.hide if overlay.visibility else ())
        return tuple(self._hide(part) for part in found)

    def _hide(self, part: HidePart) -> WrittenHide:
        when = self.model.condition(part, "when")
        whole = not part.node.lost and (when is None) == (part.when is None)
        return WrittenHide(part, self._matched(part.tools), when, whole)

    def _matched(self, entries: Iterable[str]) -> frozenset[str]:
        return frozenset().union(*(selected(entry, self.tools, self.publications) for entry in entries))

    @cached_property
    def tools(self) -> Mapping[str, ToolPart]:
        return self.model.tools

    @cached_property
    def publications(self) -> tuple[str, ...]:
        return tuple(f"publish_{name}" for name in self.part.outputs)

    @cached_property
    def by_tool(self) -> Mapping[str, tuple[WrittenRule, ...]]:
        """Tool -> the rules that match it."""
        found: dict[str, list[WrittenRule]] = {}
        for rule in self.rules:
            for tool in sorted(rule.tools):
                found.setdefault(tool, []).append(rule)
        return {tool: tuple(rules) for tool, rules in found.items()}

    def rules_of(self, tool: str) -> tuple[WrittenRule, ...]:
        return self.by_tool.get(tool, ())

    def permits_of(self, tool: str) -> list[WrittenRule]:
        return [rule for rule in self.rules_of(tool) if rule.permits]

    def denies_of(self, tool: str) -> list[WrittenRule]:
        return [rule for rule in self.rules_of(tool) if rule.effect == "deny"]

    def read_whole(self, tool: str) -> bool:
        """True if nothing that concerns the tool was lost to a fault."""
        rules = all(rule.whole for rule in self.rules_of(tool))
        return (
            rules and all(hide.whole for hide in self.hides if tool in hide.tools) and not self.model.unread
        )

    # --- questions

    @cached_property
    def started(self) -> Claim:
        """That somebody is there who may open a Run."""
        roles = frozenset(self.part.principals.may_start)
        return HasRole(roles) if roles else every(())

    def impossible(self, *claims: Claim, tool: str | None = None, offered: bool = False) -> bool:
        """True if the claims can never hold together; with `offered`, while the model's arguments are unknown."""
        view = self.view(tool) if tool is not None else self.anywhere
        view = replace(view, offered=True) if offered else view
        return self.solver.impossible(every((self.started, *claims)), view, deep=not offered)

    @cached_property
    def impossible_rules(self) -> Mapping[int, tuple[str, ...]]:
        """id of a rule -> the tools for which it can never match, if that is every tool that it matches."""
        found = {}
        for rule in self.rules:
            if not rule.whole or (rule.when is None and rule.unless is None) or not rule.tools:
                continue
            if rule.overlay is None:
                dead = all(self.impossible(rule.matches_surely, tool=tool) for tool in sorted(rule.tools))
            else:
                dead = self.impossible(rule.matches_surely)
            if dead:
                found[id(rule)] = tuple(sorted(rule.tools))
        return found

    def is_impossible(self, rule: WrittenRule) -> bool:
        return id(rule) in self.impossible_rules

    @cached_property
    def swallowed(self) -> Mapping[tuple[int, str], WrittenRule]:
        """(id of a rule that permits, tool) -> the first deny that always wins over it."""
        found: dict[tuple[int, str], WrittenRule] = {}
        for tool in self.by_tool:
            denies = [rule for rule in self.denies_of(tool) if rule.whole and not self.is_impossible(rule)]
            for rule in self.permits_of(tool) if denies else ():
                deny = self._winner(rule, denies, tool)
                if deny is not None:
                    found[id(rule), tool] = deny
        return found

    def _winner(self, rule: WrittenRule, denies: list[WrittenRule], tool: str) -> WrittenRule | None:
        if not rule.whole or self.is_impossible(rule):
            return None
        together = every(opposite(deny.matches) for deny in denies)
        if not self.impossible(rule.matches, together, tool=tool):
            return None
        return next(
            (deny for deny in denies if self.impossible(rule.matches, opposite(deny.matches), tool=tool)),
            None,
        )

    @cached_property
    def never_permitted(self) -> Mapping[str, tuple[WrittenRule, ...]]:
        """Tool that the model is shown though every call of it is denied -> the rules that permit it."""
        found: dict[str, tuple[WrittenRule, ...]] = {}
        for tool, part in self.tools.items():
            permits = [rule for rule in self.permits_of(tool) if not self.is_impossible(rule)]
            denies = self.denies_of(tool)
            if part.exposed == "host" or not permits or not denies or not self.read_whole(tool):
                continue
            refused = every(opposite(deny.matches) for deny in denies)
            if self.impossible(some(rule.matches for rule in permits), refused, tool=tool) and self.is_shown(
                tool
            ):
                found[tool] = tuple(permits)
        return found

    def is_shown(self, tool: str, *, with_denies: bool = True) -> bool:
        """True unless the contract can never have the tool, as far as rules go."""
        offered = some(rule.may_match for rule in self.permits_of(tool))
        stops = [opposite(hide.hides_surely) for hide in self.hides if tool in hide.tools]
        if with_denies:
            stops.extend(opposite(deny.matches_surely) for deny in self.denies_of(tool))
        return not self.impossible(offered, *stops, tool=tool, offered=True)

    # --- views

    @cached_property
    def anywhere(self) -> View:
        return View(limits=self._limits)

    @cached_property
    def _limits(self) -> Mapping[str, Value]:
        return {name: limit.value for name, limit in self.policy.limits.items() if limit.value is not None}

    def view(self, tool: str) -> View:
        """How conditions read for one tool: its facts, its arguments, what the Host binds them to."""
        found = self._views.get(tool)
        if found is None:
            found = self._views[tool] = View(self._limits, self._tool_facts(tool), self._arguments(tool))
        return found

    def _tool_facts(self, tool: str) -> Mapping[str, Value]:
        spec = self.policy.tools.get(tool)
        if spec is None:
            return {"name": tool, "kind": "write", "reversible": False, "egress": False}
        source = {} if spec.source is None else {"source": spec.source}
        flags = {"reversible": spec.reversible, "egress": spec.egress}
        return {"name": tool, "kind": spec.kind.value, **flags, **source}

    def _arguments(self, tool: str) -> dict[str, Argument]:
        env = self.model.environment
        shape, part = env.tools.get(tool), self.tools.get(tool)
        found = {}
        for name, param in shape.params.items() if shape is not None else ():
            bind = part.params[name].bind if part is not None else None
            value = compile_value(bind, env.at(BIND_ROOTS))[0] if bind is not None else None
            found[name] = Argument(param.type, param.required, value.expr if value is not None else None)
        return found
