"""The machine of a Run: every pair of state and event has a defined result, and guards are the gates."""

from __future__ import annotations

import itertools

import pytest
from statemachine.exceptions import TransitionNotAllowed

from engine.domain import events as e
from engine.domain.calls import CallStatus
from engine.domain.errors import Fault
from engine.domain.ids import CallId, RunId
from engine.domain.state import CallState, RunState
from engine.lifecycle.machine import (
    GUARDS,
    TERMINAL,
    TRANSITIONS,
    Judge,
    RunFacts,
    RunMachine,
    lifecycle_event,
    next_status,
)
from engine.policy.gates import IMPLICIT
from tests.render_lifecycle import FACTS, PAGE, page

STATES = [state.id for state in RunMachine.states]

ALLOWED = {
    "created": {"ask_model": "proposing", "settle": "settling"},
    "proposing": {"ask_model": "proposing", "close_turn": "executing", "settle": "settling"},
    "executing": {
        "ask_model": "proposing",
        "wait_for_approval": "awaiting_approval",
        "wait_for_input": "awaiting_input",
        "wait_for_reconciliation": "awaiting_reconciliation",
        "settle": "settling",
    },
    "awaiting_approval": {"resume": "executing", "settle": "settling"},
    "awaiting_input": {"resume": "executing", "settle": "settling"},
    "awaiting_reconciliation": {"resume": "executing", "settle": "settling"},
    "settling": {
        "wait_for_reconciliation": "awaiting_reconciliation",
        "settle": "settling",
        "complete": "completed",
        "fail": "failed",
        "cancel": "cancelled",
        "expire": "expired",
    },
    "completed": {},
    "failed": {},
    "cancelled": {},
    "expired": {},
}
"""State -> what may follow and where it leads: everything else is refused. Written by hand, as the promise."""


def at(status: str) -> RunState:
    run = RunState(RunId("r1"), status=status)
    if status == "settling":
        run.cancel_requested = None
    return run


def with_call(run: RunState, call: CallState) -> RunState:
    run.calls[call.id] = call
    run.open_calls[call.id] = None
    return run


@pytest.mark.parametrize(("status", "body"), list(itertools.product(STATES, FACTS)), ids=str)
def test_every_pair_of_state_and_event_has_a_defined_result(status: str, body: e.Body):
    """The judge and the fold's table agree, and both agree with the table written by hand."""
    event = str(lifecycle_event(body))
    run = at(status)
    if (status, event) == ("settling", "settle"):
        run.cancel_requested = "why"
    target = ALLOWED[status].get(event)
    assert TRANSITIONS.get((status, event)) == target
    if target is None:
        with pytest.raises(Fault):
            Judge(run).admit(body)
        with pytest.raises(Fault):
            next_status(status, body)
    else:
        Judge(run).admit(body)
        assert next_status(status, body) == target


def test_facts_that_move_nothing_may_follow_in_every_state():
    for status in STATES:
        Judge(at(status)).admit(e.InputReceived(text="x"))
        assert next_status(status, e.InputReceived(text="x")) == status


def test_every_state_is_reachable_and_none_is_a_trap():
    reached, before = {"created"}, set()
    while reached != before:
        before = set(reached)
        reached |= {target for (start, _), target in TRANSITIONS.items() if start in before}
    assert reached == set(STATES)
    for state in STATES:
        onward, before = {state}, set()
        while onward != before:
            before = set(onward)
            onward |= {target for (start, _), target in TRANSITIONS.items() if start in before}
        assert onward & TERMINAL


def test_a_terminal_state_has_no_way_out():
    assert {"completed", "failed", "cancelled", "expired"} == TERMINAL
    assert not [pair for pair in TRANSITIONS if pair[0] in TERMINAL]


def test_every_lifecycle_event_has_one_machine_event():
    assert {event for _, event in TRANSITIONS} == {str(lifecycle_event(body)) for body in FACTS}
    moving = {body for body in e.BODIES.values() if issubclass(body, e.Ending)}
    assert {type(body) for body in FACTS if isinstance(body, e.Ending)} == moving - {e.Ending}


# --- guards ---------------------------------------------------------------------------------------------------

COMPLETE = e.RunCompleted(reason="finish")


