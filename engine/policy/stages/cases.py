"""Owns the last stage: every name and value of a test file against the policy that it tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from engine.domain.canonical import Json
from engine.domain.diagnostics import Location, Severity, suggest
from engine.domain.policy import Policy
from engine.domain.types import Field
from engine.policy.conditions.values import parse_timestamp
from engine.policy.documents.base import Part
from engine.policy.documents.facts import FactsDocument, PastCallPart
from engine.policy.documents.test import (
    CasePart,
    DecisionPart,
    ExpectPart,
    GivenPart,
    PersonPart,
    TestDocument,
    TurnPart,
)
from engine.policy.model import Model
from engine.policy.names import HOST_TOOLS
from engine.policy.nodes import plain
from engine.policy.values import Fault, read_value

Add: TypeAlias = Callable[[str, Location, str, str], None]
"""(code, place, message, help)."""

NO_RULE: Final = "none"
"""`rule: none`: no rule permits the call."""


def cases(model: Model) -> None:
    """Only against a policy without faults: names that were lost to a fault prove nothing."""
    if model.policy is None or model.unread:
        return
    if any(found.severity is Severity.ERROR for found in model.diagnostics()):
        return
    for document in model.test_parts.values():
        check_cases(model.policy, document, model.add)


def check_cases(policy: Policy, document: TestDocument, add: Add) -> None:
    """Reports names that the policy does not have and given values that do not fit, each at its place."""
    for case in document.cases:
        _Names(policy, add).case(case)


def check_facts(policy: Policy, document: FactsDocument, add: Add) -> None:
    """The same for a facts file, in which whatever is left out is not known."""
    names = _Names(policy, add)
    names.facts(document, partial=True)
    for past in document.history:
        names.past(past)


def callable_names(policy: Policy) -> list[str]:
    """Every tool that a model could name: the policy's, those of the Host, one for each output."""
    return [*policy.tools, *sorted(HOST_TOOLS), *(output.tool for output in policy.outputs.values())]


