"""Behaviour of the scripted model: what it plays, what it can read, how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from decimal import Decimal

import pytest

from engine.adapters.scripted_gateway import ScriptedGateway
from engine.domain.errors import SourceError
from engine.domain.events import Usage
from engine.domain.ids import CallId
from engine.domain.messages import AssistantTurn, Message, ShownCall, UserInput
from engine.ports import AttemptFailed, ModelResponse, ProposedCall
from tests.adapters.build import request, result

SCRIPT = """\
agentctl: script/v1
turns:
  - text: I look.
    calls:
      - tool: get_stock
        args: {item: apples, limit: 3, deep: {list: [1, "<< inputs[0] >>"]}}
      - tool: get_stock
        arguments: '{"item": '
        id: a
  - calls:
      - tool: order
        args:
          count: "<< 10 - results.get_stock.qty >>"
          why: 'have << results.get_stock.qty >> of << last("get_stock").item >>'
      - tool: publish_note
        args:
          note: 'See [<< handle("stock", "apples") >>] and [<< evidence[0].handle >>].'
          all: "<< all_results | map(attribute='tool') | list >>"
  - fail: {error: rate_limited, message: slow down, retry_after: 2}
  - text: done
    finish: length
"""
SHOWN: tuple[Message, ...] = (
    UserInput("How many?"),
    AssistantTurn(
        1, "m", "", (), (ShownCall(CallId(1, 1), "get_stock", {}), ShownCall(CallId(1, 2), "get_stock", {}))
    ),
    result(1, 1, "get_stock", {"qty": 4, "item": "pears"}, ("E1", "stock", "pears")),
    result(1, 2, "get_stock", {"qty": 7, "item": "apples"}, ("E2", "stock", "apples")),
)


def script(text: str) -> ScriptedGateway:
    return ScriptedGateway.from_text("demo.script.yaml", text)


async def test_a_turn_proposes_its_calls_in_order_with_args_or_raw_text() -> None:
    heard: list[str] = []
    response = await script(SCRIPT).propose(request(), heard.append)
    assert (response.text, response.finish, heard) == ("I look.", "tool_calls", ["I look."])
    assert json.loads(response.calls[0].arguments) == {
        "item": "apples",
        "limit": 3,
        "deep": {"list": [1, "How many?"]},
    }
    assert response.calls[1] == ProposedCall("get_stock", '{"item": ', "a")
    assert response.cost_usd == Decimal(0)


async def test_a_script_reads_values_and_evidence_of_what_really_happened() -> None:
    response = await script(SCRIPT).propose(request(*SHOWN, turn=2))
    assert json.loads(response.calls[0].arguments) == {"count": 3, "why": "have 7 of apples"}
    assert json.loads(response.calls[1].arguments) == {
        "note": "See [E2] and [E1].",
        "all": ["get_stock", "get_stock"],
    }


async def test_inputs_are_every_text_of_the_user_replies_to_questions_too() -> None:
    shown = (*SHOWN, result(2, 1, "ask_user", "the red ones"), UserInput("and quickly"))
    response = await ScriptedGateway.from_turns([{"text": "<< inputs | join(', ') >>"}]).propose(
        request(*shown)
    )
    assert response.text == "How many?, the red ones, and quickly"


async def test_the_turn_is_read_off_the_request_so_a_resumed_run_goes_on_in_the_right_place() -> None:
    assert (await script(SCRIPT).propose(request(*SHOWN, turn=3, attempt=2))).text == "done"


async def test_a_scripted_failure_is_the_first_attempt_of_the_turn_after_it() -> None:
    gateway = script(SCRIPT)
    with pytest.raises(AttemptFailed) as failed:
        await gateway.propose(request(turn=3, attempt=1))
    assert (failed.value.error, failed.value.message, failed.value.retry_after) == (
        "rate_limited",
        "slow down",
        2.0,
    )
    assert failed.value.usage == Usage()
    assert (await gateway.propose(request(turn=3, attempt=2))).finish == "length"


async def test_a_script_that_is_over_proposes_nothing_and_is_closed() -> None:
    response = await script(SCRIPT).propose(request(turn=9))
    assert (response.text, response.calls, response.finish) == ("", (), "stop")


async def test_a_template_that_reads_what_is_not_there_fails_the_attempt_and_names_its_place() -> None:
    with pytest.raises(AttemptFailed) as failed:
        await script(SCRIPT).propose(request(turn=2))
    assert failed.value.error == "bad_request"
    assert not failed.value.retryable
    assert "demo.script.yaml:13:" in failed.value.message
    assert "turns[1].calls[0].args.count" in failed.value.message


async def test_templates_are_sandboxed() -> None:
    turn = {"text": "<< inputs.__class__.__mro__ >>"}
    with pytest.raises(AttemptFailed):
        await ScriptedGateway.from_turns([turn]).propose(request())


async def test_turns_may_be_functions_responses_or_mappings() -> None:
    ready = ModelResponse(model="m", text="two")
    gateway = ScriptedGateway.from_turns(
        [
            lambda asked: ModelResponse(model="m", text=f"turn {asked.turn}"),
            ready,
            {"fail": {"error": "cut"}},
            {"text": "x"},
        ]
    )
    assert (await gateway.propose(request(turn=1))).text == "turn 1"
    assert (await gateway.propose(request(turn=2))) is ready
    with pytest.raises(AttemptFailed):
        await gateway.propose(request(turn=3))
    assert (await gateway.propose(request(turn=3, attempt=2))).text == "x"


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", "demo.script.yaml:1:1", "no document"),
        ("agentctl: script/v2\nturns: []\n", "demo.script.yaml:1:11", "script/v1"),
        ("agentctl: script/v1\n", "demo.script.yaml:1:1", "turns"),
        ("agentctl: script/v1\nturns:\n  - txt: x\n", "demo.script.yaml:3:5", "`txt`"),
        (
            "agentctl: script/v1\nturns:\n  - calls:\n      - args: {}\n",
            "demo.script.yaml:4:9",
            "turns[0].calls[0]",
        ),
        (
            "agentctl: script/v1\nturns:\n  - calls:\n      - tool: a\n        args: 3\n",
            "demo.script.yaml:5:15",
            "args",
        ),
        ("agentctl: script/v1\nturns:\n  - finish: halt\n", "demo.script.yaml:3:13", "finish"),
        ("agentctl: script/v1\nturns:\n  - text: '<< 1 + >>'\n", "demo.script.yaml:3:11", "turns[0].text"),
        ("agentctl: script/v1\nturns:\n  - text: 3\n", "demo.script.yaml:3:11", "not text"),
        ("agentctl: script/v1\nturns:\n  - fail: {error: nope}\n", "demo.script.yaml:3:19", "fail.error"),
        ("agentctl: script/v1\nturns: [\n", "demo.script.yaml:", ""),
    ],
)
def test_a_malformed_script_is_one_error_with_place_field_and_remedy(
    text: str, place: str, said: str
) -> None:
    with pytest.raises(SourceError) as error:
        script(text)
    assert error.value.message.startswith(place)
    assert said in error.value.message
    assert error.value.remedy


def test_a_missing_script_is_a_source_error() -> None:
    with pytest.raises(SourceError, match="there is no file"):
        ScriptedGateway.from_file("nowhere/none.script.yaml")


async def test_a_turn_costs_the_same_after_ten_thousand_results() -> None:
    turn = {
        "calls": [
            {"tool": "get_stock", "args": {"n": "<< results.get_stock.qty >>", "e": "<< handle('stock') >>"}}
        ]
    }
    gateway = ScriptedGateway.from_turns([turn] * 10_001)
    shown: list[Message] = [UserInput("x")]
    shown += [result(n, 1, "get_stock", {"qty": n}, (f"E{n}", "stock", str(n))) for n in range(1, 10_001)]
    asked = request(*shown, turn=10_001)
    started = time.perf_counter()
    for _ in range(200):
        response = await gateway.propose(asked)
    assert json.loads(response.calls[0].arguments) == {"n": 10_000, "e": "E10000"}
    assert time.perf_counter() - started < 1.0


def test_scripted_models_and_function_tools_load_no_model_library() -> None:
    code = (
        "import asyncio, sys\n"
        "from engine.adapters.scripted_gateway import ScriptedGateway\n"
        "from engine.adapters.function_tools import FunctionTools\n"
        "from engine.adapters.token_counter import EstimateCounter\n"
        "from tests.adapters.build import dispatch, request, spec\n"
        "gateway = ScriptedGateway.from_turns([{'text': '<< inputs[0] >>'}])\n"
        "asyncio.run(gateway.propose(request()))\n"
        "asyncio.run(FunctionTools({'get_stock': lambda: EstimateCounter().count('x')}).execute(dispatch(spec())))\n"
        "print([name for name in ('litellm', 'anthropic', 'openai', 'sqlalchemy') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