def test_guards_carry_the_names_of_the_implicit_gates():
    for gate in IMPLICIT:
        assert callable(getattr(RunFacts, gate))
    complete = next(
        t for s in RunMachine.states for t in s.transitions if "complete" in {x.id for x in t.events}
    )
    assert {spec.func for spec in complete.cond} == set(IMPLICIT)


def settling() -> RunState:
    return at("settling")


def test_an_unsettled_call_keeps_every_end_away():
    call = CallState(CallId(1, 1), "t", None, CallStatus.STARTED, None, 1)
    for body in (COMPLETE, e.RunFailed(reason="x"), e.RunCancelled(reason="x"), e.RunExpired(reason="x")):
        with pytest.raises(Fault):
            Judge(with_call(settling(), call)).admit(body)


def test_the_finish_itself_is_no_unsettled_call():
    call = CallState(CallId(1, 1), "finish", None, CallStatus.PROPOSED, None, 1)
    run = with_call(settling(), call)
    run.finish_call = call.id
    Judge(run).admit(COMPLETE)


def test_an_unknown_effect_keeps_completion_away_but_not_a_cancel():
    run = settling()
    run.unknown_calls[CallId(1, 1)] = None
    with pytest.raises(Fault):
        Judge(run).admit(COMPLETE)
    Judge(run).admit(e.RunCancelled(reason="cancel"))


@pytest.mark.parametrize("what", ["cancel", "drain"])
def test_another_end_that_was_asked_for_keeps_completion_away(what: str):
    run = settling()
    if what == "cancel":
        run.cancel_requested = ""
    else:
        run.draining = True
    with pytest.raises(Fault):
        Judge(run).admit(COMPLETE)
    Judge(run).admit(e.SettlingStarted(ending="cancelled", reason="cancel"))


def test_settling_does_not_start_over_without_a_reason():
    with pytest.raises(Fault):
        Judge(settling()).admit(e.SettlingStarted(ending="completed", reason="finish"))


def test_the_model_is_not_asked_over_an_open_call():
    call = CallState(CallId(1, 1), "t", None, CallStatus.HELD, None, 1)
    with pytest.raises(Fault):
        Judge(with_call(at("executing"), call)).admit(FACTS[0])


# --- rehydration ------------------------------------------------------------------------------------------------


def test_rehydration_enters_the_state_without_callbacks(monkeypatch: pytest.MonkeyPatch):
    """A machine made for a stored Run stands where the Run stands; nothing is entered, left or asked for that."""
    calls: list[str] = []
    for name in ("no_unsettled_calls", "no_pending_approvals", "no_unknown_effects", "run_may_end"):
        monkeypatch.setattr(RunFacts, name, lambda self, name=name: calls.append(name) or True)

    class Watched(RunFacts):
        def on_enter_state(self) -> None:
            calls.append("enter")

        def on_exit_state(self) -> None:
            calls.append("exit")

        def on_enter_executing(self) -> None:
            calls.append("enter executing")

    for status in STATES:
        facts = Watched(at(status))
        machine = RunMachine(facts)
        assert facts.state == status
        assert [state.id for state in machine.configuration] == [status]
    assert calls == []


def test_the_class_checks_of_the_machine_stay_on():
    """Unreachable or trapped states do not even import; an event without a transition is an error."""
    assert RunMachine.allow_event_without_transition is False


def test_the_page_is_what_the_machine_says():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.render_lifecycle`"


class Said(RunFacts):
    """Facts whose guards say what a test says."""

    def __init__(self, run: RunState, said: dict[str, bool]) -> None:
        super().__init__(run)
        for name, answer in said.items():
            setattr(self, name, lambda answer=answer: answer)


def test_the_table_of_guards_judges_as_the_machine_does():
    """The Judge looks up what sending would find out: for every state, event and answer of the guards that count."""
    events = sorted({event for _, event in TRANSITIONS})
    for status, event in itertools.product(STATES, events):
        guards = GUARDS.get((status, event))
        for answers in itertools.product([True, False], repeat=len(guards or ())):
            said = {name: answer for (name, _), answer in zip(guards or (), answers, strict=True)}
            machine = RunMachine(Said(at(status), said))
            try:
                machine.send(event)
                sent = True
            except TransitionNotAllowed:
                sent = False
            looked_up = guards is not None and all(said[name] is wanted for name, wanted in guards)
            assert looked_up is sent, (status, event, said)
