"""Owns the answer to "what next": from policies, folded state and the time to one step. Pure.

`driver` performs the step, appends what happened, folds it and asks again. Start and recovery are the same
question: what is left of a crash is seen in the state, not in a flag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Literal

from engine.domain import events as e
from engine.domain.calls import CallStatus
from engine.domain.ids import CallId
from engine.domain.policy import ModelUse, Policy
from engine.domain.results import ReadResult
from engine.domain.state import CallState, RunState
from engine.lifecycle.before_asking import room, state_to_show
from engine.lifecycle.present import Outlook, Present, Size
from engine.lifecycle.provenance import Provenance
from engine.lifecycle.recover import conclusions, lapsed, leftovers, next_probe, probe_due
from engine.lifecycle.retry import retry_due
from engine.lifecycle.settle import settle
from engine.lifecycle.steps import AskModel, Done, Execute, Measure, Record, Step, Stop, Wait
from engine.lifecycle.walk import walk
from engine.policy import budgets
from engine.policy.allowed_models import refused_by
from engine.policy.arguments import SecretFinder
from engine.policy.builtin import ASK_USER
from engine.policy.contract import Contract, ContractCompiler
from engine.policy.view import FactsView

MAX_ATTEMPTS = 4
"""Attempts at one ModelTurn with one model before the next fallback, or a stop."""
BACK_OFF = (0.5, 2.0, 8.0)
"""Seconds before the second, third, … attempt, where the provider names no time."""
MAX_RETRY_AFTER = 120.0
"""Seconds; a provider that asks for more stops the drive and leaves the Run resumable."""
_RETRYABLE = frozenset({"timeout", "rate_limited", "unavailable", "cut", "invalid_response"})
_GIVES_UP = frozenset({"auth", "fault"})


class Decider:
    """Answers for one Run under one set of policies: its own first, then those that restrict it."""

    def __init__(
        self,
        policies: Sequence[Policy],
        outlook: Outlook,
        read_result: ReadResult,
        *,
        secrets: SecretFinder | None = None,
    ) -> None:
        self.policies = tuple(policies)
        self._outlook = outlook
        self._read_result = read_result
        self._secrets = secrets
        self._compiler = ContractCompiler(self.policies)
        self._budgets = budgets.of(self.policies)
        self._view: FactsView | None = None
        self._tried: dict[tuple[int, int], str] = {}
        """(turn, attempt) -> the model it is made with, of this drive."""
        self._refreshes: set[CallId] = set()
        """Calls of the Host that read app state anew, of this drive."""

    def next_step(self, state: RunState, now: datetime) -> Step:
        """The one thing to do now."""
        step = self._step(state, now)
        if isinstance(step, Execute):
            self._refreshes.update(start.call for start in step.starts if _refreshes(start))
        return step

    def _step(self, state: RunState, now: datetime) -> Step:
        if state.terminal:
            return Done()
        present = self._present(state, now)
        step = leftovers(present) or conclusions(present) or lapsed(present)
        if step is not None:
            return step
        if state.status == "settling":
            return self._other_end_asked(state) or settle(present)
        return self._end_asked(state) or retry_due(present) or probe_due(present) or self._go_on(present)

    def contract(self, state: RunState, now: datetime) -> Contract:
        """The contract that the next ModelTurn would be asked with."""
        return self._compiler.compile(state, self._present(state, now).facts)

    def _present(self, state: RunState, now: datetime) -> Present:
        if self._view is None or self._view.state is not state:
            self._provenance = Provenance(self.policies[0], state, self._read_result)
            self._view = FactsView(self.policies, state, self._provenance)
            self._compiler = ContractCompiler(self.policies)
        return Present(
            self.policies, state, self._view, now, self._provenance, self._secrets, self._at_work,
            self._refreshes,
        )  # fmt: skip

    def _at_work(self, call: CallId) -> bool:
        return self._outlook.at_work(call)

    def _end_asked(self, state: RunState) -> Step | None:
        if state.cancel_requested is not None:
            return Record((e.SettlingStarted(ending="cancelled", reason="cancel"),))
        if state.draining:
            return Record((e.SettlingStarted(ending="expired", reason="drain"),))
        return None

    def _other_end_asked(self, state: RunState) -> Step | None:
        """A cancel or a drain that comes while a completed Run still undoes what it must."""
        completing = state.settling is not None and state.settling[0] == "completed"
        return self._end_asked(state) if completing else None

    def _go_on(self, present: Present) -> Step:
        state = present.state
        if state.waiting_for:
            return Record((e.RunResumed(),)) if state.news else self._wait(present)
        if state.open_calls:
            return walk(present) or self._park(present)
        if state.status == "executing" and self._must_hear(state):
            return Record((e.RunParked(waiting_for="input", detail="the model proposed no call"),))
        return self._ask(present)

    # --- waits --------------------------------------------------------------------------------------------

    def _park(self, present: Present) -> Step:
        """Order of waits: approval, then reconciliation, then input."""
        held = [present.state.calls[call] for call in present.state.open_calls]
        for waiting_for, reasons in _WAITS:
            calls = [call for call in held if call.held in reasons]
            if calls:
                detail = ", ".join(f"{call.id} {call.tool}" for call in calls)
                return Record((e.RunParked(waiting_for=waiting_for, detail=detail),))
        return Record((e.RunParked(waiting_for="approval", detail=_named(held)),))

    def _wait(self, present: Present) -> Step:
        state = present.state
        times = [
            need.expires_at
            for call in state.open_calls
            if (approval := state.calls[call].approval) is not None and not approval.decided
            for need in approval.requirements
        ]
        times += [ends for name in state.open_grants if (ends := state.grants[name].expires_at) is not None]
        probe = next_probe(present)
        if probe is not None:
            times.append(probe)
        waiting_for: Literal["approval", "reconciliation", "input"] = state.waiting_for  # type: ignore[assignment]
        return Wait(waiting_for, _waiting_detail(state), min(times, default=None))

    def _must_hear(self, state: RunState) -> bool:
        """The user's turn: a response without calls, or a question that the budget no longer allows."""
        turn = state.turn
        if turn is None or (state.inputs and state.inputs[-1][0] > turn.asked_seq):
            return False
        if not turn.recorded.proposals:
            return state.spent.silent_turns > self._budgets.no_call_turns
        return any(_question_refused(state.calls[call]) for call in turn.calls) and not _answered(state)

    # --- the model ----------------------------------------------------------------------------------------

    def _ask(self, present: Present) -> Step:
        state = present.state
        over = budgets.exhausted(self._budgets, state.spent)
        if over is not None:
            return _expire(over)
        first = state_to_show(present) or room(self.policies[0], present, self._outlook)
        if first is not None:
            return first
        contract = self._compiler.compile(state, present.facts)
        chosen = self._choose(state, present.now)
        if isinstance(chosen, Step):
            return chosen
        use, wait = chosen
        refusing = None if self._outlook.free else refused_by(self.policies, use.id)
        if refusing is not None:
            alert = f"overlay {refusing.id} does not allow model {use.id}"
            end = e.SettlingStarted(ending="failed", reason="model:not_allowed")
            return Record((e.OperatorAlerted(code="model-not-allowed", message=alert), end))
        size = self._outlook.input_tokens(state, contract)
        answer = budgets.output_tokens(use, self._budgets, state.spent)
        if size.measurable:
            twice = self._outlook.price(use, size.tokens * 2, answer)
            if budgets.near(self._budgets, state.spent, size.tokens, twice):
                return Measure(use, contract)
        cost = self._outlook.price(use, size.tokens, answer)
        reserved = self._reserve(state, use, size, cost)
        if isinstance(reserved, budgets.Exhausted):
            return _expire(reserved, unpriced=use if cost is None else None)
        start = e.ModelAttemptStarted(
            turn=len(state.turns) + 1,
            attempt=state.attempts + 1,
            model=self._outlook.model if self._outlook.free else use.id,
            contract=contract.digest,
            epoch=state.epoch,
            reserved=reserved,
            state_versions={name: held.version for name, held in state.state.items()},
            left_out=self._outlook.left_out(state),
        )
        self._tried[start.turn, start.attempt] = use.id
        dropped = self._outlook.dropped_inputs(state)
        omitted = (e.InputOmitted(inputs=dropped),) if dropped else ()
        capped = replace(use, max_output_tokens=answer)  # what was not reserved is not asked for
        return AskModel((*omitted, *_compiled(state, contract)), start, capped, contract, wait)

    def _reserve(
        self, state: RunState, use: ModelUse, size: Size, cost: Decimal | None
    ) -> e.Reservation | budgets.Exhausted:
        free = self._outlook.free
        if state.spent.cost_unknown and not free:
            return budgets.Exhausted("cost_usd", "a response had no known price")
        reserved = budgets.reserve(self._budgets, state.spent, use, size.tokens, cost, free=free)
        if isinstance(reserved, e.Reservation) and size.exact:
            return reserved.model_copy(update={"exact": True})
        return reserved

    def _tries(self, state: RunState) -> Counter[str]:
        """Attempts of this drive at the present turn, by model."""
        turn = len(state.turns) + 1
        made = (self._tried.get((turn, number)) for number in range(1, state.attempts + 1))
        return Counter(use for use in made if use is not None)

    def _choose(self, state: RunState, now: datetime) -> tuple[ModelUse, float] | Stop | Record:
        """The model for the next attempt and how long to wait before it; patience is counted per drive."""
        tries = self._tries(state)
        model = self.policies[0].model
        named = self._outlook.model
        primary = ModelUse(named) if self._outlook.free else _named_use(model.primary, named)
        uses = [primary, *(() if self._outlook.free else model.fallbacks)]
        failure = state.last_failure
        if failure is None or not tries:
            return primary, 0.0
        error, message, retry_after, at = failure
        if error in _GIVES_UP:
            return Stop(error, message)
        for index, use in enumerate(uses):
            tried = tries[use.id]
            if index and not tried and error in use.on:
                return use, 0.0
            if not tried or tried >= MAX_ATTEMPTS or error not in _RETRYABLE:
                continue
            if index + 1 < len(uses) and error in uses[index + 1].on and not tries[uses[index + 1].id]:
                continue
            wait = retry_after if retry_after is not None else BACK_OFF[min(tried, len(BACK_OFF)) - 1]
            if wait <= MAX_RETRY_AFTER:
                return use, max(0.0, wait - (now - at).total_seconds())
        if error in ("bad_request", "context_too_long"):
            return Record((e.SettlingStarted(ending="failed", reason=f"model:{error}"),))
        return Stop(error, message)