class _Names:
    def __init__(self, policy: Policy, add: Add) -> None:
        self.policy = policy
        self.add = add
        self.tools = callable_names(policy)
        self.sources = {*policy.sources}
        self.rules = {rule.id for rule in policy.rules}

    def case(self, case: CasePart) -> None:
        self.facts(case.given, partial=False)
        for turn in case.turns:
            self._turn(turn)

    def facts(self, given: GivenPart | FactsDocument, *, partial: bool) -> None:
        policy = self.policy
        if given.principal is not None:
            self._person(given.principal, partial=partial)
        if given.now is not None and not isinstance(parse_timestamp(given.now), datetime):
            help_ = "write a time with its zone: 2026-01-31T00:00:00Z"
            self.add("Y205", given.place("now"), f"`{given.now}` is no time", help_)
        self._fields(given, ("task",), given.task, policy.task, "task")
        for name, field in policy.task.items():
            if field.required and name not in given.task and not given.is_lost("task") and not partial:
                place = given.key_place("task") if given.is_written("task") else given.here
                self.add("Y202", place, f"task field `{name}` is missing", f"add `{name}`: {field.type}")
        for name, value in given.state.items():
            if self._known("R206", given.key_place("state", name), "state slice", name, policy.state):
                fields = policy.state[name].fields
                self._fields(given, ("state", name), value, fields, f"state.{name}")
        for name, params in given.grant.items():
            if self._known("R203", given.key_place("grant", name), "capability", name, policy.capabilities):
                declared = {param: Field(type_) for param, type_ in policy.capabilities[name].params.items()}
                self._fields(given, ("grant", name), params, declared, f"grant.{name}")
        self._sources(given, "sources", given.sources)

    def past(self, past: PastCallPart) -> None:
        if self._known("R201", past.place("call"), "tool", past.call, self.policy.tools):
            params = {name: Field(param.type) for name, param in self.policy.tools[past.call].params.items()}
            self._fields(past, ("args",), past.args, params, f"args of {past.call}")

    def _turn(self, turn: TurnPart) -> None:
        self._sources(turn, "source", turn.source or {})
        for path, value in (turn.set or {}).items():
            self._set(turn, path, value)
        for decision in (turn.approve, turn.refuse):
            if decision is not None:
                self._decision(decision)
        for proposal in turn.propose or ():
            self._tool(proposal, proposal.call, "call")
        if turn.expect is not None:
            self._expect(turn.expect)

    def _set(self, turn: TurnPart, path: str, value: Json) -> None:
        place = turn.key_place("set", path)
        root, _, rest = path.partition(".")
        name, _, field = rest.partition(".")
        if root != "state" or not name or not field or "." in field:
            self.add(
                "Y205", place, f"`{path}` is no field of app state", "write `state.<slice>.<field>: value`"
            )
        elif self._known("R206", place, "state slice", name, self.policy.state):
            fields = self.policy.state[name].fields
            if self._known("C103", place, f"field of state.{name}", field, fields):
                self._value(turn.place("set", path), value, fields[field], path)

    def _expect(self, expect: ExpectPart) -> None:
        for key in ("shows", "hides"):
            for at, name in enumerate(getattr(expect, key) or ()):
                self._tool(expect, name, key, at)
        for call in expect.calls or ():
            if call.rule is not None and call.rule != NO_RULE:
                self._rule(call, call.rule, "rule")
            for at, rule in enumerate(call.for_ or ()):
                self._rule(call, rule, "for", at)

    def _rule(self, part: Part, rule: str, *steps: str | int) -> None:
        """A rule, or what else can hold a call for people: a capability or a publication."""
        known = {*self.rules, *(hide.id for hide in self.policy.hides)}
        if steps[0] == "for":
            known = {*self.rules, *self.policy.capabilities, *self.tools}
        if rule not in known:
            have = ", ".join(sorted(self.rules)) or "none"
            help_ = suggest(rule, known, f"its rules: {have}")
            self.add("Y204", part.place(*steps), f"the policy has no rule `{rule}`", help_)

    def _decision(self, decision: DecisionPart) -> None:
        self._tool(decision, decision.call, "call")
        for at, role in enumerate(decision.by.roles):
            self._known("R202", decision.by.place("roles", at), "role", role, self.policy.roles)

    def _person(self, person: PersonPart, *, partial: bool) -> None:
        for at, role in enumerate(person.roles):
            self._known("R202", person.place("roles", at), "role", role, self.policy.roles)
        attrs = attributes(person)
        declared = {name: Field(type_) for name, type_ in self.policy.attrs.items()}
        self._fields(person, (), attrs, declared, "principal")
        for name, field in declared.items():
            if name not in attrs and not person.is_lost(name) and not partial:
                message = f"the principal's `{name}` is missing"
                self.add("Y202", person.here, message, f"add `{name}`: {field.type}")

    def _tool(self, part: Part, name: str, *steps: str | int) -> None:
        self._known("R201", part.place(*steps), "tool", name, self.tools)

    def _sources(self, part: Part, key: str, given: Mapping[str, str]) -> None:
        for name in given:
            self._known("R205", part.key_place(key, name), "source", name, self.sources)

    def _known(self, code: str, place: Location, what: str, name: str, known: Collection[str]) -> bool:
        if name in known:
            return True
        have = ", ".join(sorted(known)) or "none is declared"
        self.add(code, place, f"there is no {what} `{name}`", suggest(name, known, f"known: {have}"))
        return False

    def _fields(
        self,
        part: Part,
        under: tuple[str, ...],
        given: Mapping[str, Json],
        known: Mapping[str, Field],
        what: str,
    ) -> None:
        for name, value in given.items():
            if self._known("C103", part.key_place(*under, name), f"field of {what}", name, known):
                self._value(part.place(*under, name), value, known[name], f"{what}.{name}")

    def _value(self, place: Location, value: Json, field: Field, path: str) -> None:
        for fault in _faults(value, field, path):
            self.add("Y205", place, fault.message, f"`{path}` is declared as {field.type}")


def attributes(person: PersonPart) -> dict[str, Json]:
    """What a test says of a person beside `id` and `roles`."""
    return {name: plain(value) for name, value in (person.model_extra or {}).items()}


def _faults(value: Json, field: Field, path: str) -> Iterator[Fault]:
    faults: list[Fault] = []
    read_value(plain(value), field.type, path, faults)
    yield from faults
