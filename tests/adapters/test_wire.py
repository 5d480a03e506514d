"""The projection of neutral messages to provider wires, against strict validators."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.adapters.token_counter import EstimateCounter
from engine.adapters.wire.anthropic import to_anthropic
from engine.adapters.wire.ids import wire_id
from engine.adapters.wire.names import ToolNames, wire_name
from engine.adapters.wire.parts import opaque
from engine.adapters.wire.profile import profile_of
from engine.adapters.wire.projection import openai_tools, to_openai
from engine.adapters.wire.strict import validate_anthropic, validate_openai
from engine.domain.ids import CallId
from engine.domain.messages import (
    AssistantTurn,
    CallResult,
    HostBlock,
    Instructions,
    Message,
    ShownCall,
    UserInput,
)
from tests.adapters.build import STOCK

CLAUDE = "anthropic/claude-sonnet-4-5"
THINKING = {"type": "thinking", "thinking": " odd \n white space, é ", "signature": "sig=="}
PARTS = opaque(CLAUDE, [THINKING], "", [None, {"thought_signature": "abc"}])


def history(**turn: Any) -> list[Message]:
    calls = (ShownCall(CallId(1, 1), "get_stock", {"a": 1}), ShownCall(CallId(1, 2), "files.read/all", {}))
    return [
        Instructions("You look things up."),
        UserInput("  How many?\n"),
        AssistantTurn(1, "claude", "I look.", calls=calls, **turn),
        CallResult(CallId(1, 1), "get_stock", "confirmed", '{"qty":4}'),
        CallResult(CallId(1, 2), "files.read/all", "rejected", "the tool is not offered", is_error=True),
        HostBlock("budget: 3 turns left"),
        UserInput("And pears?"),
    ]


def project(messages: list[Message], model: str) -> list[dict[str, Any]]:
    return to_openai(messages, model, profile_of(model))


def test_on_the_openai_wire_a_host_block_is_a_system_message_where_it_stands() -> None:
    sent = project(history(), "openai/gpt-4o")
    assert [message["role"] for message in sent] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "system",
        "user",
    ]
    assert sent[5]["content"] == "[host]\nbudget: 3 turns left\n[/host]"
    assert sent[1]["content"] == "  How many?\n"
    assert sent[2]["tool_calls"][0] == {
        "id": "call_1_1",
        "type": "function",
        "function": {"name": "get_stock", "arguments": '{"a":1}'},
    }
    assert sent[4]["content"] == "[error: rejected] the tool is not offered"
    assert validate_openai(sent) == []


@pytest.mark.parametrize(
    "model", [CLAUDE, "mistral/mistral-large-latest", "ollama/llama3", "gemini/gemini-2.5-pro"]
)
def test_elsewhere_a_host_block_joins_the_one_system_part_and_never_the_users_words(model: str) -> None:
    sent = project(history(), model)
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert "[host]\\nbudget: 3 turns left" in json.dumps(sent[0]["content"])
    native = to_anthropic(sent)
    assert validate_anthropic(native.system, native.messages) == []


def test_ids_are_legal_unique_and_the_same_in_every_request_of_a_profile() -> None:
    """HKUDS/nanobot#1293, vercel/ai#5171: ids of one provider were illegal at another."""
    sent = project(history(), "mistral/mistral-large-latest")
    assert validate_openai(sent, nine_ids=True) == []
    assert wire_id(CallId(999_999_999, 999_999), "nine") != wire_id(CallId(999_999_999, 999_998), "nine")
    assert re.fullmatch("[0-9A-Za-z]{9}", wire_id(CallId(999_999_999, 999_999), "nine"))
    assert len(wire_id(CallId(999_999_999, 999_999), "plain")) <= 40


@given(st.lists(st.text(max_size=80), unique=True, max_size=12))
def test_tool_names_map_both_ways_without_collisions(names: list[str]) -> None:
    wire = [wire_name(name) for name in names]
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in wire)
    assert len(set(wire)) == len(names)
    back = ToolNames(names)
    assert [back.host_name(name) for name in wire] == names


def test_a_name_that_looks_mapped_is_mapped_itself() -> None:
    mapped = wire_name("files.read")
    assert wire_name("get_stock") == "get_stock"
    assert wire_name(mapped) != mapped
    assert ToolNames(["files.read", mapped]).host_name(mapped) == "files.read"


def test_a_name_that_the_contract_does_not_have_stays_as_the_model_wrote_it() -> None:
    assert ToolNames(["get_stock"]).host_name(" Get_Stock") == " Get_Stock"


def test_opaque_parts_go_back_verbatim_to_the_same_model_and_to_no_other() -> None:
    """openclaw/openclaw#94228: signed reasoning that came back altered was refused for ever."""
    same = project(history(parts=PARTS), CLAUDE)
    assert same[2]["thinking_blocks"] == [THINKING]
    assert same[2]["tool_calls"][1]["provider_specific_fields"] == {"thought_signature": "abc"}
    other = project(history(parts=PARTS), "anthropic/claude-opus-4-1")
    assert "thinking" not in json.dumps(other)
    assert "thought_signature" not in json.dumps(other)
    assert "thinking" not in json.dumps(project(history(parts=({"type": "thinking"},)), CLAUDE))


