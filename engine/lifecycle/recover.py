"""Owns what time and crashes leave behind: attempts and calls without an end, expiries, unknown outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from heapq import merge

from engine.domain import events as e
from engine.domain.calls import CallStatus, Outcome
from engine.domain.policy import Kind, Retry, ToolSpec
from engine.domain.state import CallState, RunState
from engine.domain.unsettled import ProbeTime
from engine.lifecycle.acts import host_start, not_as_shown
from engine.lifecycle.fold_unsettled import probe_stands
from engine.lifecycle.held import approved
from engine.lifecycle.present import Present
from engine.lifecycle.standing import ended
from engine.lifecycle.steps import Execute, Reconcile, Record, Step
from engine.policy.admission import readmit
from engine.policy.binding import host_arguments
from engine.policy.contract import source_shut
from engine.policy.verdicts import Hold, Run
from engine.policy.view import for_call, tool_facts

PROBE_AFTER = (0.0, 2.0, 10.0, 60.0, 300.0, 900.0)
"""Seconds after an outcome became unknown, or after the probe before, until the next probe."""
_WHILE_AT_WORK = timedelta(minutes=1)
"""Until the next probe of a call whose handler still runs here: its absence proves nothing before that ends."""
MAX_ATTEMPTS = 3
"""Dispatches of one call: a read, or a write under `retry`. A call that ends the process each time is given up."""


def leftovers(present: Present) -> Step | None:
    """An attempt or a call whose end is not recorded: the process that started it is gone."""
    state = present.state
    if state.attempt is not None:
        return Record((_lost_attempt(state),))
    if state.compacting is not None:
        lost = e.CompactionFailed(error="cut", message="the process ended before the summary came")
        return Record((lost,))
    reads: list[e.ExecutionStarted] = []
    for id_ in state.open_calls:
        call = state.calls[id_]
        if call.status is not CallStatus.STARTED:
            continue
        spec = present.policy.tools[call.tool]
        if (
            call.attempts < MAX_ATTEMPTS
            and _read_of_model(spec, call)
            and still_permitted(present, spec, call)
        ):
            reads.append(again(state, call))
        elif not reads:
            return _lost_call(present, spec, call)
    return Execute(tuple(reads)) if reads else None


def _read_of_model(spec: ToolSpec, call: CallState) -> bool:
    return spec.kind is Kind.READ and call.host is None


def _lost_attempt(state: RunState) -> e.Body:
    assert state.attempt is not None
    return e.ModelAttemptFailed(
        turn=state.attempt.turn,
        attempt=state.attempt.number,
        error="cut",
        message="the process ended before the response closed",
    )


def _lost_call(present: Present, spec: ToolSpec, call: CallState) -> Step:
    """A read of the Host failed; a write or hybrid is sent again only where the tool promises to deduplicate."""
    if may_send_again(spec, call, present.now) and still_permitted(present, spec, call):
        return Execute((again(present.state, call),))
    read = spec.kind is Kind.READ
    return Record(
        (
            e.ReceiptRecorded(
                call=call.id,
                tool=call.tool,
                outcome=Outcome.FAILED if read else Outcome.UNKNOWN,
                settled_by="host",
                detail="the process ended before an answer came",
            ),
        )
    )


def still_permitted(present: Present, spec: ToolSpec, call: CallState) -> bool:
    """Whether a started call may be sent once more: what is forbidden now is not done, whoever began it."""
    state = present.state
    if call.host is not None:
        return True
    if state.cancel_requested is not None or state.draining:
        return False
    if source_shut(present.policies, spec, present.facts[0]) is not None:
        return False
    verdict = readmit(present.policies, state, spec, call.id, call.args or {}, present.facts)
    if not isinstance(verdict, Run | Hold) or not_as_shown(
        present, state.turns[call.id.turn - 1], call, verdict
    ):
        return False
    return isinstance(verdict, Run) or approved(call, verdict) or _stands(state, call, verdict)


def _stands(state: RunState, call: CallState, verdict: Hold) -> bool:
    """It was sent under standing approvals that nobody has revoked, and every rule that asks now has one of them."""
    sent_under = [state.standing[each] for each in call.standing]
    rules = {standing.rule for standing in sent_under if standing.ended != "revoked"}
    return bool(rules) and all(need.rule in rules for need in verdict.requirements)


def may_send_again(spec: ToolSpec, call: CallState, now: datetime) -> bool:
    """`retry: same_key` within its window, with the same key."""
    if spec.retry is not Retry.SAME_KEY or call.idempotency_key is None or call.attempts >= MAX_ATTEMPTS:
        return False
    window = spec.idempotency.window if spec.idempotency else None
    return window is None or call.started_at is None or now - call.started_at < window


def again(state: RunState, call: CallState) -> e.ExecutionStarted:
    """The same dispatch once more, with the same arguments and key."""
    assert call.kind is not None
    return e.ExecutionStarted(
        call=call.id,
        tool=call.tool,
        tool_kind=call.kind,
        attempt=call.attempts + 1,
        args=call.args or {},
        args_digest=call.args_digest,
        policy_digest=state.policy_digest,
        idempotency_key=call.idempotency_key,
        approved_by=call.approved_by,
        source=call.source,
        effects=call.effects,
        reversible=call.reversible,
        edges=call.edges,
        host=call.host,
        holds=call.holds,
        hold_ttl=call.hold_ttl,
        consumed_by=call.consumed_by,
        untrusted=call.untrusted,
        labels=call.labels,
        grants=call.grants,
        standing=call.standing,
        cache_key=call.cache_key,
        outdated_by=call.outdated_by,
    )


# --- expiry -----------------------------------------------------------------------------------------------


def lapsed(present: Present) -> Step | None:
    """Grants, approvals and holds whose time is over, as facts."""
    state, now = present.state, present.now
    bodies: list[e.Body] = []
    for grant in (state.grants[name] for name in state.open_grants):
        if grant.expires_at is not None and now >= grant.expires_at:
            bodies.append(e.GrantExpired(grant=grant.id, because="time"))
        elif grant.calls_left is not None and grant.calls_left <= 0:
            bodies.append(e.GrantExpired(grant=grant.id, because="calls"))
    if state.hold_ends and now >= state.hold_ends[0][0] and state.status != "settling":
        bodies += [
            e.HoldLapsed(call=id_)
            for id_ in state.open_holds
            if (ends := state.calls[id_].hold_ends) is not None and now >= ends
        ]
    bodies += [
        e.ApprovalExpired(call=id_) for id_ in state.open_calls if undecided_too_long(state.calls[id_], now)
    ]
    bodies += ended(state, now)
    return Record(tuple(bodies)) if bodies else None


def undecided_too_long(call: CallState, now: datetime) -> bool:
    """Past the deadline of a requirement that nobody satisfied; exactly at the deadline it is still open."""
    approval = call.approval
    if approval is None or approval.decided or call.status is not CallStatus.HELD:
        return False
    missing = approval.missing()
    return any(now > need.expires_at for need in approval.requirements if need.rule in missing)


# --- unknown outcomes ------------------------------------------------------------------------------------


def probe_due(present: Present) -> Step | None:
    """The declared probe of the call of unknown outcome that has been due for the longest time."""
    return next((Reconcile(start) for _, start in _probes(present, present.now)), None)


def next_probe(present: Present) -> datetime | None:
    return next((at for at, _ in _probes(present)), None)


def _probes(present: Present, until: datetime | None = None) -> Iterator[tuple[datetime, e.ExecutionStarted]]:
    """What can be probed, in the order of time."""
    state, tools = present.state, present.policy.tools
    declared = [
        heap
        for tool, heap in state.unsettled.probes.items()
        if tool in tools and _declares_probe(tools[tool])
    ]
    for probe in merge(*(_in_order(state, heap) for heap in declared)):
        if until is not None and probe.at > until:
            return
        call = state.calls[probe.call]
        start = _probe(present, call) if call.probes < len(PROBE_AFTER) else None
        if start is not None:
            yield probe.at, start


def _in_order(state: RunState, heap: Sequence[ProbeTime]) -> Iterator[ProbeTime]:
    """The first stands and is mostly the one that is wanted; the others are put in order only if it is not."""
    yield from heap[:1]
    yield from (probe for probe in sorted(heap)[1:] if probe_stands(state, probe))


def _declares_probe(spec: ToolSpec) -> bool:
    return spec.reconcile is not None and spec.reconcile.probe is not None


def _probe(present: Present, call: CallState) -> e.ExecutionStarted | None:
    spec = present.policy.tools[call.tool]
    assert spec.reconcile is not None
    assert spec.reconcile.probe is not None
    probe = present.policy.tools[spec.reconcile.probe]
    args = host_arguments(probe, spec.reconcile.args, call, present.facts[0])
    if args is None:
        return None
    return host_start(present.state, probe, args, e.HostPurpose(purpose="probe", subject=call.id))


def conclusions(present: Present) -> Step | None:
    """What the Host makes of the answers that its own probes and refreshes got."""
    for id_ in present.state.unjudged:
        answer = present.state.calls[id_]
        assert answer.host is not None
        if answer.host.slice is not None:
            return Record((_refreshed(present, answer.host.slice, answer),))
        assert answer.host.subject is not None
        return Record((_judge_probe(present, present.state.calls[answer.host.subject], answer),))
    return None


def _refreshed(present: Present, name: str, answer: CallState) -> e.Body:
    """An equal value renews the age and keeps the version."""
    held = present.state.state.get(name)
    fields = present.policy.state[name].fields
    value = {key: item for key, item in answer.fields.items() if key in fields}
    version = 1 if held is None else held.version if held.value == value else held.version + 1
    return e.StateUpdated(slice=name, value=value, version=version, by=f"refresh {answer.tool}")


def _judge_probe(present: Present, call: CallState, answer: CallState) -> e.Body:
    """Confirmed, not executed, or still unknown and when to ask again."""
    spec, now = present.policy.tools[call.tool], present.now
    declared = spec.reconcile
    assert declared is not None
    facts = for_call(present.facts[0], tool_facts(spec), call.args or {}, call.id)
    if answer.receipt is not None and answer.receipt.outcome is Outcome.CONFIRMED:
        facts.result = answer.fields
        if declared.confirms is not None and declared.confirms.test(facts) is True:
            return _settled(call, Outcome.CONFIRMED, "the probe found its effect")
        absent = declared.refutes is not None and declared.refutes.test(facts) is True
        if absent and now < _cannot_arrive_after(spec, call):
            return _tried(call, answer, _cannot_arrive_after(spec, call))
        if absent and present.at_work(call.id):
            return _tried(call, answer, now + _WHILE_AT_WORK)
        if absent:
            return _settled(call, Outcome.NOT_EXECUTED, "the probe shows that it did not happen")
    later = PROBE_AFTER[call.probes] if call.probes < len(PROBE_AFTER) else None
    return _tried(call, answer, None if later is None else now + timedelta(seconds=later))


def _cannot_arrive_after(spec: ToolSpec, call: CallState) -> datetime:
    """Absence proves nothing while the request may be on its way, or its abandoned handler still at work."""
    assert call.sent_at is not None
    return call.sent_at + 2 * spec.timeout


def _tried(call: CallState, answer: CallState, next_at: datetime | None) -> e.Body:
    return e.ReconcileTried(call=call.id, probe=answer.id, attempt=call.probes, next_at=next_at)


def _settled(call: CallState, outcome: Outcome, detail: str) -> e.Body:
    return e.ReceiptRecorded(call=call.id, tool=call.tool, outcome=outcome, settled_by="probe", detail=detail)
