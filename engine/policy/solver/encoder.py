"""Owns conditions as formulas of an SMT solver: two formulas each, when it is true and when it is false.

Where the encoding is not exact it allows more: lists beyond three elements, receipts, origins, hosts and domains are
free. So what has no model cannot be, and what has one may still not be.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from engine.domain.conditions import (
    Call,
    Compare,
    Compute,
    Connect,
    Constant,
    Expr,
    Has,
    Index,
    ListOf,
    Local,
    Negate,
    Not,
    Quantified,
    Read,
    Select,
)
from engine.domain.types import TypeName, ValueType
from engine.policy.conditions.operands import LISTS, element
from engine.policy.solver.claims import (
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
from engine.policy.solver.sorts import literal, z3
from engine.policy.solver.terms import Bound, Elements, grounded, least, most, name_of

UNROLLED: Final = 3
"""Elements of a list that are looked at one by one."""
_INTS: Final = 2**63
_PLAUSIBLE: Final = 10**17
"""Microseconds within which times and durations are certainly representable."""
_ORDER: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SUMS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


class Truths(NamedTuple):
    """When a condition is true, and when it is false; unsure otherwise."""

    true: Any
    false: Any


class Known(NamedTuple):
    """When a value is known, and what it is then."""

    known: Any
    value: Any


class Members(NamedTuple):
    """A list: when it is known, how long it is, and the name of it or the items themselves."""

    known: Any
    size: Any
    name: str
    of: ValueType
    items: tuple[Known, ...] | None = None


class Encoder:
    """The formulas of one question; `side` is what always holds of its variables."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.side: list[Any] = []
        self.terms: dict[str, tuple[Known, ValueType]] = {}
        """Name of a fact -> its variables and type."""
        self.reads: dict[str, Expr] = {}
        """Name of a fact -> what is read."""
        self.flags: dict[str, Any] = {}
        self._atoms: dict[str, Truths] = {}
        self._elements: Elements = {}

    def claim(self, claim: Claim) -> Any:
        match claim:
            case Says(expr=expr, truths=truths):
                found = self.truths(grounded(expr, self.view))
                sides = {TRUE: found.true, FALSE: found.false, UNSURE: z3.Not(z3.Or(found.true, found.false))}
                return z3.Or([side for truth, side in sides.items() if truths & truth])
            case HasRole(roles=roles, wanted=wanted):
                held = z3.Or([self.flag(f"role:{role}") for role in sorted(roles)])
                return held if wanted else z3.Not(held)
            case Active(capability=capability, wanted=wanted):
                active = self.flag(f"grant:{capability}")
                return active if wanted else z3.Not(active)
            case Every(parts=parts):
                return z3.And([self.claim(part) for part in parts])
            case Some(parts=parts):
                return z3.Or([self.claim(part) for part in parts])

    def flag(self, name: str) -> Any:
        return self.flags.setdefault(name, z3.Bool(name))

    # --- truth values

    def truths(self, expr: Expr) -> Truths:
        match expr:
            case Not(operand=operand):
                inner = self.truths(operand)
                return Truths(inner.false, inner.true)
            case Connect(op=op, operands=operands):
                parts = [self.truths(each) for each in operands]
                trues, falses = [part.true for part in parts], [part.false for part in parts]
                if op == "&&":
                    return Truths(z3.And(trues), z3.Or(falses))
                return Truths(z3.Or(trues), z3.And(falses))
            case Compare():
                return self._compare(expr)
            case Has(operand=operand):
                return self._has(operand)
            case Quantified():
                return self._quantified(expr)
            case Call(function="under", args=(path, folder)):
                return self._under(path, folder)
            case Constant() | Read() | Local() | Select() | Index():
                found = self.value(expr)
                if isinstance(found, Known) and z3.is_bool(found.value):
                    return _of(found.known, found.value)
                return self._atom(expr)
            case _:
                return self._atom(expr)

    def _atom(self, expr: Expr) -> Truths:
        return self._free(f"atom:{self._name(expr)}")

    def _free(self, name: str) -> Truths:
        found = self._atoms.get(name)
        if found is None:
            found = self._atoms[name] = Truths(z3.Bool(f"{name} true"), z3.Bool(f"{name} false"))
            self.side.append(z3.Not(z3.And(found.true, found.false)))
        return found

    def _name(self, expr: Expr) -> str:
        return name_of(expr, self._elements)

    def _compare(self, expr: Compare) -> Truths:
        if expr.op == "in":
            return self._among(expr)
        left, right = self.value(expr.left), self.value(expr.right)
        if not (isinstance(left, Known) and isinstance(right, Known)):
            return self._atom(expr)
        if left.value.sort() != right.value.sort():
            return self._atom(expr)
        return _of(z3.And(left.known, right.known), _ORDER[expr.op](left.value, right.value))

    def _among(self, expr: Compare) -> Truths:
        left, right = expr.left, expr.right
        if isinstance(left, Constant) and isinstance(right, Read) and right.path == ("principal", "roles"):
            held = self.flag(f"role:{left.value}")
            return Truths(held, z3.Not(held))
        if isinstance(right, Call) and right.function == "origin":
            return self._member_of_origin(expr, right)
        value, items = self.value(left), self.value(right)
        if not (isinstance(value, Known) and isinstance(items, Members)):
            return self._atom(expr)
        same = [self._same(value, item) for item in self._items(items)]
        found = self._over(items, same, self._name(expr), exists=True)
        both = z3.And(value.known, items.known)
        return Truths(z3.And(both, found.true), z3.And(both, found.false))

    def _same(self, one: Known, two: Known | Members) -> Truths:
        if not isinstance(two, Known) or one.value.sort() != two.value.sort():
            return Truths(z3.BoolVal(True), z3.BoolVal(True))
        return _of(two.known, one.value == two.value)

    def _member_of_origin(self, expr: Compare, origin: Call) -> Truths:
        if not isinstance(expr.left, Constant):
            return self._atom(expr)
        known = self.flag(f"origin of {self._name(origin.args[0])}")
        return _of(known, self.flag(f"member:{self._name(expr)}"))

    def _has(self, operand: Read | Select) -> Truths:
        name = self._name(operand)
        found, value = self._free(f"has:{name}"), self.value(operand)
        self.side.append(z3.Implies(value.known, found.true))
        argument = self.view.args.get(_argument(operand))
        if argument is not None and argument.required:
            self.side.append(z3.Not(found.false))
        return found

    def _under(self, path: Expr, folder: Expr) -> Truths:
        one, two = self.value(path), self.value(folder)
        if not (isinstance(one, Known) and isinstance(two, Known)):
            return self._free(f"atom:under({self._name(path)}, {self._name(folder)})")
        inside = z3.PrefixOf(z3.Concat(two.value, z3.StringVal("/")), one.value)
        within = z3.Or(one.value == two.value, two.value == z3.StringVal(""), inside)
        return _of(z3.And(one.known, two.known), within)

    def _quantified(self, expr: Quantified) -> Truths:
        items = self.value(expr.operand)
        if not isinstance(items, Members):
            return self._atom(expr)
        bodies = []
        outer = self._elements
        for at in range(len(self._items(items))):
            self._elements = {**outer, expr.variable.slot: f"{items.name}[{at}]"}
            bodies.append(self.truths(expr.body))
        self._elements = outer
        found = self._over(items, bodies, self._name(expr), exists=expr.kind == "exists")
        return Truths(z3.And(items.known, found.true), z3.And(items.known, found.false))

    def _over(self, items: Members, answers: list[Truths], name: str, *, exists: bool) -> Truths:
        rest, more = self._free(f"rest:{name}"), items.size > len(answers)
        here = [items.size > at for at in range(len(answers))]
        if not exists:
            answers, rest = [Truths(each.false, each.true) for each in answers], Truths(rest.false, rest.true)
        pairs = list(zip(here, answers, strict=True))
        one = z3.Or([z3.And(there, each.true) for there, each in pairs] + [z3.And(more, rest.true)])
        none = z3.And(
            [z3.Implies(there, each.false) for there, each in pairs] + [z3.Implies(more, rest.false)]
        )
        return Truths(one, none) if exists else Truths(none, one)

    # --- values

    def value(self, expr: Expr) -> Known | Members:
        match expr:
            case Constant(value=value, type=type_):
                return Known(z3.BoolVal(True), literal(value, type_))
            case ListOf(items=items, type=type_):
                found = tuple(each for item in items if isinstance(each := self.value(item), Known))
                if len(found) < len(items):
                    return self._fact(self._name(expr), expr)
                size = z3.IntVal(len(found))
                return Members(z3.BoolVal(True), size, self._name(expr), element(type_), found)
            case Read() | Local() | Select():
                return self._fact(self._name(expr), expr)
            case Index(operand=operand):
                return self._indexed(expr, self.value(operand))
            case Negate(operand=operand):
                return self._negative(expr, self.value(operand))
            case Compute():
                return self._computed(expr, self.value(expr.left), self.value(expr.right))
            case Call(function="age", args=(time,)):
                now = self._variable("now", time.type, None, None)
                then = self.value(time)
                if isinstance(then, Known) and isinstance(now, Known):
                    return self._sum(self._name(expr), now, then, operator.sub, expr.type)
                return self._fact(self._name(expr), expr)
            case Call(function="size", args=(operand,)) if operand.type.name in LISTS:
                items_ = self.value(operand)
                if isinstance(items_, Members):
                    return Known(items_.known, items_.size)
                return self._fact(self._name(expr), expr)
            case _:
                return self._fact(self._name(expr), expr)

    def _fact(self, name: str, expr: Expr) -> Known | Members:
        if isinstance(expr, Read | Index):
            self.reads.setdefault(name, expr)
        return self._variable(name, expr.type, least(expr), most(expr))

    def _variable(self, name: str, type_: ValueType, low: Bound, high: Bound) -> Known | Members:
        if type_.name in LISTS:
            size = self._number(f"size({name})", 0, type_.max_items)
            return Members(self.flag(f"{name} known"), size, name, element(type_))
        found = self.terms.get(name)
        if found is not None:
            return found[0]
        known = self.flag(f"{name} known")
        made = Known(known, self._plain(name, type_, low, high, known))
        self.terms[name] = (made, type_)
        return made

    def _plain(self, name: str, type_: ValueType, low: Bound, high: Bound, known: Any) -> Any:
        match type_.name:
            case TypeName.BOOL:
                return z3.Bool(name)
            case TypeName.INT:
                return self._number(name, -_INTS if low is None else low, _INTS - 1 if high is None else high)
            case TypeName.TIMESTAMP | TypeName.DURATION:
                return self._number(name, low, high)
            case TypeName.DECIMAL:
                return z3.Real(name)
            case _:
                value = z3.String(name)
                if type_.name is TypeName.ENUM and type_.values:
                    allowed = [value == z3.StringVal(each) for each in type_.values]
                    self.side.append(z3.Implies(known, z3.Or(allowed)))
                return value

    def _number(self, name: str, low: Bound, high: Bound) -> Any:
        number = z3.Int(name)
        self.side.extend(
            limit for limit in (_at_least(number, low), _at_most(number, high)) if limit is not None
        )
        return number

    def _items(self, items: Members) -> list[Known | Members]:
        if items.items is not None:
            return list(items.items)
        return [self._variable(f"{items.name}[{at}]", items.of, None, None) for at in range(UNROLLED)]

    def _indexed(self, expr: Index, items: Known | Members) -> Known | Members:
        found = self._fact(self._name(expr), expr)
        index = self.value(expr.index)
        if isinstance(items, Members) and isinstance(index, Known):
            there = z3.And(items.known, index.known, index.value >= 0, index.value < items.size)
            self.side.append(z3.Implies(found.known, there))
        return found

    def _negative(self, expr: Negate, operand: Known | Members) -> Known | Members:
        if not isinstance(operand, Known):
            return self._fact(self._name(expr), expr)
        zero = z3.IntVal(0) if operand.value.is_int() else z3.RealVal(0)
        return self._sum(self._name(expr), Known(z3.BoolVal(True), zero), operand, operator.sub, expr.type)

    def _computed(self, expr: Compute, left: Known | Members, right: Known | Members) -> Known | Members:
        if not (isinstance(left, Known) and isinstance(right, Known)):
            return self._fact(self._name(expr), expr)
        return self._sum(self._name(expr), left, right, _SUMS[expr.op], expr.type)

    def _sum(
        self, name: str, left: Known, right: Known, sum_: Callable[[Any, Any], Any], type_: ValueType
    ) -> Known:
        value, both = sum_(left.value, right.value), z3.And(left.known, right.known)
        if type_.name is TypeName.INT:
            return Known(z3.And(both, value >= -_INTS, value < _INTS), value)
        fits = self.flag(f"fits:{name}")
        if type_.name is not TypeName.DECIMAL:
            self.side.append(z3.Implies(z3.And(value > -_PLAUSIBLE, value < _PLAUSIBLE), fits))
        return Known(z3.And(both, fits), value)


def _of(known: Any, value: Any) -> Truths:
    return Truths(z3.And(known, value), z3.And(known, z3.Not(value)))


def _at_least(number: Any, low: Bound) -> Any:
    return None if low is None else number >= low


def _at_most(number: Any, high: Bound) -> Any:
    return None if high is None else number <= high


def _argument(operand: Read | Select) -> str:
    """The name of the argument that it is; empty for anything else."""
    if isinstance(operand, Read) and operand.path[0] == "args" and len(operand.path) == 2:
        return operand.path[1]
    return ""
