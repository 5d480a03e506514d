"""Owns what a test expects against what became of its calls: every expectation is checked, each at its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from engine.domain.calls import CallStatus, Outcome
from engine.domain.diagnostics import Location
from engine.domain.state import CallState, RunState
from engine.policy.documents.test import ExpectedCallPart, ExpectPart
from engine.policy.stages.cases import NO_RULE
from engine.runtime.scenario.play import Played

_GOES_ON: Final = frozenset({"created", "proposing", "executing"})
_DENY: Final = re.compile(r"deny `([^`]+)`")


@dataclass(frozen=True, slots=True)
class Failure:
    """One expectation that does not hold. `turn` counts from 1; 0 is what is given."""

    place: Location
    turn: int
    message: str


class Became(NamedTuple):
    """What a turn's proposal or decision came to."""

    name: str
    """For messages: `1.2 place_order`."""
    outcome: str
    rule: str | None
    missing: frozenset[str]
    why: str


class Check(NamedTuple):
    place: Location
    fault: str
    """Empty where it holds."""


def check(expect: ExpectPart, played: Played) -> list[Check]:
    """One Check for each name in `shows` and `hides`, for each expected call, and for `run`."""
    return [*_contract(expect, played), *_calls(expect, played), *_run(expect, played.state)]


def _contract(expect: ExpectPart, played: Played) -> Iterator[Check]:
    contract = played.contract
    for at, name in enumerate(expect.shows or ()):
        why = contract.absent.get(name, "the policy does not have it")
        shown = name in contract.names
        yield Check(expect.place("shows", at), "" if shown else f"`{name}` is not shown: {why}")
    for at, name in enumerate(expect.hides or ()):
        yield Check(expect.place("hides", at), f"`{name}` is shown" if name in contract.names else "")


def _run(expect: ExpectPart, state: RunState) -> Iterator[Check]:
    if expect.run is None:
        return
    status = "proposing" if state.status in _GOES_ON else state.status
    reason = f" ({state.ending[1]})" if state.ending is not None else ""
    fault = "" if status == expect.run else f"the Run is {status}{reason}, not {expect.run}"
    yield Check(expect.place("run"), fault)


# --- calls --------------------------------------------------------------------------------------------------


def _calls(expect: ExpectPart, played: Played) -> Iterator[Check]:
    if expect.calls is None:
        return
    became = [*_became(played)]
    for at, wanted in enumerate(expect.calls):
        found = became[at] if at < len(became) else None
        if found is None:
            yield Check(wanted.here, f"there is no call {at + 1}: the turn has {len(became)}")
        elif any(wanted.is_written(key) for key in ("outcome", "rule", "for", "why")):
            yield Check(wanted.here, "; ".join(_faults(wanted, found)))
    if len(became) > len(expect.calls):
        listed = ", ".join(each.name for each in became[len(expect.calls) :])
        yield Check(expect.place("calls"), f"`calls` says nothing of {listed}")


def _became(played: Played) -> Iterator[Became]:
    """Decisions first, then proposals: the order in which a turn does them."""
    state = played.state
    for decided in played.decisions:
        if decided.call is None:
            yield Became(f"the decision on `{decided.tool}`", "", None, frozenset(), decided.declined)
            continue
        became = became_of(state.calls[decided.call])
        why = "; ".join(part for part in (decided.declined, became.why) if part)
        yield became._replace(why=why)
    for call in played.proposals:
        if call in state.calls:
            yield became_of(state.calls[call])


def became_of(call: CallState) -> Became:
    rule = call.refusal.rule if call.refusal is not None else None
    if call.refusal is not None and call.refusal.code == "no_rule":
        rule = NO_RULE
    why = reason_of(call)
    if rule is None and (named := _DENY.search(why)):
        rule = named[1]
    return Became(f"{call.id} `{call.tool}`", outcome_of(call), rule, _missing(call), why)


def outcome_of(call: CallState) -> str:
    """The word of the language for where a call stands."""
    match call.status:
        case CallStatus.SETTLED if call.receipt is not None:
            return call.receipt.outcome.value
        case CallStatus.REJECTED if call.approval is not None:
            return Outcome.NOT_EXECUTED.value
        case CallStatus.REJECTED | CallStatus.FENCED | CallStatus.GRANTED | CallStatus.COMMITTED:
            return call.status.value
        case _:
            return "held"


def reason_of(call: CallState) -> str:
    if call.refusal is not None:
        gates = f" [{', '.join(call.refusal.gates)}]" if call.refusal.gates else ""
        return f"{call.refusal.message}{gates}"
    if call.status is CallStatus.FENCED:
        return f"contract_changed: {call.detail}"
    if call.receipt is not None:
        return call.receipt.detail
    return call.detail or call.held


def _missing(call: CallState) -> frozenset[str]:
    if call.approval is None or call.approval.decided:
        return frozenset()
    return frozenset(call.approval.missing())


def _faults(wanted: ExpectedCallPart, found: Became) -> Iterator[str]:
    if not found.outcome:
        yield found.why
        return
    because = f": {found.why}" if found.why else ""
    if wanted.outcome is not None and wanted.outcome != found.outcome:
        yield f"{found.name} is {found.outcome}, not {wanted.outcome}{because}"
    if wanted.rule is not None and wanted.rule != found.rule:
        decided = f"`{found.rule}` decided" if found.rule else "no deny decided"
        yield f"{found.name}: {decided}, not `{wanted.rule}`{because}"
    if wanted.for_ is not None and frozenset(wanted.for_) != found.missing:
        yield f"{found.name} waits for {_listed(found.missing)}, not for {_listed(frozenset(wanted.for_))}"
    if wanted.why is not None and wanted.why not in found.why:
        yield f"{found.name}: `{wanted.why}` is not in its reason{because or ', it has none'}"


def _listed(rules: frozenset[str]) -> str:
    return ", ".join(f"`{rule}`" for rule in sorted(rules)) or "no approval"