_WAITS: tuple[tuple[Literal["approval", "reconciliation", "input"], frozenset[str]], ...] = (
    ("approval", frozenset({"approval", "capability", "publication"})),
    ("reconciliation", frozenset({"unknown_effects", "equal_key"})),
    ("input", frozenset({"question"})),
)


def _named_use(primary: ModelUse, model: str) -> ModelUse:
    """The policy's settings for the model that the Run was started with."""
    if model in ("", primary.id):
        return primary
    return ModelUse(model, primary.temperature, primary.max_output_tokens, primary.timeout)


def _named(calls: Sequence[CallState]) -> str:
    return ", ".join(f"{call.id} {call.tool}" for call in calls)


def _waiting_detail(state: RunState) -> str:
    return _named([state.calls[call] for call in state.open_calls])


def _question_refused(call: CallState) -> bool:
    return (
        call.tool == ASK_USER
        and call.status is CallStatus.REJECTED
        and call.refusal is not None
        and call.refusal.code in ("budget", "not_offered")
    )


def _answered(state: RunState) -> bool:
    turn = state.turn
    return turn is not None and bool(state.inputs) and state.inputs[-1][0] > turn.asked_seq


def _expire(over: budgets.Exhausted, unpriced: ModelUse | None = None) -> Step:
    end = e.SettlingStarted(ending="expired", reason=f"budget:{over.name}")
    if unpriced is None:
        return Record((end,))
    return Record((e.OperatorAlerted(code="unpriced-model", message=over.detail), end))


def _refreshes(start: e.ExecutionStarted) -> bool:
    return start.host is not None and start.host.purpose == "refresh"


def _compiled(state: RunState, contract: Contract) -> tuple[e.Body, ...]:
    """Recorded only when the model is offered something else than before."""
    known = state.contract
    if known is not None and known.digest == contract.digest and known.epoch == contract.epoch:
        return ()
    before = known.tools if known else frozenset()
    changes = [f"+ {name}" for name in sorted(contract.names - before)]
    changes += [f"- {name}" for name in sorted(before - contract.names)]
    return (
        e.ContractCompiled(
            digest=contract.digest,
            epoch=contract.epoch,
            tools=tuple(sorted(contract.names)),
            changes=tuple(changes) if known else (),
        ),
    )
