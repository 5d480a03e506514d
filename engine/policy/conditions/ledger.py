"""Owns what done, count, last_age and sum answer from the receipts of this Run.

A call without a settled outcome makes the answer UNKNOWN if it could change it: neither `done` nor `!done` then
permits anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from engine.domain.conditions import History, Match
from engine.domain.facts import EMPTY_HISTORY, UNKNOWN, Facts, PastCall, ToolHistory, Truth, Unknown, Value
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
    row, name = _row(args, result), object()

    def that_may_fit(past: ToolHistory, wanted: Sequence[Value]) -> Iterable[PastCall]:
        """One call for all that agree in what is known of the wanted values, and those that must be asked each."""
        known = tuple(at for at, value in enumerate(wanted) if _plain(value))

        def add(rows: Value, call: PastCall) -> _Rows:
            return (_Rows() if rows is None else rows).with_call(row(call), call, known)

        rows: _Rows | None = past.tally((name, known), add)
        return () if rows is None else rows.like([wanted[at] for at in known])

    def ask(facts: Facts, wanted: Sequence[Value]) -> Truth:
        past = _of(facts, tool)
        seen: Truth = False
        for call in that_may_fit(past, wanted):
            answer = _both(args_fit(call.args, wanted), result_fits(call.result, wanted[split:]))
            if answer is True:
                return True
            seen = _either(seen, answer)
        if any(args_fit(call, wanted) is not False for call in past.open.values()):
            return UNKNOWN
        return seen

    return ask


class _Rows:
    """Confirmed calls by the values that a filter compares; a call without one of them never fits."""

    def __init__(self) -> None:
        self.known: dict[tuple[Value, ...], PastCall] = {}
        self.doubtful: list[PastCall] = []
        """A value of theirs is unknown, or can only be compared one by one."""

    def with_call(self, row: tuple[Value, ...] | None, call: PastCall, compared: tuple[int, ...]) -> _Rows:
        if row is not None and all(map(_plain, row)):
            self.known.setdefault(tuple(row[at] for at in compared), call)
        elif row is not None:
            self.doubtful.append(call)
        return self

    def like(self, wanted: Sequence[Value]) -> Iterator[PastCall]:
        found = self.known.get(tuple(wanted))
        if found is not None:
            yield found
        yield from self.doubtful


def _plain(value: Value) -> bool:
    return value.__class__ is not Unknown and not isinstance(value, list | dict)


def _row(args: Sequence[Match], result: Sequence[Match]) -> Callable[[PastCall], tuple[Value, ...] | None]:
    of_args = [(match.name, values.converter(match.field_type)) for match in args]
    of_result = [(match.name, values.converter(match.field_type)) for match in result]

    def row(call: PastCall) -> tuple[Value, ...] | None:
        found = [(call.args.get(name), convert) for name, convert in of_args]
        found += [(call.result.get(name), convert) for name, convert in of_result]
        if any(value is None for value, _ in found):
            return None
        return tuple(convert(value) for value, convert in found)

    return row


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
        return facts.now - past.tally("last", _later)

    return ask


_NUMBERS: Final = {True: values.as_int, False: values.as_decimal}


def _sum(tool: str, param: str, whole: bool) -> Ask:
    convert, zero = _NUMBERS[whole], 0 if whole else values.ZERO

    def ask(facts: Facts, _wanted: Sequence[Value]) -> Value:
        past = _of(facts, tool)
        # An open call without the argument, or with zero, adds nothing however it ends.
        if any(convert(call.get(param) or 0) != zero for call in past.open.values()):
            return UNKNOWN
        total = past.tally(("sum", param, whole), add)
        return zero if total is None else values.as_int(total) if whole else total

    def add(total: Value, call: PastCall) -> Value:
        number = convert(call.args.get(param) or 0)
        return _added(zero if total is None else total, number, whole)

    return ask


def _added(total: Value, number: Value, whole: bool) -> Value:
    if total.__class__ is Unknown or number.__class__ is Unknown:
        return UNKNOWN
    try:
        return total + number if whole else values.EXACT.add(total, number)
    except ArithmeticError:
        return UNKNOWN


def _later(last: Value, call: PastCall) -> Value:
    return call.at if last is None else max(last, call.at)
