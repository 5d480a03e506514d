"""The model port on loopback HTTP: what a provider on a bad day becomes. Slow, because litellm loads for seconds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from engine.adapters.litellm_gateway import LitellmGateway
from engine.adapters.litellm_prices import Price
from engine.adapters.wire.strict import validate_anthropic, validate_openai
from engine.domain.events import Usage
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
from engine.domain.policy import ModelUse
from engine.ports import AttemptFailed, ModelResponse, ProposedCall
from tests.adapters.build import request
from tests.adapters.provider_server import Answer, Provider, call, call_delta, chat, chunk, provider, stream
from tests.adapters.test_wire import history

pytestmark = [
    pytest.mark.slow,
    # litellm and its HTTP client leave sockets and background tasks to the garbage collector
    pytest.mark.filterwarnings("default"),
]
GPT = "openai/gpt-4o"
KEY = "sk-canary-0123456789"


@pytest.fixture(autouse=True)
def _no_real_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def gateway(at: Provider, path: str = "/v1", **more: Any) -> LitellmGateway:
    return LitellmGateway(options={"api_base": at.url + path, "api_key": KEY}, **more)


async def ask(
    answer: Answer, *, streamed: bool = False, model: str = GPT, path: str = "/v1", **use: Any
) -> ModelResponse:
    """One attempt; whatever comes of it, the provider was asked exactly once."""
    with provider(answer) as at:
        try:
            listen = (lambda text: None) if streamed else None
            return await gateway(at, path).propose(request(model=model, **use), listen)
        finally:
            assert len(at.requests) == 1


async def failure(answer: Answer, **how: Any) -> AttemptFailed:
    with pytest.raises(AttemptFailed) as failed:
        await ask(answer, **how)
    assert KEY not in failed.value.message
    return failed.value


async def test_a_whole_response_keeps_arguments_raw_and_brings_usage_cost_and_request_id() -> None:
    raw = [
        '{"a":1}',
        "",
        "   ",
        "null",
        '"x"',
        "{'a':1}",
        '{"a":1} trailing',
        '{"a":1}{"a":2}',
        '{"t":"\\ud800"}',
    ]
    response = await ask(chat(*(call(text, call_id="same") for text in raw), text="I look."))
    assert [proposed.arguments for proposed in response.calls] == raw
    assert {proposed.provider_id for proposed in response.calls} == {"same"}
    assert (response.text, response.finish, response.model) == ("I look.", "tool_calls", "gpt-4o-2024-08-06")
    assert response.usage == Usage(input_tokens=12, output_tokens=5)
    assert response.cost_usd == Decimal("0.00008")
    assert response.request_id == "req-7"


async def test_null_arguments_names_and_ids_are_data() -> None:
    response = await ask(chat(call(None, call_id=None), call("{}", name=None)))  # type: ignore[arg-type]  # malformed on purpose
    assert response.calls[0].arguments == ""
    assert response.calls[1].tool == ""


@pytest.mark.parametrize(
    ("finish", "message", "expected"),
    [
        ("stop", {"text": "hi"}, "stop"),
        ("stop", {"text": ""}, "stop"),
        ("length", {"text": "hi"}, "length"),
        ("content_filter", {"text": ""}, "filter"),
        ("stop", {"refusal": "I will not."}, "refusal"),
    ],
)
async def test_finish_reasons_are_normalised(finish: str, message: dict[str, Any], expected: str) -> None:
    assert (await ask(chat(finish=finish, **message))).finish == expected


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_length_cut_is_closed_and_keeps_the_half_call_as_it_came(streamed: bool) -> None:
    """ahwurm/localharness#77: the half call was repaired and run."""
    half = '{"path":"x","body":"abc'
    whole = chat(call(half), finish="length")
    pieces = stream(chunk(call_delta(0, half, "get_stock", "a")), chunk({}, "length"))
    response = await ask(pieces if streamed else whole, streamed=streamed)
    assert response.finish == "length"
    assert [proposed.arguments for proposed in response.calls] == [half]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "bad_request"), (401, "auth"), (402, "auth"), (403, "auth"), (404, "bad_request"),
        (408, "timeout"), (413, "context_too_long"), (422, "bad_request"), (429, "rate_limited"),
        (500, "unavailable"), (502, "unavailable"), (503, "unavailable"), (504, "timeout"), (529, "unavailable"),
    ],
)  # fmt: skip
async def test_errors_are_classed_by_status_and_asked_once(status: int, error: str, streamed: bool) -> None:
    body = f'{{"error": {{"message": "nope {KEY}", "type": "t"}}}}'
    failed = await failure(Answer(body, status=status, headers={"retry-after": "7"}), streamed=streamed)
    assert failed.error == error
    assert failed.retry_after == 7.0


