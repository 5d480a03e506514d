"""Owns the Run lifecycle: its states, what may follow what, and the guards that carry the gates' names.

The machine's transitions and guards judge a lifecycle event before it is appended. Both the judgement and the fold
go through tables read off the class, because sending costs tens of microseconds and a lookup none; a test holds the
judgement to what sending says. Nothing here has effects.
"""

from __future__ import annotations

from statemachine import State, StateMachine

from engine.domain.calls import CallStatus
from engine.domain.errors import Fault
from engine.domain.events import (
    Body,
    ModelAttemptStarted,
    ModelTurnRecorded,
    RunCancelled,
    RunCompleted,
    RunExpired,
    RunFailed,
    RunParked,
    RunResumed,
    SettlingStarted,
)
from engine.domain.state import RunState


class RunFacts:
    """The facts that the guards read. `state` is the name of the lifecycle state, as python-statemachine wants it."""

    def __init__(self, run: RunState) -> None:
        self.run = run
        self.state = run.status

    def no_unsettled_calls(self) -> bool:
        """Every call but the finish itself has come to an end."""
        return all(call == self.run.finish_call for call in self.run.open_calls)

    def no_pending_approvals(self) -> bool:
        """Nobody still has to decide about a held call."""
        return not any(
            self.run.calls[call].status is CallStatus.HELD and self.run.calls[call].waits_for
            for call in self.run.open_calls
            if call != self.run.finish_call
        )

    def no_unknown_effects(self) -> bool:
        """The outcome of every effect is known."""
        return not self.run.unknown_calls

    def run_may_end(self) -> bool:
        """Nobody asked for another end."""
        return self.run.cancel_requested is None and not self.run.draining


class RunMachine(StateMachine):
    """The life of one Run."""

    created = State(initial=True)
    proposing = State()
    executing = State()
    awaiting_approval = State()
    awaiting_input = State()
    awaiting_reconciliation = State()
    settling = State()
    completed = State(final=True)
    failed = State(final=True)
    cancelled = State(final=True)
    expired = State(final=True)

    ask_model = (
        created.to(proposing) | proposing.to(proposing) | executing.to(proposing, cond="no_unsettled_calls")
    )
    close_turn = proposing.to(executing)
    wait_for_approval = executing.to(awaiting_approval)
    wait_for_input = executing.to(awaiting_input)
    wait_for_reconciliation = executing.to(awaiting_reconciliation) | settling.to(awaiting_reconciliation)
    resume = (
        awaiting_approval.to(executing) | awaiting_input.to(executing) | awaiting_reconciliation.to(executing)
    )
    settle = (
        created.to(settling)
        | proposing.to(settling)
        | executing.to(settling)
        | awaiting_approval.to(settling)
        | awaiting_input.to(settling)
        | awaiting_reconciliation.to(settling)
        | settling.to(settling, unless="run_may_end")
    )
    complete = settling.to(
        completed, cond=["no_unsettled_calls", "no_pending_approvals", "no_unknown_effects", "run_may_end"]
    )
    fail = settling.to(failed, cond="no_unsettled_calls")
    cancel = settling.to(cancelled, cond="no_unsettled_calls")
    expire = settling.to(expired, cond="no_unsettled_calls")


TRANSITIONS: dict[tuple[str, str], str] = {
    (state.id, event.id): transition.target.id
    for state in RunMachine.states
    for transition in state.transitions
    if transition.target is not None
    for event in transition.events
}
"""(state, lifecycle event) -> state, without guards."""

GUARDS: dict[tuple[str, str], tuple[tuple[str, bool], ...]] = {
    (state.id, event.id): tuple((guard.attr_name, bool(guard.expected_value)) for guard in transition.cond)
    for state in RunMachine.states
    for transition in state.transitions
    for event in transition.events
}
"""(state, lifecycle event) -> the guards, by name, with what each must say."""

TERMINAL = frozenset(state.id for state in RunMachine.states if state.final)

_WAITS = {
    "approval": "wait_for_approval",
    "input": "wait_for_input",
    "reconciliation": "wait_for_reconciliation",
}
_EVENTS: dict[type[Body], str] = {
    ModelAttemptStarted: "ask_model",
    ModelTurnRecorded: "close_turn",
    RunResumed: "resume",
    SettlingStarted: "settle",
    RunCompleted: "complete",
    RunFailed: "fail",
    RunCancelled: "cancel",
    RunExpired: "expire",
}


def lifecycle_event(body: Body) -> str | None:
    """The machine's name for a fact that moves the lifecycle; None for all others."""
    if isinstance(body, RunParked):
        return _WAITS[body.waiting_for]
    return _EVENTS.get(type(body))


class Judge:
    """Judges the lifecycle events of one Run before they are appended; follows the Run as it goes."""

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._facts = RunFacts(run)

    def admit(self, body: Body) -> None:
        """Raises Fault if the machine does not let this fact follow; facts of other kinds always may."""
        event = lifecycle_event(body)
        if event is None:
            return
        guards = GUARDS.get((self._run.status, event))
        if guards is None or not all(getattr(self._facts, name)() is wanted for name, wanted in guards):
            raise Fault(
                f"`{body.kind}` may not follow in state `{self._run.status}`",
                remedy="this is a fault in agentctl: please report it with the output of `agentctl log`",
            )


def next_status(status: str, body: Body) -> str:
    """The state after a recorded fact. Raises Fault for a log that no lifecycle allows."""
    event = lifecycle_event(body)
    if event is None:
        return status
    try:
        return TRANSITIONS[status, event]
    except KeyError:
        raise Fault(
            f"the log holds `{body.kind}` in state `{status}`, which no Run can do",
            remedy="run `agentctl verify` on it: the log was not written by agentctl alone",
        ) from None
