"""Owns `fresh`: whether the state that a call relies on is as the rules ask, just before it is executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from engine.domain.policy import Fresh, Rule
from engine.domain.state import RunState, SliceState


class Stale(NamedTuple):
    """A state slice that is not as fresh as a rule asks; `message` is the reason of `not_executed`."""

    rule: str
    slice: str
    message: str


def slices_of(rules: Sequence[Rule]) -> tuple[str, ...]:
    """State slices whose freshness the matched rules ask for: those to refresh first."""
    return tuple(dict.fromkeys(fresh.state for rule in rules for fresh in rule.fresh))


def stale(rules: Sequence[Rule], state: RunState, shown: Mapping[str, int], now: datetime) -> Stale | None:
    """The first `fresh` of the matched rules that does not hold.

    `shown` is slice -> the Host version that the model was shown with the turn that proposed the call.
    """
    for rule in rules:
        for fresh in rule.fresh:
            for message in _faults(fresh, state.state.get(fresh.state), shown, now):
                return Stale(rule.id, fresh.state, message)
    return None


def _faults(fresh: Fresh, held: SliceState | None, shown: Mapping[str, int], now: datetime) -> Iterator[str]:
    name = fresh.state
    if held is None:
        yield f"state {name} is not recorded"
        return
    if fresh.same_version_as_proposal:
        before = shown.get(name)
        if before is None:
            yield f"state {name} had no version when the model was asked"
        elif before != held.version:
            yield f"state {name} changed ({_printed(held, before)} -> {_printed(held, held.version)})"
    if fresh.max_age is not None and now - held.at > fresh.max_age:
        age = (now - held.at).total_seconds()
        yield f"state {name} is {age:g}s old, {fresh.max_age.total_seconds():g}s allowed"


def _printed(held: SliceState, version: int) -> object:
    """The application's own `version` field if the slice has one, else the Host's count."""
    if version == held.version and "version" in held.value:
        return held.value["version"]
    return held.printed.get(version, version)
