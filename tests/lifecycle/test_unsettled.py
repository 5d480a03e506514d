"""What the fold keeps within reach is what a walk over all calls finds, and `decide` picks as such a walk would."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain import events as e
from engine.domain.actors import HOST, Principal
from engine.domain.calls import Outcome
from engine.domain.events import GENESIS, seal
from engine.domain.ids import CallId, RunId
from engine.domain.policy import Kind, Policy
from engine.domain.state import CallState, RunState
from engine.lifecycle import recover
from engine.lifecycle.acts import open_twin
from engine.lifecycle.decide import Decider
from engine.lifecycle.fold import apply
from engine.lifecycle.steps import Compensate, Execute, Reconcile, Record
from engine.policy.compiler import load_policy
from tests.runtime.bench import START

RUN = RunId("r1")
TOOL = """
  {name}:
    kind: write
    handler: "python:x:{name}"
    description: "x"
    params: {{n: {{type: int, min: 0, max: 1000}}, k: {{type: id, required: false}}}}
    effects: [{name}.do]
    idempotency: {{key: [n]}}
    reconcile: {reconcile}
    {more}
"""
FIND = '{probe: find, args: {key: idempotency_key}, confirms: "result.found"}'
UNDO = "reversible: true\n    compensate: {tool: undo, args: {n: args.n}, on: [run_cancelled]}"
TOOLS = (
    "agentctl: tools/v1\nid: t\ntools:"
    + TOOL.format(name="note", reconcile="{manual: x}", more="")
    + TOOL.format(name="pay", reconcile=FIND.replace("idempotency_key", "args.k"), more="")
    + TOOL.format(name="ship", reconcile=FIND, more=UNDO)
    + TOOL.format(
        name="book", reconcile="{manual: x}", more=UNDO + "\n    holds: {ttl: 10m, consumed_by: note.do}"
    )
    + TOOL.format(name="keep", reconcile="{manual: x}", more=UNDO)
    + TOOL.format(name="undo", reconcile="{manual: x}", more="exposed: host\n    retry: same_key").replace(
        '    description: "x"\n', ""
    )
    + """
  find:
    kind: read
    exposed: host
    handler: "python:x:find"
    params: {key: {type: id}}
    result: {found: {type: bool}}
"""
)
POLICY = """
agentctl: policy/v1
id: p
version: 1
owner: me
tool_specs: [t.tools.yaml]
principals: {roles: [u], may_start: [u]}
permissions:
  - id: all
    effect: allow
    roles: [u]
    tools: [note, pay, ship, book, keep]
    unattended: {because: t, max_per_run: 999}