async def test_retry_after_may_be_milliseconds_a_date_or_nonsense() -> None:
    for headers, expected in (
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after-ms": "inf"}, None),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "Wed, 21 Oct 99999999999999999999 07:28:00 GMT"}, None),
    ):
        failed = await failure(Answer("{}", status=429, headers=headers))
        assert failed.retry_after == expected


def said(message: dict[str, Any] | None = None, **replaced: Any) -> Answer:
    """A whole response with parts of it replaced by what no provider should send."""
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": "hi", **(message or {})},
    }
    body = {
        "id": "x", "object": "chat.completion", "created": 1, "model": "gpt-4o", "choices": [choice],
        "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17},
    }  # fmt: skip
    return Answer(json.dumps({**body, **replaced}))


async def test_names_and_ids_of_another_type_are_data() -> None:
    numbered = {"id": 5, "type": "function", "function": {"name": "get_stock", "arguments": "{}"}}
    response = await ask(said({"tool_calls": [numbered]}, id=7, model="gpt-4o\ud800"))
    assert (response.calls[0].provider_id, response.request_id) == ("5", "7")
    assert response.model == "gpt-4o\ufffd"


@pytest.mark.parametrize("tokens", [{"prompt_tokens": -1_000_000}, {"completion_tokens": -5}])
async def test_usage_below_zero_is_no_usage_and_gives_nothing_back(tokens: dict[str, int]) -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17, **tokens}
    response = await ask(said(usage=usage))
    assert response.usage.estimated
    assert response.cost_usd is not None
    assert response.cost_usd > 0


async def test_more_cached_tokens_than_there_were_are_not_counted() -> None:
    details = {"cached_tokens": 1_000_000}
    usage = {
        "prompt_tokens": 12,
        "completion_tokens": 5,
        "total_tokens": 17,
        "prompt_tokens_details": details,
    }
    assert (await ask(said(usage=usage))).usage == Usage(input_tokens=12, output_tokens=5, cached_tokens=12)


@pytest.mark.parametrize(
    "answer",
    [
        said({"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "x", "input": "y"}}]}),
        said(model=7.5, usage={"prompt_tokens": 10**40, "completion_tokens": 1, "total_tokens": 1}),
    ],
    ids=["a call that is no function", "a count beyond reason"],
)
async def test_a_response_of_another_shape_is_a_failed_attempt_that_may_be_repeated(answer: Answer) -> None:
    failed = await failure(answer)
    assert (failed.error, failed.retryable) == ("invalid_response", True)


async def test_a_context_that_is_too_long_is_its_own_class() -> None:
    body = '{"error": {"message": "This model\'s maximum context length is 10", "code": "context_length_exceeded"}}'
    assert (await failure(Answer(body, status=400))).error == "context_too_long"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html>hi</html>",
        '{"a":',
        "[]",
        '{"choices": null}',
        '{"choices": []}',
        '{"choices": [{"message": null}]}',
    ],
)
async def test_a_body_that_is_no_response_is_a_failed_attempt_that_may_be_repeated(body: str) -> None:
    failed = await failure(Answer(body))
    assert failed.retryable, failed.message


async def test_a_body_cut_on_its_way_is_a_failed_attempt() -> None:
    assert (await failure(Answer('{"id":', cut=True))).error == "unavailable"


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_provider_that_does_not_answer_times_out(streamed: bool) -> None:
    late = Answer("{}", delay=5)
    assert (await failure(late, streamed=streamed, timeout=timedelta(seconds=0.3))).error == "timeout"


