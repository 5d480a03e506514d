"""Property: whatever happened, the history of any prefix of a log is one that the strictest providers take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.adapters.wire.anthropic import to_anthropic
from engine.adapters.wire.profile import profile_of
from engine.adapters.wire.projection import to_openai
from engine.adapters.wire.strict import validate_anthropic, validate_openai
from engine.domain.messages import CallResult, HostBlock, UserInput
from engine.domain.state import RunState
from engine.lifecycle.context import Conversation
from engine.lifecycle.fold import apply
from engine.ports import ModelResponse, ProposedCall
from engine.runtime.outlook import estimate
from tests.facts.world import POLICY, DeskRun
from tests.runtime.bench import Crash, CrashAt

CALLS = st.sampled_from(
    [
        ("get_price", '{"sku":"tea-assam"}'),
        ("get_rate", ""),
        ("read_mail", '{"mail":"m1"}'),
        ("set_price", '{"sku":"tea-assam","price":5}'),
        ("pay", '{"account":"XX66CLEARING0000099"}'),
        ("pay", '{"account":"XX21ENERGY00004711"}'),
        ("order", "{}"),
        ("ask_user", '{"question":"which?"}'),
        ("publish_note", '{"body":"so [[E1]]"}'),
        ("no such tool!", "{}"),
        ("get_price", "[1, 2"),
        ("send", '{"to":"a@b.org","body":"\\ud83d\\ude42"}'),
        ("finish", "{}"),
    ]
)
TEXTS = st.sampled_from(["", " ", "thinking aloud", "word " * 200, "Zoe\u0308 ﷽"])
PARTS = st.sampled_from([(), ({"model": "anthropic/claude-x", "field": "thinking_blocks",
    "value": {"type": "thinking", "thinking": " t\u00a0", "signature": "s="}},)])  # fmt: skip
INPUTS = st.sampled_from(["please", " ", "x" * 4000, "line\r\n[host]\u200f"])
TURN = st.tuples(TEXTS, PARTS, st.lists(CALLS, max_size=4))
AFTER = st.sampled_from(["", "reply", "approve", "refuse", "update", "source", "crash"])


def response(text: str, parts: Any, calls: list[tuple[str, str]]) -> ModelResponse:
    proposed = tuple(ProposedCall(tool, args, "same:id" * 9) for tool, args in calls)
    return ModelResponse(
        model="m", text=text, parts=parts, calls=proposed, finish="tool_calls" if calls else "stop"
    )


def act(bench: DeskRun, what: str) -> None:
    from engine.domain.errors import AgentctlError
    from tests.runtime.bench import ME

    try:
        if what == "reply":
            bench.reply("and then\tthis")
        elif what == "update":
            bench.update(total=len(bench.log))
        elif what == "source":
            bench.source("prices", "unavailable" if len(bench.log) % 2 else "available")
        elif what in ("approve", "refuse"):
            for call in list(bench.state.open_calls):
                decide = bench.runtime().approve if what == "approve" else bench.runtime().refuse
                decide(bench.run, call, by=ME)
    except AgentctlError:
        return


def check(bench: DeskRun) -> None:
    """Every prefix is projected for two wires and looked through."""
    state = RunState(bench.run)
    for event in bench.log:
        apply(state, event)
        conversation = Conversation(bench.policy, state, lambda stored: stored.value, estimate)
        messages = conversation.sync(state)
        results = [each.id for each in messages if isinstance(each, CallResult)]
        assert len(results) == len(set(results))
        marks = [each.text for each in messages if isinstance(each, HostBlock)]
        for number, (_, text) in enumerate(state.inputs, start=1):
            shown = any(isinstance(each, UserInput) and each.text == text for each in messages)
            assert shown or any(f"user input {number} " in mark.lower() for mark in marks)
        openai = to_openai(messages, "openai/gpt-5", profile_of("openai/gpt-5"))
        assert validate_openai(openai) == [], f"after event {event.seq} {event.kind}"
        claude = to_openai(messages, "anthropic/claude-x", profile_of("anthropic/claude-x"))
        assert validate_anthropic(*to_anthropic(claude)) == [], f"after event {event.seq} {event.kind}"
        for sent in claude:
            for block in sent.get("thinking_blocks", ()):
                assert json.dumps(block, sort_keys=True) == json.dumps(
                    {"type": "thinking", "thinking": " t\u00a0", "signature": "s="}, sort_keys=True
                )


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    turns=st.lists(TURN, min_size=1, max_size=6),
    after=st.lists(AFTER, min_size=6, max_size=6),
    words=INPUTS,
    limit=st.sampled_from([2_600, 4_000, 60_000]),
)
def test_the_history_of_any_prefix_of_any_log_is_valid_on_every_wire(turns, after, words, limit):
    policy = POLICY.replace("max_input_tokens: 60000", f"max_input_tokens: {limit}")
    responses = [response(*turn) for turn in turns]
    bench = DeskRun(*responses, *[response("", (), [("finish", "{}")])] * 20, policy=policy, input=words)
    for what in after:
        if bench.status in ("completed", "failed", "cancelled", "expired"):
            break
        try:
            bench.drive(CrashAt(5) if what == "crash" else None)
        except Crash:
            continue
        act(bench, what)
    check(bench)


@pytest.mark.parametrize("end", ["cancel", "refuse", "budget"])
def test_stops_of_every_kind_leave_a_valid_history(end):
    """anthropics/claude-code#5989 and others: a call without a result right after it."""
    policy = POLICY.replace("turns: 40", "turns: 1") if end == "budget" else POLICY
    pay, price = ("pay", '{"account":"XX66CLEARING0000099"}'), ("get_price", '{"sku":"a"}')
    bench = DeskRun(
        response("t", (), [pay, price, ("get_rate", "{}")]), *[response("", (), [])] * 3, policy=policy
    )
    bench.drive()
    if end == "cancel":
        bench.cancel()
    if end == "refuse":
        act(bench, "refuse")
    bench.drive()
    check(bench)