gates: {finish: []}
budgets: {turns: 999, cost_usd: "1.00", wall_time: 1h, calls: {total: 999}}
model: {primary: {id: openai/gpt-5-mini-2025-08-07}}
"""
MODEL_TOOLS = ("note", "pay", "ship", "book", "keep")
SOURCE = "source:-"


@lru_cache(maxsize=1)
def policy() -> Policy:
    return load_policy("p.policy.yaml", {"p.policy.yaml": POLICY, "t.tools.yaml": TOOLS})


class Log:
    """A Run at the hands of a test: each fact is folded as it comes."""

    def __init__(self) -> None:
        self.state = RunState(RUN)
        self.now = START
        self.changed: list[CallId] = []
        self.tried: set[CallId] = set()
        self(
            e.RunStarted(
                engine="", policy="p", policy_version=1, policy_digest="p", bundle="b", model="scripted/x",
                principal=Principal(id="u", roles=("u",)), task={},
            )
        )  # fmt: skip

    def __call__(self, body: e.Body) -> None:
        state = self.state
        apply(state, seal(RUN, state.seq + 1, self.now, HOST, 1, body, state.head or GENESIS))

    def turn(self, tools: list[str]) -> None:
        n = len(self.state.turns) + 1
        proposals = tuple(e.Proposal(ordinal=k, tool=tool, arguments="{}") for k, tool in enumerate(tools, 1))
        self(e.ModelAttemptStarted(turn=n, attempt=1, model="m", contract="c", epoch=0))
        self(e.ModelTurnRecorded(turn=n, attempt=1, model="m", contract="c", epoch=0, proposals=proposals))

    def send(self, call: CallId, tool: str, host: e.HostPurpose | None = None) -> None:
        """Of `pay`, some lack the argument that its probe asks with; of `book`, some never lapse."""
        known, n, holds = self.state.calls.get(call), call.turn % 3, tool == "book"
        args = {"n": n, "k": "x"} if call.turn % 2 == 0 else {"n": n}
        self(
            e.ExecutionStarted(
                call=call, tool=tool, tool_kind=Kind.READ if tool == "find" else Kind.WRITE,
                attempt=(known.attempts if known else 0) + 1, args=args,
                args_digest="d", policy_digest="p", host=host, effects=(f"{tool}.do",),
                idempotency_key=None if tool == "find" else f"{tool}-{n}",
                holds=holds, hold_ttl=600.0 if holds and call.turn % 4 else None,
                consumed_by="note.do" if holds else None,
            )
        )  # fmt: skip

    def answer(self, call: CallId, outcome: str) -> None:
        found = self.state.calls[call]
        if outcome == "confirmed" and found.host is None:
            self.changed.append(call)
        self(e.ReceiptRecorded(call=call, tool=found.tool, outcome=outcome, settled_by="tool"))

    def host(self, tool: str, purpose: Any, subject: CallId, outcome: str) -> None:
        call = CallId(0, self.state.host_calls + 1)
        self.send(call, tool, e.HostPurpose(purpose=purpose, subject=subject))
        _invariants(self)
        self.answer(call, outcome)


ANSWERS = st.sampled_from(["confirmed", "confirmed", "failed", "not_executed", "unknown", "unknown"])
TURN = st.tuples(
    st.just("turn"), st.lists(st.tuples(st.sampled_from(MODEL_TOOLS), ANSWERS), min_size=1, max_size=4)
)
ACTS = st.lists(
    st.one_of(
        TURN,
        TURN,
        TURN,
        st.tuples(st.just("late"), ANSWERS),
        st.tuples(st.just("again"), ANSWERS),
        st.tuples(st.just("probe"), st.integers(0, 3)),
        st.tuples(st.just("undo"), ANSWERS),
        st.tuples(st.just("lapse"), st.none()),
        st.tuples(st.just("wait"), st.integers(0, 700)),
    ),
    max_size=25,
)  # fmt: skip


def _play(log: Log, act: str, what: Any, pick: int) -> None:
    state = log.state
    unknown = [call for call in state.unknown_calls if state.calls[call].host is None]
    match act:
        case "turn":
            log.turn([tool for tool, _ in what])
            for call, (tool, outcome) in zip(state.turns[-1].calls, what, strict=True):
                log.send(call, tool)
                _invariants(log)
                log.answer(call, outcome)
        case "late" if unknown:
            log.answer(unknown[pick % len(unknown)], what)
        case "again" if unknown:
            call = unknown[pick % len(unknown)]
            log.send(call, state.calls[call].tool)
            _invariants(log)
            log.answer(call, what)
        case "probe" if unknown:
            call = unknown[pick % len(unknown)]
            log.host("find", "probe", call, "confirmed")
            later = None if what == 3 else log.now + timedelta(seconds=what * 60)
            log(e.ReconcileTried(call=call, probe=CallId(0, state.host_calls), attempt=1, next_at=later))
        case "undo" if log.changed:
            call = log.changed[pick % len(log.changed)]
            if call not in log.tried:
                log.tried.add(call)
                log.host("undo", "compensation", call, what)
        case "lapse" if state.open_holds:
            log(e.HoldLapsed(call=next(iter(state.open_holds))))
        case "wait":
            log.now += timedelta(seconds=what)


def _invariants(log: Log) -> None:
    """Against a walk over all calls."""
    state = log.state
    unsettled = [
        call
        for call in state.calls.values()
        if (call.id in state.open_calls or call.id in state.unknown_calls) and call.started_at is not None
    ]
    keys: dict[str, set[CallId]] = {}
    changes: dict[str, set[CallId]] = {}
    for call in unsettled:
        if call.idempotency_key is not None:
            keys.setdefault(call.idempotency_key, set()).add(call.id)
        for name in (*call.effects, SOURCE) if call.kind is not Kind.READ else ():
            changes.setdefault(name, set()).add(call.id)
    assert {key: set(calls) for key, calls in state.unsettled.by_key.items()} == keys
    assert {name: set(calls) for name, calls in state.unsettled.by_change.items()} == changes
    for key, calls in keys.items():
        assert open_twin(state, CallId(99, 1), key) in calls
    probed = {
        (call.id, call.probe_at)
        for call in map(state.calls.__getitem__, state.unknown_calls)
        if call.probe_at
    }
    heaps = state.unsettled.probes
    standing = {(p.call, p.at) for heap in heaps.values() for p in heap if _stands(state, p.call, p.at)}
    assert standing == probed
    assert all(_stands(state, heap[0].call, heap[0].at) for heap in heaps.values() if heap)
    wanted = [call for call in dict.fromkeys(log.changed) if call not in log.tried and not _over(state, call)]
    kept = {call: each.place for held in state.to_undo.values() for call, each in held.items()}
    assert sorted(kept, key=kept.__getitem__) == wanted
    undoing = [call for held in state.undoing.values() for call in held]
    hosts = [
        call for call in state.calls.values() if call.host is not None and call.host.purpose == "compensation"
    ]
    assert undoing == [call.id for call in hosts if call.receipt is None or not _final(call.receipt.outcome)]


def _final(outcome: Outcome) -> bool:
    return outcome in (Outcome.CONFIRMED, Outcome.FAILED)


def _stands(state: RunState, call: CallId, at: datetime) -> bool:
    return call in state.unknown_calls and state.calls[call].probe_at == at


def _over(state: RunState, call: CallId) -> bool:
    return state.calls[call].holds and call not in state.open_holds


@settings(max_examples=300, deadline=None)
@given(ACTS, st.lists(st.integers(0, 50), min_size=25, max_size=25))
def test_the_indexes_are_what_a_walk_over_all_calls_finds(acts: list[tuple[str, Any]], picks: list[int]):
    log = Log()
    for (act, what), pick in zip(acts, picks, strict=False):
        _play(log, act, what, pick)
        _invariants(log)


def _due(log: Log) -> Iterator[CallState]:
    for id_ in log.state.unknown_calls:
        call = log.state.calls[id_]
        known = call.tool == "ship" or (call.tool == "pay" and "k" in (call.args or {}))
        if known and call.probe_at is not None and call.probes < 6 and call.probe_at <= log.now:
            yield call


def _undone_next(log: Log) -> CallId | None:
    state = log.state
    for id_ in reversed(dict.fromkeys(log.changed)):
        call = state.calls[id_]
        lapsed = call.hold_ends is not None and call.hold_ends <= log.now
        if id_ in log.tried or call.tool not in ("ship", "book", "keep") or _over(state, id_) or lapsed:
            continue
        return id_
    return None


@settings(max_examples=300, deadline=None)
@given(ACTS, st.lists(st.integers(0, 50), min_size=25, max_size=25), st.integers(0, 700), st.booleans())
def test_what_is_probed_and_undone_next_is_what_a_walk_over_all_calls_finds(
    acts: list[tuple[str, Any]], picks: list[int], later: int, settled: bool
):
    log = Log()
    for (act, what), pick in zip(acts, picks, strict=False):
        _play(log, act, what, pick)
    for call in tuple(log.state.unknown_calls) if settled else ():
        log.answer(call, "failed")
    log(e.SettlingStarted(ending="cancelled", reason="cancel"))
    log.now += timedelta(seconds=later)
    step = Decider([policy()], None, lambda stored: stored.value).next_step(log.state, log.now)  # type: ignore[arg-type]  # asked of nothing
    due = list(_due(log))
    if due:
        assert isinstance(step, Reconcile)
        assert step.start.host is not None
        first = min(call.probe_at for call in due if call.probe_at is not None)
        assert step.start.host.subject in [call.id for call in due if call.probe_at == first]
        return
    lost = [call for call in log.state.unknown_calls if call.turn == 0]
    if lost:
        assert isinstance(step, Execute)
        assert step.starts[0].call == min(lost), "what was to undo something is sent once more"
        return
    wanted = _undone_next(log)
    if wanted is None:
        assert isinstance(step, Record)
        assert isinstance(step.bodies[0], e.RunCancelled)
    else:
        assert isinstance(step, Compensate)
        assert step.start.host is not None
        assert step.start.host.subject == wanted


@pytest.mark.parametrize("many", [5, 200])
def test_a_step_looks_at_one_of_many_effects_that_nobody_settled(many: int, monkeypatch: pytest.MonkeyPatch):
    log = Log()
    for _ in range(many):
        _play(log, "turn", [("ship", "unknown")], 0)
        _play(log, "probe", 2, many - 1)
    log(e.SettlingStarted(ending="cancelled", reason="cancel"))
    asked: list[CallId] = []
    real = recover.host_arguments

    def counted(spec: Any, declared: Any, call: Any, facts: Any) -> Any:
        asked.append(call.id)
        return real(spec, declared, call, facts)

    monkeypatch.setattr(recover, "host_arguments", counted)
    decider = Decider([policy()], None, lambda stored: stored.value)  # type: ignore[arg-type]  # asked of nothing
    assert isinstance(decider.next_step(log.state, log.now), Record | Reconcile)
    log.now += timedelta(hours=1)
    assert isinstance(decider.next_step(log.state, log.now), Reconcile)
    assert len(asked) <= 2


def _step(log: Log) -> Any:
    log(e.SettlingStarted(ending="cancelled", reason="cancel"))
    return Decider([policy()], None, lambda stored: stored.value).next_step(log.state, log.now)  # type: ignore[arg-type]  # asked of nothing


def test_a_hold_that_has_not_lapsed_is_undone_though_an_older_one_has():
    log = Log()
    log.turn(["book"])
    for wait in (300, 400):
        log.send(log.state.turns[-1].calls[0], "book")
        log.answer(log.state.turns[-1].calls[0], "confirmed")
        log.now += timedelta(seconds=wait)
        log.turn(["book"])
    assert _step(log).bodies[0].call == CallId(3, 1), "what never started is closed first"
    log(e.CallFenced(call=CallId(3, 1), tool="book"))
    assert _step(log).start.host.subject == CallId(2, 1)


def test_a_hold_that_never_lapses_is_undone_though_a_newer_one_has_lapsed():
    log = Log()
    for _ in range(3):
        log.turn([])
    for _ in range(2):
        _play(log, "turn", [("book", "confirmed")], 0)
    log.now += timedelta(hours=1)
    assert _step(log).start.host.subject == CallId(4, 1)


def test_a_call_that_cannot_be_probed_hides_none_behind_it_and_none_is_probed_out_of_time():
    log = Log()
    for _ in range(2):
        _play(log, "turn", [("pay", "unknown")], 0)
    assert _step(log).start.host.subject == CallId(2, 1), "1.1 lacks the argument that its probe asks with"
    _play(log, "probe", 3, 1)
    assert isinstance(_step(log).bodies[0], e.RunCancelled)
