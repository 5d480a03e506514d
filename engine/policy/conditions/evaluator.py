"""Owns what a condition answers: the typed tree to closures over facts, in three-valued logic.

A closure takes the facts and a frame: one slot per capability that the condition reads (the grant that is being
tried) and one per variable of `.exists` and `.all`. None of them raises.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from engine.domain.conditions import (
    Call,
    Compare,
    Compute,
    Connect,
    Constant,
    Expr,
    Has,
    History,
    Index,
    ListOf,
    Local,
    Negate,
    Not,
    Quantified,
    Read,
    Select,
    children,
)
from engine.domain.facts import UNKNOWN, Facts, Truth, Unknown, Value
from engine.domain.types import TypeName
from engine.policy.conditions import closures, values
from engine.policy.conditions.closures import Closure, Frame
from engine.policy.conditions.ledger import history
from engine.policy.conditions.operands import element

_NO_GRANT: Final[Mapping[str, Value]] = {}
_ORDER: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compile_test(expr: Expr) -> Callable[[Facts], Truth]:
    """The condition as a function of the facts; true if it holds under any one of the active grants."""
    compiler = _Compiler(expr)
    test, size, caps = compiler.closure(expr), compiler.size, tuple(compiler.grants)
    if not size:
        return lambda facts: test(facts, _FRAMELESS)
    if not caps:
        return lambda facts: test(facts, [None] * size)
    spare = [None] * (size - len(caps))

    def under_any_grant(facts: Facts) -> Truth:
        rows = [facts.grants.get(cap) or (_NO_GRANT,) for cap in caps]
        return closures.any_of(test(facts, [*row, *spare]) for row in itertools.product(*rows))

    return under_any_grant


def compile_read(expr: Expr) -> Callable[[Facts], Value]:
    """The value at a path as recorded; UNKNOWN if active grants disagree about it."""
    compiler = _Compiler(expr)
    read, caps = compiler.raw(expr), tuple(compiler.grants)

    def value(facts: Facts) -> Value:
        rows = [facts.grants.get(cap) or (_NO_GRANT,) for cap in caps]
        found = [read(facts, list(row)) for row in itertools.product(*rows)]
        return found[0] if all(each == found[0] for each in found) else UNKNOWN

    return value


_FRAMELESS: Final[Frame] = []


class _Compiler:
    def __init__(self, expr: Expr) -> None:
        self.grants: dict[str, int] = {}
        variables = self._survey(expr)
        self.size = len(self.grants) + variables

    def _survey(self, expr: Expr) -> int:
        if isinstance(expr, Read) and expr.path[0] == "grant":
            self.grants.setdefault(expr.path[1], len(self.grants))
        inner = [self._survey(each) for each in children(expr)]
        own = expr.variable.slot + 1 if isinstance(expr, Quantified) else 0
        return max(inner, default=0) if not own else max(own, *inner)

    def closure(self, expr: Expr) -> Closure:
        match expr:
            case Constant(value=value):
                return lambda _facts, _frame: value
            case Read() | Local() | Select() | Index():
                return self._converted(expr)
            case ListOf(items=items):
                parts = [self.closure(item) for item in items]
                return lambda facts, frame: [part(facts, frame) for part in parts]
            case Not(operand=operand):
                return closures.negated(self.closure(operand))
            case Negate(operand=operand):
                return closures.negative(self.closure(operand), operand.type.name is TypeName.INT)
            case Compare():
                return self._compare(expr)
            case Compute(op=op, left=left, right=right):
                return closures.computed(op, self.closure(left), self.closure(right))
            case Connect(op=op, operands=operands):
                parts = [self.closure(each) for each in operands]
                return closures.all_hold(parts) if op == "&&" else closures.one_holds(parts)
            case Has(operand=operand):
                return self._has(operand)
            case Quantified():
                return self._quantified(expr)
            case Call():
                return self._call(expr)
            case History():
                return self._history(expr)

    def raw(self, expr: Expr) -> Closure:
        """The value as recorded, absent ones UNKNOWN, nothing converted."""
        match expr:
            case Read(path=path):
                return self._fact(path)
            case Local(slot=slot):
                at = len(self.grants) + slot
                return lambda _facts, frame: frame[at]
            case Select(operand=operand, field=field):
                inner = self.raw(operand)
                return lambda facts, frame: closures.child(inner(facts, frame), field)
            case Index(operand=operand, index=index):
                return closures.element(self.closure(operand), self.closure(index))
            case _:
                return self.closure(expr)

    def _converted(self, expr: Read | Local | Select | Index) -> Closure:
        raw, convert = self.raw(expr), values.converter(expr.type)
        if expr.type.name in (TypeName.ID, TypeName.ENUM, TypeName.REF):

            def name(facts: Facts, frame: Frame) -> Value:
                value = raw(facts, frame)
                return value if value.__class__ is str else convert(value)

            return name
        return lambda facts, frame: convert(raw(facts, frame))

    def _fact(self, path: tuple[str, ...]) -> Closure:
        root, *keys = path
        if root == "grant":
            at, keys = self.grants[keys[0]], keys[1:]
            return closures.descend(lambda _facts, frame: frame[at], keys)
        if root == "args" and len(keys) == 1:
            name = keys[0]
            return lambda facts, _frame: facts.args.get(name, UNKNOWN)
        attribute = operator.attrgetter(root)
        return closures.descend(lambda facts, _frame: attribute(facts), keys)

    def _has(self, operand: Read | Select) -> Closure:
        if isinstance(operand, Read):
            root, *keys = operand.path
            if root == "grant" and len(keys) == 1:
                at = self.grants[keys[0]]
                return lambda _facts, frame: frame[at] is not _NO_GRANT
            return closures.has(self._fact(operand.path[:-1]), operand.path[-1])
        return closures.has(self.raw(operand.operand), operand.field)

    # --- comparisons

    def _compare(self, expr: Compare) -> Closure:
        left, op, right = self.closure(expr.left), expr.op, expr.right
        if op == "in":
            return self._among(left, expr)
        if op in ("==", "!="):
            if isinstance(right, Constant):
                return closures.equals_constant(left, right.value, op == "==")
            return closures.equals(left, self.closure(right), op == "==")
        return closures.ordered(left, self.closure(right), _ORDER[op])

    def _among(self, left: Closure, expr: Compare) -> Closure:
        right = expr.right
        if isinstance(right, ListOf):
            constants = [item.value for item in right.items if isinstance(item, Constant)]
            if len(constants) == len(right.items):
                return closures.in_constants(left, frozenset(constants))
            return closures.in_list(left, self.closure(right), lambda value: value)
        if isinstance(right, Call) and right.function == "origin":
            return closures.in_set(left, self._origin(right))
        return closures.in_list(left, self.closure(right), values.converter(element(right.type)))

    # --- macros and functions

    def _quantified(self, expr: Quantified) -> Closure:
        operand, body = self.closure(expr.operand), self.closure(expr.body)
        at, decisive = len(self.grants) + expr.variable.slot, expr.kind == "exists"

        def quantified(facts: Facts, frame: Frame) -> Truth:
            items = operand(facts, frame)
            if items.__class__ is Unknown:
                return items
            seen: Truth = not decisive
            for frame[at] in items:
                answer: Truth = body(facts, frame)
                if answer is decisive:
                    return decisive
                if answer.__class__ is Unknown and seen is not UNKNOWN:
                    seen = answer
            return seen

        return quantified

    def _call(self, expr: Call) -> Closure:
        args = expr.args
        match expr.function:
            case "origin":
                found = self._origin(expr)
                return lambda facts, frame: values.as_list(found(facts, frame))
            case "args_of":
                word = args[0]
                return closures.args_of(word.value if isinstance(word, Constant) else "")
            case "under":
                return closures.known(self.closure(args[0]), self.closure(args[1]), values.is_under)
            case "age":
                return closures.age(self.closure(args[0]))
            case function:
                return closures.of_known(self.closure(args[0]), _SIMPLE[function])

    def _origin(self, expr: Call) -> Closure:
        return closures.origin(self.raw(expr.args[0]))

    def _history(self, expr: History) -> Closure:
        wanted = [self.closure(match.value) for match in (*expr.args, *expr.result)]
        ask = history(expr)
        return lambda facts, frame: ask(facts, [each(facts, frame) for each in wanted])


_SIMPLE: Final[Mapping[str, Callable[[Any], Value]]] = {
    "size": len,
    "domain": values.domain_of,
    "host": values.host_of,
    "scheme": values.scheme_of,
    "links": values.links_in,
}