async def test_a_provider_that_is_not_there_is_unavailable() -> None:
    nowhere = LitellmGateway(options={"api_base": "http://127.0.0.1:9/v1", "api_key": KEY})
    with pytest.raises(AttemptFailed) as failed:
        await nowhere.propose(request(model=GPT))
    assert failed.value.error == "unavailable"


async def test_a_stream_is_heard_as_it_comes_and_closed_at_its_end() -> None:
    heard: list[str] = []
    answer = stream(
        chunk({"role": "assistant", "content": "I "}),
        chunk({"content": "look."}),
        chunk(call_delta(0, "", "get_stock", "a")),
        chunk(call_delta(0, '{"a":')),
        chunk(call_delta(0, "1}")),
        chunk({}, "tool_calls"),
    )
    with provider(answer) as at:
        response = await gateway(at).propose(request(model=GPT), heard.append)
        assert at.requests[0]["stream_options"] == {"include_usage": True}
    assert heard == ["I ", "look."]
    assert response.calls == (ProposedCall("get_stock", '{"a":1}', "a"),)
    assert response.usage == Usage(input_tokens=12, output_tokens=5)
    assert response.cost_usd == Decimal("0.00008")


@pytest.mark.parametrize(
    "deltas",
    [
        [call_delta(0, '{"p":1}', "g", "a"), call_delta(0, '{"p":2}', "g", "b")],
        [call_delta(0, '{"p"', "g", "a"), call_delta(0, '{"p":2', "g", "b"), call_delta(0, ":1}", None, "a"),
         call_delta(0, "}", None, "b")],
        [call_delta(0, '{"p"', "g", "a"), call_delta(1, '{"p":2', "g", "b"), call_delta(0, ":1}"), call_delta(1, "}")],
        [call_delta(0, '{"p":1}', "g"), call_delta(1, '{"p":2}', "g")],
    ],
)  # fmt: skip
async def test_streamed_calls_do_not_melt_into_one(deltas: list[dict[str, Any]]) -> None:
    """BerriAI/litellm#33678: every streamed call had index 0."""
    response = await ask(stream(*map(chunk, deltas), chunk({}, "tool_calls")), streamed=True)
    assert [(one.tool, one.arguments) for one in response.calls] == [("g", '{"p":1}'), ("g", '{"p":2}')]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize(
    "chunks",
    [
        [],
        [chunk({"content": "he"})],
        [chunk({"content": "he"}), chunk(call_delta(0, None, "get_st", "a"))],
        [chunk(call_delta(0, '{"p":', "get_stock", "a"))],
        [chunk(call_delta(0, '{"p":1}', "get_stock", "a"))],
    ],
)
async def test_a_stream_without_its_end_is_never_a_response(
    chunks: list[dict[str, Any]], done: bool, cut: bool
) -> None:
    """vercel/ai#10638: an aborted stream was saved as a finished message."""
    failed = await failure(stream(*chunks, done=done, cut=cut, usage=False), streamed=True)
    assert failed.retryable
    assert failed.error in ("cut", "unavailable")


async def test_a_stream_that_ends_after_its_finish_reason_is_closed() -> None:
    answer = stream(chunk(call_delta(0, '{"p":1}', "g", "a")), chunk({}, "tool_calls"), done=False)
    assert (await ask(answer, streamed=True)).calls == (ProposedCall("g", '{"p":1}', "a"),)


@pytest.mark.parametrize("streamed", [False, True])
async def test_usage_that_the_provider_did_not_give_is_an_estimate(streamed: bool) -> None:
    pieces = stream(chunk({"content": "hello"}), chunk({}, "stop"), usage=False)
    answer = pieces if streamed else chat(text="hello", finish="stop", usage=None)
    response = await ask(answer, streamed=streamed)
    assert response.usage.estimated
    assert response.usage.input_tokens > 0


