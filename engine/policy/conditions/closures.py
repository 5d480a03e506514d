"""Owns the closures that a condition is made of: three-valued logic over facts and a frame."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

from engine.domain.facts import PENDING, UNKNOWN, Facts, Truth, Unknown, Value
from engine.policy.conditions import values
from engine.policy.conditions.trivial import originless

Frame: TypeAlias = list[Value]
"""One slot per capability that the condition reads, then one per variable of `.exists` and `.all`."""
Closure: TypeAlias = Callable[[Facts, Frame], Value]


def any_of(answers: Iterable[Truth]) -> Truth:
    seen: Truth = False
    for answer in answers:
        if answer is True:
            return True
        if answer is not False and seen is not UNKNOWN:
            seen = answer
    return seen


def join(left: Value, right: Value) -> Unknown:
    """The unknown of an operation of which at least one operand is unknown."""
    return UNKNOWN if left is UNKNOWN or right is UNKNOWN else PENDING


def child(value: Value, key: str) -> Value:
    if value.__class__ is dict or isinstance(value, Mapping):
        return value.get(key, UNKNOWN)
    return value if value.__class__ is Unknown else UNKNOWN


# --- reading ----------------------------------------------------------------------------------------------


def descend(root: Closure, keys: Sequence[str]) -> Closure:
    if not keys:
        return root
    if len(keys) == 1:
        (only,) = keys
        return lambda facts, frame: child(root(facts, frame), only)
    if len(keys) == 2:
        first, second = keys
        return lambda facts, frame: child(child(root(facts, frame), first), second)
    return descend(descend(root, keys[:2]), keys[2:])


def element(items: Closure, index: Closure) -> Closure:
    def element_of(facts: Facts, frame: Frame) -> Value:
        found, at = items(facts, frame), index(facts, frame)
        if found.__class__ is Unknown or at.__class__ is Unknown:
            return join(found, at)
        return found[at] if 0 <= at < len(found) else UNKNOWN

    return element_of


def has(container: Closure, key: str) -> Closure:
    def present(facts: Facts, frame: Frame) -> Truth:
        held = container(facts, frame)
        if not isinstance(held, Mapping):
            return PENDING if held is PENDING else UNKNOWN
        value = held.get(key)
        return value if value.__class__ is Unknown else value is not None

    return present


# --- logic -----------------------------------------------------------------------------------------------


def negated(operand: Closure) -> Closure:
    def inverse(facts: Facts, frame: Frame) -> Truth:
        value: Truth = operand(facts, frame)
        return value if value.__class__ is Unknown else value is False

    return inverse


def all_hold(parts: Sequence[Closure]) -> Closure:
    def every(facts: Facts, frame: Frame) -> Truth:
        seen: Truth = True
        for part in parts:
            answer = part(facts, frame)
            if answer is False:
                return False
            if answer is not True and seen is not UNKNOWN:
                seen = answer
        return seen

    return every


def one_holds(parts: Sequence[Closure]) -> Closure:
    def some(facts: Facts, frame: Frame) -> Truth:
        seen: Truth = False
        for part in parts:
            answer = part(facts, frame)
            if answer is True:
                return True
            if answer is not False and seen is not UNKNOWN:
                seen = answer
        return seen

    return some


# --- comparing -------------------------------------------------------------------------------------------


def equals_constant(left: Closure, constant: Value, wanted: bool) -> Closure:
    def equals(facts: Facts, frame: Frame) -> Truth:
        value = left(facts, frame)
        if value.__class__ is Unknown:
            return value
        return (value == constant) is wanted

    return equals


def equals(left: Closure, right: Closure, wanted: bool) -> Closure:
    return known(left, right, lambda one, two: (one == two) is wanted)


def ordered(left: Closure, right: Closure, order: Callable[[Any, Any], Any]) -> Closure:
    return known(left, right, order)


def known(left: Closure, right: Closure, operation: Callable[[Any, Any], Any]) -> Closure:
    def both(facts: Facts, frame: Frame) -> Value:
        one, two = left(facts, frame), right(facts, frame)
        if one.__class__ is Unknown or two.__class__ is Unknown:
            return join(one, two)
        return operation(one, two)

    return both


def of_known(operand: Closure, operation: Callable[[Any], Any]) -> Closure:
    def one(facts: Facts, frame: Frame) -> Value:
        value = operand(facts, frame)
        return value if value.__class__ is Unknown else operation(value)

    return one


def in_constants(left: Closure, constants: frozenset[Value]) -> Closure:
    return of_known(left, constants.__contains__)


def in_set(left: Closure, right: Closure) -> Closure:
    return known(left, right, lambda value, members: value in members)


def in_list(left: Closure, right: Closure, convert: values.Converter) -> Closure:
    def among(facts: Facts, frame: Frame) -> Truth:
        value, items = left(facts, frame), right(facts, frame)
        if value.__class__ is Unknown or items.__class__ is Unknown:
            return join(value, items)
        return any_of(_same(value, convert(item)) for item in items)

    return among


def _same(value: Value, item: Value) -> Truth:
    return item if item.__class__ is Unknown else bool(value == item)


# --- computing -------------------------------------------------------------------------------------------


_EXACTLY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": values.EXACT.add,
    "-": values.EXACT.subtract,
    "*": values.EXACT.multiply,
}
_PLAINLY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def computed(op: str, left: Closure, right: Closure) -> Closure:
    plainly, exactly = _PLAINLY[op], _EXACTLY[op]

    def compute(one: Value, two: Value) -> Value:
        try:
            if one.__class__ is int:
                result = plainly(one, two)
                return result if -values.INT_LIMIT <= result < values.INT_LIMIT else UNKNOWN
            return exactly(one, two) if isinstance(one, Decimal) else plainly(one, two)
        except ArithmeticError:
            return UNKNOWN

    return known(left, right, compute)


def negative(operand: Closure, whole: bool) -> Closure:
    zero = 0 if whole else values.ZERO
    return computed("-", lambda _facts, _frame: zero, operand)


def age(operand: Closure) -> Closure:
    return computed("-", lambda facts, _frame: facts.now, operand)


# --- arguments of the call -------------------------------------------------------------------------------


def origin(raw: Closure) -> Closure:
    def occurs(facts: Facts, frame: Frame) -> Value:
        value = raw(facts, frame)
        if value.__class__ is Unknown:
            return value
        if facts.origin is None or originless(value):
            return UNKNOWN
        return facts.origin(value)

    return occurs


def args_of(class_: str) -> Closure:
    def collected(facts: Facts, _frame: Frame) -> Value:
        found: list[Value] = []
        for name in facts.arg_classes.get(class_, ()):
            value = facts.args.get(name)
            if value is not None:
                found.extend(value) if isinstance(value, list | tuple) else found.append(value)
        if UNKNOWN in found:
            return UNKNOWN
        return PENDING if PENDING in found else found

    return collected