def test_parts_that_cannot_be_stored_byte_for_byte_are_left_out() -> None:
    assert opaque(CLAUDE, [{"thinking": "x\ud800"}, THINKING], "same text", []) == (
        {"model": CLAUDE, "field": "thinking_blocks", "value": THINKING},
    )


def test_cache_marks_are_on_instructions_last_tool_and_last_message_for_anthropic_only() -> None:
    sent = project(history(), CLAUDE)
    assert [block.get("cache_control") for block in sent[0]["content"]] == [{"type": "ephemeral"}, None]
    assert [place for place, message in enumerate(sent) if "cache_control" in message] == [len(sent) - 1]
    assert "cache_control" in openai_tools([STOCK, STOCK], profile_of(CLAUDE))[1]
    assert "cache_control" not in json.dumps(project(history(), "openai/gpt-4o"))


def test_an_unchanged_history_is_a_prefix_of_the_next_request() -> None:
    model = "openai/gpt-4o"
    longer = project([*history(), AssistantTurn(2, "m", "Four."), UserInput("Thanks")], model)
    before = project(history(), model)
    assert longer[: len(before)] == before


texts = st.one_of(st.just(""), st.just(" \n"), st.text(st.characters(codec="utf-8"), max_size=12))


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    made: list[Message] = [Instructions(draw(texts))] if draw(st.booleans()) else []
    for turn in range(1, draw(st.integers(1, 4)) + 1):
        made += [UserInput(draw(texts)) for _ in range(draw(st.integers(0, 2)))]
        made += [HostBlock("note " + draw(texts)) for _ in range(draw(st.integers(0, 1)))]
        calls = tuple(
            ShownCall(
                CallId(turn, ordinal),
                draw(st.text(max_size=70)),
                draw(st.dictionaries(texts, texts, max_size=2)),
            )
            for ordinal in range(1, draw(st.integers(0, 3)) + 1)
        )
        parts = PARTS if draw(st.booleans()) else ()
        made.append(AssistantTurn(turn, "m", draw(texts), parts, calls))
        made += [
            CallResult(call.id, call.tool, "failed", draw(texts), is_error=draw(st.booleans()))
            for call in calls
        ]
    return made


@settings(max_examples=150, deadline=None)
@given(histories())
def test_a_strict_provider_takes_every_history(messages: list[Message]) -> None:
    """anthropics/claude-code#5989 and its kin: a request that no longer fits bricks the session."""
    assert validate_openai(project(messages, "openai/gpt-4o")) == []
    assert validate_openai(project(messages, "mistral/mistral-large-latest"), nine_ids=True) == []
    native = to_anthropic(project(messages, CLAUDE))
    assert validate_anthropic(native.system, native.messages) == []


def _broken(**change: Any) -> list[dict[str, Any]]:
    sent = project(history(), "openai/gpt-4o")
    sent[2].update(change)
    return sent


def test_the_validators_see_what_a_strict_provider_would_refuse() -> None:
    good = project(history(), "openai/gpt-4o")
    call = good[2]["tool_calls"][0]
    bad: dict[str, list[dict[str, Any]]] = {
        "no result for": good[:3] + good[4:],
        "which no open call has": good[:2] + good[3:],
        "empty content": [{"role": "user", "content": " "}],
        "without content": [{"role": "assistant"}],
        "not JSON": _broken(tool_calls=[{**call, "function": {"name": "x", "arguments": "{"}}]),
        "no object": _broken(tool_calls=[{**call, "function": {"name": "x", "arguments": "[]"}}]),
        "the name": _broken(tool_calls=[{**call, "function": {"name": "a.b", "arguments": "{}"}}]),
        "twice": _broken(tool_calls=[call, call]),
        "role `host`": [{"role": "host", "content": "x"}],
        "UTF-8": [{"role": "user", "content": "\ud800"}],
    }
    for said, messages in bad.items():
        assert any(said in fault for fault in validate_openai(messages)), said
    native = to_anthropic(project(history(parts=PARTS), CLAUDE))
    assert validate_anthropic(native.system, native.messages) == []
    assert validate_anthropic(native.system, native.messages[1:])[0] == "messages[0]: not the user"
    assert any("no result for" in fault for fault in validate_anthropic("s", native.messages[:2]))
    swapped = [
        *native.messages[:2],
        {"role": "user", "content": list(reversed(native.messages[2]["content"]))},
    ]
    assert any("text before a result" in fault for fault in validate_anthropic("s", swapped))


def test_the_estimate_counts_bytes_and_never_less_than_a_token_per_eight_characters() -> None:
    count = EstimateCounter().count
    assert [count(text) for text in ("", "a", "abcdefg", "é" * 7, "x" * 3500)] == [0, 1, 2, 4, 1000]
