"""Owns the walk over one response: each proposal judged in order, one by one, under the facts of then.

Neighbouring reads are dispatched together; writes and hybrids one at a time, in proposal order, but for neighbours
of one tool whose `serialize_by` differs. A held call
holds back the dispatch of later writes and hybrids, and later questions to the user; not their judgement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.domain import events as e
from engine.domain.calls import CallStatus
from engine.domain.canonical import JsonObject, canonical
from engine.domain.conditions import Condition
from engine.domain.policy import Kind, Policy, ToolSpec
from engine.domain.state import CallState, TurnState
from engine.lifecycle.acts import alerts, execute, held_behind_twin, hold, queued, rejected, started
from engine.lifecycle.builtins import perform
from engine.lifecycle.held import by_standing, continue_held
from engine.lifecycle.present import Present
from engine.lifecycle.read_cache import cache_key, hit
from engine.lifecycle.standing import covering
from engine.lifecycle.steps import Execute, Record, Step
from engine.policy import budgets
from engine.policy.admission import admit
from engine.policy.builtin import ASK_USER
from engine.policy.freshness import slices_of
from engine.policy.verdicts import Builtin, Fence, Hold, Reject, Run


class Walk:
    """One pass over the open calls of the last response, until something must be recorded or sent."""

    def __init__(self, present: Present, turn: TurnState) -> None:
        self.present = present
        self.turn = turn
        self.before: list[e.Body] = []
        self.reads: list[e.ExecutionStarted] = []
        self.writes: list[e.ExecutionStarted] = []
        """Of one tool, whose `serialize_by` lets them overlap; never together with reads."""
        self.blocked = False
        """A call before this one is held."""

    def step(self) -> Step | None:
        """The next step of the response; None if every open call waits."""
        state = self.present.state
        if state.epoch != self.turn.epoch:
            fenced = tuple(self._fenced())
            if fenced:
                return Record(fenced)
        for id_ in self.turn.calls:
            call = state.calls[id_]
            if call.status is CallStatus.HELD:
                step = self._held(call)
            elif call.status is CallStatus.PROPOSED:
                step = self._proposed(call)
            else:
                continue
            if step is not None:
                return step
        return self._sent()

    def _fenced(self) -> Iterator[e.Body]:
        """Proposals of the old contract. A call that was held for its own approval is past the fence."""
        state = self.present.state
        for id_ in self.turn.calls:
            call = state.calls[id_]
            if call.status is CallStatus.PROPOSED or _only_queues(call):
                yield e.CallFenced(call=id_, tool=call.tool, moved_by=state.moved_by)

    def _held(self, call: CallState) -> Step | None:
        if self.reads or self.writes:
            return self._sent()
        step = continue_held(self.present, self.turn, call, blocked=self.blocked)
        if step is None:
            self.blocked = self.blocked or call.held != "unknown_effects"
        return self._after(step)

    def _proposed(self, call: CallState) -> Step | None:
        present, turn = self.present, self.turn
        assert call.proposal is not None
        verdict = admit(
            present.policies,
            present.state,
            turn.offered,
            turn.epoch,
            call.id,
            call.proposal,
            present.facts,
            finish=turn.recorded.finish,
            secrets=present.secrets,
        )
        match verdict:
            case Reject():
                self.before += rejected(call, verdict)
                return None
            case Fence():
                self.before.append(e.CallFenced(call=call.id, tool=call.tool, moved_by=verdict.moved_by))
                return None
            case Run() if verdict.spec.kind is Kind.READ:
                return self._read(call, verdict)
            case Builtin() if verdict.tool == ASK_USER and self.blocked:
                return self._sent() or self._after(Record(tuple(queued(call, verdict))))
            case Builtin():
                return self._sent() or self._after(perform(present, call, verdict))
            case Hold():
                return self._sent() or self._people(call, verdict)
            case Run():
                return (self._sent() if self.reads else None) or self._write(call, verdict)

    def _read(self, call: CallState, verdict: Run) -> Step | None:
        """Joins the batch, unless what permits it depends on a read that is still in it."""
        if self.writes or (self.reads and (self._depends(verdict) or self._overdraws(verdict))):
            return self._sent()
        key = cache_key(verdict.spec, verdict.args, self.present.facts[0])
        if key is not None and any(start.cache_key == key for start in self.reads):
            return self._sent()
        self.before += alerts(verdict.alerts)
        cached = hit(self.present, call, verdict, key)
        if cached is not None:
            return self._sent() if self.reads else self._after(Record((cached,)))
        self.reads.append(started(self.present, call, verdict, cache_key=key))
        return None

    def _depends(self, verdict: Run) -> bool:
        """Reads wait for the batch where a rule or a hide over them reads receipts, sources or labels."""
        return any(
            path.startswith(("history.", "source.", "run.", "origin"))
            for condition in _conditions(self.present.policies, verdict.spec.name)
            for path in condition.reads
        )

    def _overdraws(self, verdict: Run) -> bool:
        """The batch may use up what is left of a budget or a grant: then it is judged after the batch."""
        state, tool = self.present.state, verdict.spec.name
        left = budgets.tool_calls_left(budgets.of(self.present.policies), state.spent, tool)
        batch = self.reads or self.writes
        if left is not None and sum(start.tool == tool for start in batch) >= left:
            return True
        return any(
            (uses := state.grants[grant].calls_left) is not None
            and sum(grant in start.grants for start in batch) >= uses
            for grant in verdict.grants
        )

    def _people(self, call: CallState, verdict: Hold) -> Step | None:
        """Held for people, unless they said yes to such calls before."""
        standing = covering(self.present.state, verdict, self.present.now)
        if standing and self.blocked:
            return self._after(Record(tuple(queued(call, verdict))))
        if standing:
            return self._after(by_standing(self.present, self.turn, call, verdict, standing))
        return self._after(Record(tuple(hold(self.present.state, call, verdict))))

    def _write(self, call: CallState, verdict: Run) -> Step | None:
        if self.writes and not self._joins(verdict):
            return self._sent()
        twin = held_behind_twin(self.present.state, call, verdict)
        if twin:
            return self._sent() if self.writes else self._after(Record(twin))
        if self.blocked:
            return self._after(Record(tuple(queued(call, verdict))))
        if not _may_overlap(verdict):
            return self._after(execute(self.present, self.turn, call, verdict))
        self.before += alerts(verdict.alerts)
        self.writes.append(started(self.present, call, verdict))
        return None

    def _joins(self, verdict: Run) -> bool:
        """A neighbour of the same tool that touches something else, and that nothing in the batch bears on."""
        batch = self.writes
        if not _may_overlap(verdict) or batch[0].tool != verdict.spec.name:
            return False
        scope = _scope(verdict.spec, verdict.args)
        if any(_scope(verdict.spec, start.args) == scope for start in batch):
            return False
        key = verdict.idempotency_key
        if key is not None and any(start.idempotency_key == key for start in batch):
            return False
        return not self._depends(verdict) and not self._overdraws(verdict) and not self._uses_up(verdict)

    def _uses_up(self, verdict: Run) -> bool:
        """The batch may use up what an unattended rule of the tool permits, in the Run's own version or another."""
        return any(
            rule.unattended is not None
            and facts.unattended.get(rule.id, 0) + len(self.writes) >= rule.unattended.max_per_run
            for policy, facts in zip(self.present.policies, self.present.facts, strict=True)
            for rule in policy.rules_of.get(verdict.spec.name, ())
        )

    def _sent(self) -> Step | None:
        """What was gathered: the calls, with the refusals between them; or the refusals alone."""
        if self.reads or self.writes:
            return Execute(tuple(self.reads or self.writes), tuple(self.before))
        if self.before:
            return Record(tuple(self.before))
        return None

    def _after(self, step: Step | None) -> Step | None:
        """A step with the refusals gathered before it."""
        if step is None or not self.before:
            return step
        if isinstance(step, Record):
            return Record((*self.before, *step.bodies))
        if isinstance(step, Execute):
            return Execute(step.starts, (*self.before, *step.before))
        return self._sent()


def _conditions(policies: Sequence[Policy], tool: str) -> Iterator[Condition]:
    for policy in policies:
        for rule in policy.rules_of.get(tool, ()):
            yield from (each for each in (rule.when, rule.unless) if each is not None)
        yield from (hide.when for hide in policy.hides_of.get(tool, ()) if hide.when is not None)


def _may_overlap(verdict: Run) -> bool:
    """Writes run one at a time unless their spec says what they must not share; state is checked one by one."""
    return verdict.spec.serialize_by is not None and not slices_of(verdict.matched)


def _scope(spec: ToolSpec, args: JsonObject) -> str:
    return canonical([args.get(name) for name in spec.serialize_by or ()])


def _only_queues(call: CallState) -> bool:
    """Held behind another call, and never for an approval of its own."""
    return call.status is CallStatus.HELD and call.held in ("queued", "equal_key") and call.approval is None


def walk(present: Present) -> Step | None:
    """The next step of the last response; None if its open calls all wait for somebody."""
    turn = present.state.turn
    return None if turn is None else Walk(present, turn).step()
