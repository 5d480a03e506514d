"""Owns what done, count, last_age and sum answer from the receipts of this Run.

A call without a settled outcome makes the answer UNKNOWN if it could change it: neither `done` nor `!done` then
permits anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine.domain.conditions import History, Match
from engine.domain.facts import EMPTY_HISTORY, UNKNOWN, Facts, ToolHistory, Truth, Unknown, Value
from engine.domain.types import TypeName
from engine.policy.conditions import values

Ask = Callable[[Facts, Sequence[Value]], Value]


def history(expr: History) -> Ask:
    """A function of the facts and the wanted values of the filters, arguments first."""
    tool = expr.tool
    match expr.function:
        case "done":
            return _done(tool, expr.args, expr.result)
        case "count":
            return _count(tool, expr.outcome or "confirmed")
        case "last_age":
            return _last_age(tool)
        case "sum":
            return _sum(tool, expr.param or "", expr.type.name is TypeName.INT)


def _of(facts: Facts, tool: str) -> ToolHistory:
    return facts.history.get(tool, EMPTY_HISTORY)


# --- done ------------------------------------------------------------------------------------------------

_Filter = Callable[[Mapping[str, Value], Sequence[Value]], Truth]


def _done(tool: str, args: Sequence[Match], result: Sequence[Match]) -> Ask:
    args_fit, result_fits, split = _filter(args), _filter(result), len(args)

    def ask(facts: Facts, wanted: Sequence[Value]) -> Truth:
        past = _of(facts, tool)
        seen: Truth = False
        for call in past.confirmed:
            answer = _both(args_fit(call.args, wanted), result_fits(call.result, wanted[split:]))
            if answer is True:
                return True
            seen = _either(seen, answer)
        if any(args_fit(call, wanted) is not False for call in past.open.values()):
            return UNKNOWN
        return seen

    return ask


def _filter(matches: Sequence[Match]) -> _Filter:
    parts = [(match.name, values.converter(match.field_type)) for match in matches]

    def fits(recorded: Mapping[str, Value], wanted: Sequence[Value]) -> Truth:
        seen: Truth = True
        for (name, convert), value in zip(parts, wanted, strict=False):
            found = recorded.get(name)
            # The record of a call is complete: what is not in it was not there, so it is not the wanted value.
            seen = _both(seen, False if found is None else _same(convert(found), value))
        return seen

    return fits


def _same(one: Value, two: Value) -> Truth:
    if one.__class__ is Unknown:
        return UNKNOWN
    return two if two.__class__ is Unknown else bool(one == two)


def _both(one: Truth, two: Truth) -> Truth:
    if one is False or two is False:
        return False
    return two if one is True else one if two is True else _worse(one, two)


def _either(one: Truth, two: Truth) -> Truth:
    return two if one is False else one if two is False else _worse(one, two)


def _worse(one: Truth, two: Truth) -> Truth:
    return UNKNOWN if UNKNOWN in (one, two) else one


# --- counting --------------------------------------------------------------------------------------------


def _count(tool: str, outcome: str) -> Ask:
    def ask(facts: Facts, _wanted: Sequence[Value]) -> Value:
        past = _of(facts, tool)
        return UNKNOWN if past.open else past.counts.get(outcome, 0)

    return ask


def _last_age(tool: str) -> Ask:
    def ask(facts: Facts, _wanted: Sequence[Value]) -> Value:
        past = _of(facts, tool)
        if past.open or not past.confirmed:
            return UNKNOWN
        return facts.now - max(call.at for call in past.confirmed)

    return ask


_NUMBERS: Final = {True: values.as_int, False: values.as_decimal}


def _sum(tool: str, param: str, whole: bool) -> Ask:
    convert, zero = _NUMBERS[whole], 0 if whole else values.ZERO

    def ask(facts: Facts, _wanted: Sequence[Value]) -> Value:
        past = _of(facts, tool)
        # An open call without the argument, or with zero, adds nothing however it ends.
        if any(convert(call.get(param) or 0) != zero for call in past.open.values()):
            return UNKNOWN
        return _added([convert(call.args.get(param) or 0) for call in past.confirmed], whole)

    return ask


def _added(numbers: Sequence[Value], whole: bool) -> Value:
    if any(number.__class__ is Unknown for number in numbers):
        return UNKNOWN
    try:
        total: Value = 0 if whole else values.ZERO
        for number in numbers:
            total = total + number if whole else values.EXACT.add(total, number)
    except ArithmeticError:
        return UNKNOWN
    return values.as_int(total) if whole else total
