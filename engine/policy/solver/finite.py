"""Owns the search without a solver: every combination of the values that stand for all others.

Terms that are compared with constants have such values. What else is asked of facts is an atom of its own, true,
false or unsure, so a claim that this search calls impossible is impossible, and one that it does not may still be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from engine.domain.conditions import (
    Call,
    Compare,
    Connect,
    Constant,
    Expr,
    Has,
    History,
    ListOf,
    Not,
    Quantified,
    Read,
)
from engine.domain.facts import UNKNOWN, Facts, Value
from engine.policy.conditions.evaluator import compile_test
from engine.policy.conditions.values import is_under
from engine.policy.solver.claims import (
    ANY,
    FALSE,
    TRUE,
    UNSURE,
    Active,
    Claim,
    Every,
    HasRole,
    Says,
    Some,
    View,
)
from engine.policy.solver.domains import representatives
from engine.policy.solver.kleene import AND, OR, bit, inverse
from engine.policy.solver.terms import (
    are_independent,
    grounded,
    is_closed,
    is_finite,
    is_free,
    is_supplied,
    least,
    most,
    name_of,
    touched,
)

MAX_STEPS: Final = 20_000
"""Combinations that are looked at before the search gives up."""


class _Absent:
    """The value of an optional fact that is not there."""


ABSENT: Final = _Absent()
Assignment: TypeAlias = Mapping[str, Value]
_Node: TypeAlias = Callable[[dict[str, Value]], int]
"""An assignment -> the set of truth values that are still possible."""


@dataclass(slots=True)
class Variable:
    """Something that takes one value in a world: a term, a role, a grant, or an atom."""

    name: str
    term: Expr | None = None
    """None for roles, grants and atoms."""
    constants: list[Value] = field(default_factory=list)
    optional: bool = False
    supplied: bool = False
    """Waits for the model when the contract is made."""
    reads: frozenset[str] = frozenset()
    loose: bool = False
    """It may have fewer answers than it is given here."""
    group: str = ""
    """Variables that read the same fact are independent of each other only in one group."""
    answers: tuple[Value, ...] = (True, False, UNKNOWN)
    """Of an atom."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search found: nothing (`impossible`), a world, or no answer (both unset)."""

    impossible: bool = False
    world: Assignment | None = None
    exact: bool = False
    """Nothing was left out: the world can be, as far as single facts are concerned."""
    terms: Mapping[str, Expr] = field(default_factory=dict)
    """Name in `world` -> what is read."""


def search(claim: Claim, view: View) -> Outcome:
    found = _Search(view)
    return found.run(found.built(claim))


def answers(expr: Expr, view: View) -> tuple[Outcome, Outcome]:
    """Whether a condition can be true, and whether it can be false."""
    found = _Search(view)
    node = found.built_condition(expr)
    true = found.run(lambda world: _sides(node(world), TRUE, ANY & ~TRUE))
    return true, found.run(lambda world: _sides(node(world), FALSE, ANY & ~FALSE))