@pytest.mark.parametrize("streamed", [False, True])
async def test_tools_that_the_provider_ran_itself_are_refused(streamed: bool) -> None:
    noted = [
        {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1}}
    ]
    whole = chat(text="x", finish="stop", annotations=noted)
    pieces = stream(chunk({"content": "x", "annotations": noted}), chunk({}, "stop"))
    failed = await failure(pieces if streamed else whole, streamed=streamed)
    assert failed.error == "invalid_response"
    assert failed.usage == Usage(input_tokens=12, output_tokens=5)


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        (GPT, "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-pro", "GEMINI_API_KEY"),
    ],
)
async def test_a_missing_key_is_one_line_that_names_the_variable(
    model: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(AttemptFailed) as failed:
        await LitellmGateway().propose(request(model=model))
    assert failed.value.error == "auth"
    assert variable in failed.value.message
    assert variable in failed.value.remedy
    assert "\n" not in failed.value.message


async def test_a_model_that_no_provider_has_is_a_bad_request() -> None:
    with pytest.raises(AttemptFailed) as failed:
        await LitellmGateway().propose(request(model="nosuch/model"))
    assert failed.value.error == "bad_request"


def test_an_unpriced_model_has_no_price_rather_than_a_price_of_zero() -> None:
    """BerriAI/litellm#25874: a model missing from the map passed as free."""
    own = {"openai/house": Price(Decimal("2"), Decimal("10"))}
    prices = LitellmGateway(prices=own)
    assert prices.price(ModelUse(GPT), 1000, 100) == Decimal("0.0035")
    assert prices.price(ModelUse("openai/house"), 1_000_000, 100_000) == Decimal(3)
    assert prices.price(ModelUse("openai/nobody-knows"), 1000, 100) is None
    assert prices.price(ModelUse("nosuch/model"), 1000, 100) is None


async def test_a_response_of_an_unpriced_model_costs_nothing_known() -> None:
    response = await ask(chat(text="x", finish="stop", model="house-1"), model="openai/house")
    assert response.cost_usd is None


async def test_the_request_is_a_valid_history_with_mapped_names_and_no_retries() -> None:
    with provider(chat(call("{}", name="get_stock"))) as at:
        asked = request(*history(), model=GPT, temperature=Decimal("0.5"), max_output_tokens=77)
        await gateway(at).propose(asked)
    sent = at.requests[0]
    assert validate_openai(sent["messages"]) == []
    assert (sent["temperature"], sent["max_tokens"], sent["tool_choice"]) == (0.5, 77, "auto")
    assert sent["tools"][0]["function"]["name"] == "get_stock"


def test_one_gateway_serves_one_event_loop_after_another() -> None:
    with provider(chat(text="x", finish="stop")) as at:
        port = gateway(at)
        for _ in range(3):
            assert asyncio.run(port.propose(request(model=GPT))).text == "x"


# --- the Anthropic wire -----------------------------------------------------------------------------------

CLAUDE = "anthropic/claude-sonnet-4-5"
THINKING = {"type": "thinking", "thinking": " odd \n é", "signature": "sig=="}


def anthropic(*content: dict[str, Any], stop: str = "tool_use") -> Answer:
    whole = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
        "content": list(content), "stop_reason": stop, "usage": {"input_tokens": 12, "output_tokens": 5},
    }  # fmt: skip
    return Answer(json.dumps(whole), headers={"request-id": "req-9"})


def anthropic_stream(*content: dict[str, Any], stop: str | None = "tool_use") -> Answer:
    start: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant",
             "model": "claude-sonnet-4-5-20250929", "content": [],
             "stop_reason": None, "usage": {"input_tokens": 12, "output_tokens": 1}}  # fmt: skip
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(content):
        events += list(_block_events(index, block))
    if stop is not None:
        delta = {"stop_reason": stop, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}})
        events.append({"type": "message_stop"})
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Answer(text, type="text/event-stream")