class _Search:
    def __init__(self, view: View) -> None:
        self.view = view
        self.variables: dict[str, Variable] = {}
        self.domains: dict[str, list[Value]] = {}
        self.leaves: list[Callable[[], None]] = []
        self.steps = 0

    def built(self, claim: Claim) -> _Node:
        test = self._claim(claim)
        self._finish()
        return test

    def built_condition(self, expr: Expr) -> _Node:
        node = self._node(grounded(expr, self.view))
        self._finish()
        return node

    def _finish(self) -> None:
        self.domains = {name: self._domain(each) for name, each in self.variables.items()}
        for finish in self.leaves:
            finish()

    def run(self, test: _Node) -> Outcome:
        self.steps, domains = 0, self.domains
        order = sorted(domains, key=lambda name: len(domains[name]))
        world: dict[str, Value] = {}
        found = self._try(test, order, 0, domains, world)
        if found is None:
            return Outcome()
        if not found:
            return Outcome(impossible=True)
        terms = {name: each.term for name, each in self.variables.items() if each.term is not None}
        whole = {name: world.get(name, domains[name][0]) for name in domains}
        return Outcome(world=whole, exact=not self._coarse(), terms=terms)

    def _try(
        self, test: _Node, order: list[str], at: int, domains: dict[str, list[Value]], world: dict[str, Value]
    ) -> bool | None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            return None
        mask = test(world)
        if not mask & TRUE:
            return False
        if not mask & FALSE:
            return True
        if at == len(order):
            return True
        name, unclear = order[at], False
        for value in domains[name]:
            world[name] = value
            found = self._try(test, order, at + 1, domains, world)
            if found:
                return True
            unclear = unclear or found is None
            if self.steps > MAX_STEPS:
                break
        world.pop(name, None)
        return None if unclear else False

    def _coarse(self) -> bool:
        """True if worlds of this search need not be worlds: variables that are not independent of each other."""
        seen: dict[str, str] = {}
        for variable in self.variables.values():
            if variable.loose:
                return True
            group = variable.group or variable.name
            for path in variable.reads:
                if path not in ("now", "origin") and seen.setdefault(path, group) != group:
                    return True
        return False

    # --- claims

    def _claim(self, claim: Claim) -> _Node:
        match claim:
            case Says(expr=expr, truths=truths):
                node = self._node(grounded(expr, self.view))
                rest = ANY & ~truths
                return lambda world: _sides(node(world), truths, rest)
            case HasRole(roles=roles, wanted=wanted):
                return self._flags([f"role:{role}" for role in sorted(roles)], wanted)
            case Active(capability=capability, wanted=wanted):
                return self._flags([f"grant:{capability}"], wanted)
            case Every(parts=parts):
                return _folded([self._claim(part) for part in parts], AND, TRUE, FALSE)
            case Some(parts=parts):
                return _folded([self._claim(part) for part in parts], OR, FALSE, TRUE)

    def _flags(self, names: list[str], wanted: bool) -> _Node:
        for name in names:
            self.variables.setdefault(name, Variable(name))
        held, missing = (TRUE, FALSE) if wanted else (FALSE, TRUE)

        def flags(world: dict[str, Value]) -> int:
            seen = [world.get(name) for name in names]
            if True in seen:
                return held
            return missing if None not in seen else held | missing

        return flags

    # --- conditions

    def _node(self, expr: Expr) -> _Node:
        match expr:
            case Constant(value=value):
                return _fixed(bit(value))
            case Not(operand=operand):
                inner = self._node(operand)
                return lambda world: inverse(inner(world))
            case Connect(op="&&", operands=operands):
                return _folded([self._node(each) for each in operands], AND, TRUE, FALSE)
            case Connect(operands=operands):
                return _folded([self._node(each) for each in operands], OR, FALSE, TRUE)
            case _ if is_closed(expr):
                return _fixed(bit(compile_test(expr)(Facts())))
            case Compare():
                return self._compare(expr)
            case Has(operand=operand):
                self._variable(operand).optional |= _is_optional(operand, self.view)
                return self._leaf(operand, [], _is_there)
            case Call(function="under", args=(path, Constant(value=folder))):
                return self._leaf(path, [folder], lambda value: is_under(value, folder))
            case Read():
                return self._leaf(expr, [], lambda value: value)
            case _:
                return self._atom(expr)

    def _compare(self, expr: Compare) -> _Node:
        left, right, op = expr.left, expr.right, expr.op
        if op == "in" and isinstance(left, Constant) and _is_roles(right):
            return self._flags([f"role:{left.value}"], True)
        if op == "in":
            constants = _constants(right)
            if constants is None or isinstance(left, Constant):
                return self._atom(expr)
            members = frozenset(constants)
            return self._leaf(left, constants, members.__contains__)
        test = _ORDER[op]
        if isinstance(right, Constant):
            wanted = right.value
            return self._leaf(left, [wanted], lambda value: test(value, wanted))
        if isinstance(left, Constant):
            given = left.value
            return self._leaf(right, [given], lambda value: test(given, value))
        if is_finite(left.type) and is_finite(right.type):
            return self._pair(left, right, test)
        return self._atom(expr)

    def _leaf(self, term: Expr, constants: list[Value], test: Callable[[Any], Any]) -> _Node:
        if is_closed(term):
            return self._atom(term)
        variable = self._variable(term)
        variable.constants.extend(constants)
        name, presence, answers, free = variable.name, test is _is_there, dict[Value, int](), [ANY]

        def finish() -> None:
            for value in self.domains[name]:
                answers[value] = _answer(value, test, presence)
            free[0] = _union(answers.values())

        self.leaves.append(finish)

        def leaf(world: dict[str, Value]) -> int:
            value = world.get(name)
            return free[0] if value is None else answers[value]

        return leaf

    def _pair(self, left: Expr, right: Expr, test: Callable[[Any, Any], Any]) -> _Node:
        one, two = self._variable(left).name, self._variable(right).name

        def pair(world: dict[str, Value]) -> int:
            first, second = world.get(one), world.get(two)
            if first is None or second is None:
                return ANY
            if first in _NOWHERE or second in _NOWHERE:
                return UNSURE
            return bit(test(first, second))

        return pair

    def _variable(self, term: Expr) -> Variable:
        name = name_of(term)
        variable = self.variables.get(name)
        if variable is None:
            variable = self.variables[name] = Variable(
                name,
                term,
                supplied=is_supplied(term, self.view),
                reads=touched(term),
                loose=not is_free(term),
            )
        return variable

    def _atom(self, expr: Expr) -> _Node:
        name = f"atom:{name_of(expr)}"
        if name not in self.variables:
            variable = self.variables[name] = Variable(
                name,
                supplied=is_supplied(expr, self.view),
                reads=touched(expr),
                loose=not isinstance(expr, History),
            )
            self._describe(variable, expr)

        def atom(world: dict[str, Value]) -> int:
            value = world.get(name)
            return ANY if value is None else bit(value)

        return atom

    def _describe(self, variable: Variable, expr: Expr) -> None:
        """What is known of the answers of an atom."""
        match expr:
            case Compare(op="in", left=Constant(), right=Read() | Call(function="origin") as right):
                variable.loose, variable.group = False, f"members of {name_of(right)}"
            case Compare(op=op, left=left, right=right) if name_of(left) == name_of(right):
                variable.answers = (op in ("==", "<=", ">="), UNKNOWN)
                variable.loose = False
            case Compare(op=op, left=left, right=right) if op != "in":
                variable.loose = not are_independent(left, right)
            case Quantified(kind=kind, operand=Read() | Call(), body=body):
                decisive = kind == "exists"
                found = search(Says(body, TRUE if decisive else FALSE), self.view)
                variable.loose = not (found.impossible or found.exact)
                if found.impossible:
                    variable.answers = (not decisive, UNKNOWN)
            case _:
                pass

    def _domain(self, variable: Variable) -> list[Value]:
        if variable.name.startswith(("role:", "grant:")):
            return [True, False]
        if any(
            path.startswith("grant.") and path.split(".")[1] in self.view.without for path in variable.reads
        ):
            return [UNKNOWN]
        term, offered = variable.term, self.view.offered
        if term is None:
            return [UNKNOWN] if offered and variable.supplied else list(variable.answers)
        if offered and variable.supplied and not (is_finite(term.type) and isinstance(term, Read)):
            return [UNKNOWN]
        found = representatives(term.type, variable.constants, least(term), most(term))
        if variable.optional:
            found.append(ABSENT)
        return found if offered else [*found, UNKNOWN]


_NOWHERE: Final = (ABSENT, UNKNOWN)
_ORDER: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": lambda one, two: one == two,
    "!=": lambda one, two: one != two,
    "<": lambda one, two: one < two,
    "<=": lambda one, two: one <= two,
    ">": lambda one, two: one > two,
    ">=": lambda one, two: one >= two,
}


def _is_there(value: Value) -> bool:
    return value is not ABSENT


def _answer(value: Value, test: Callable[[Any], Any], presence: bool) -> int:
    if value is UNKNOWN or (value is ABSENT and not presence):
        return UNSURE
    return bit(bool(test(value)))


def _sides(mask: int, truths: int, rest: int) -> int:
    return (TRUE if mask & truths else 0) | (FALSE if mask & rest else 0)


def _union(masks: Any) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found


def _fixed(mask: int) -> _Node:
    return lambda _world: mask


def _folded(parts: list[_Node], table: list[list[int]], start: int, decisive: int) -> _Node:
    def fold(world: dict[str, Value]) -> int:
        mask = start
        for part in parts:
            mask = table[mask][part(world)]
            if mask == decisive:
                return decisive
        return mask

    return fold


def _constants(expr: Expr) -> list[Value] | None:
    if not isinstance(expr, ListOf):
        return None
    found = [item.value for item in expr.items if isinstance(item, Constant)]
    return found if len(found) == len(expr.items) else None


def _is_roles(expr: Expr) -> bool:
    return isinstance(expr, Read) and expr.path == ("principal", "roles")


def _is_optional(term: Expr, view: View) -> bool:
    if isinstance(term, Read) and term.path[0] == "args" and len(term.path) == 2:
        argument = view.args.get(term.path[1])
        return argument is None or not argument.required
    return True