def _block_events(index: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = block["type"]
    empty: dict[str, dict[str, Any]] = {
        "text": {"text": ""},
        "tool_use": {"input": {}},
        "thinking": {"thinking": "", "signature": ""},
    }
    yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty.get(kind, {})}}
    deltas: list[dict[str, Any]] = []
    if kind == "text":
        deltas = [{"type": "text_delta", "text": block["text"]}]
    elif kind == "tool_use":
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    elif kind == "thinking":
        half = len(block["thinking"]) // 2
        deltas = [{"type": "thinking_delta", "thinking": block["thinking"][:half]},
                  {"type": "thinking_delta", "thinking": block["thinking"][half:]},
                  {"type": "signature_delta", "signature": block["signature"]}]  # fmt: skip
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


USES = [
    {"type": "tool_use", "id": "toolu_1", "name": "get_stock", "input": {"a": 1}},
    {"type": "tool_use", "id": "toolu_2", "name": "get_stock", "input": {}},
]


@pytest.mark.parametrize("streamed", [False, True])
async def test_anthropic_reasoning_comes_back_byte_for_byte_with_parallel_calls(streamed: bool) -> None:
    made = anthropic_stream if streamed else anthropic
    answer = made(THINKING, {"type": "text", "text": "I look."}, *USES)
    response = await ask(answer, streamed=streamed, model=CLAUDE, path="")
    assert response.parts == ({"model": CLAUDE, "field": "thinking_blocks", "value": THINKING},)
    assert [json.loads(one.arguments or "{}") for one in response.calls] == [{"a": 1}, {}]
    assert (response.text, response.finish) == ("I look.", "tool_calls")
    assert (response.usage.input_tokens, response.usage.output_tokens) == (12, 5)
    assert response.cost_usd == Decimal("0.000111")


@pytest.mark.parametrize("streamed", [False, True])
async def test_anthropic_server_tools_are_refused(streamed: bool) -> None:
    made = anthropic_stream if streamed else anthropic
    answer = made(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "found"},
        stop="end_turn",
    )
    failed = await failure(answer, streamed=streamed, model=CLAUDE, path="")
    assert failed.error == "invalid_response"


async def test_an_anthropic_stream_without_its_end_is_never_a_response() -> None:
    failed = await failure(anthropic_stream(*USES, stop=None), streamed=True, model=CLAUDE, path="")
    assert failed.error == "cut"


@pytest.mark.parametrize(
    ("stop", "finish"), [("end_turn", "stop"), ("max_tokens", "length"), ("refusal", "refusal")]
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_anthropic_stop_reasons_are_normalised(stop: str, finish: str, streamed: bool) -> None:
    made = anthropic_stream if streamed else anthropic
    answer = made({"type": "text", "text": "x"}, stop=stop)
    assert (await ask(answer, streamed=streamed, model=CLAUDE, path="")).finish == finish


async def test_what_litellm_sends_to_anthropic_is_a_valid_history_after_an_unreadable_call() -> None:
    """An earlier call whose arguments were no JSON made the next Anthropic request fail before it was sent."""
    parts: tuple[Any, ...] = ({"model": CLAUDE, "field": "thinking_blocks", "value": THINKING},)
    shown: list[Message] = [
        Instructions("You look things up."),
        UserInput("How many?"),
        AssistantTurn(1, CLAUDE, "", parts, (ShownCall(CallId(1, 1), "get_stock", {"_unparsed": "{'a'"}),)),
        CallResult(CallId(1, 1), "get_stock", "rejected", "arguments are not JSON", is_error=True),
        HostBlock("budget: 3 turns left"),
    ]
    with provider(anthropic({"type": "text", "text": "x"}, stop="end_turn")) as at:
        await gateway(at, "").propose(request(*shown, model=CLAUDE))
    sent = at.requests[0]
    assert validate_anthropic(sent["system"], sent["messages"]) == []
    blocks = [block["type"] for block in sent["messages"][1]["content"]]
    assert blocks == ["tool_use"]  # the Host changed the call: the signed reasoning beside it is left out
    assert [block["text"] for block in sent["system"]] == [
        "You look things up.",
        "[host]\nbudget: 3 turns left\n[/host]",
    ]
    assert sent["system"][0]["cache_control"] == sent["tools"][-1]["cache_control"] == {"type": "ephemeral"}
    assert sent["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
