"""A registered secret reaches no log, result, error, trace or text, and leaves a visible mark where it stood."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from typing import Any
from urllib.parse import quote

import pytest

from engine.adapters.scripted_gateway import ScriptedGateway
from engine.adapters.secrets import RegisteredSecrets
from engine.domain import events as e
from engine.domain.calls import Failed
from engine.lifecycle.context import Conversation
from engine.ports import AttemptFailed, ModelResponse, ProposedCall
from engine.runtime.secrets_scan import scan
from tests.wire.bench import Bench, policy

CANARY = 'CANARY-93/"x"'
SECRETS = RegisteredSecrets({"crm": CANARY})
FINISH: dict[str, Any] = {"calls": [{"tool": "finish"}]}


def bench(*turns: Any, secrets: RegisteredSecrets | None = SECRETS) -> Bench:
    return Bench(ScriptedGateway.from_turns(turns), policy(), model="scripted/x", secrets=secrets)


def clean(tried: Bench) -> bool:
    assert tried.run is not None
    return CANARY not in tried.log() and scan(tried.store, tried.run, SECRETS) == []


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


@pytest.mark.parametrize(
    "held",
    [
        CANARY,
        quote(CANARY, safe=""),
        b64encode(b"user:" + CANARY.encode()).decode(),
        f"text around {CANARY} it",
    ],
)
def test_arguments_that_contain_a_secret_are_rejected_and_nothing_but_its_name_is_stored(held: str) -> None:
    tried = bench({"calls": [{"tool": "order", "args": {"item": held, "count": 1}}]}, FINISH)
    tried.drive()
    assert clean(tried)
    proposal = tried.bodies(e.ModelTurnRecorded)[0].proposals[0]
    assert (proposal.secret, proposal.arguments) == ("crm", "[secret crm]")
    refusal = tried.bodies(e.CallRejected)[0].refusal
    assert (refusal.code, refusal.message) == ("secret", "the arguments contain the registered secret `crm`")
    assert tried.shop.ledger == []


@pytest.mark.parametrize("twice", [False, True])
def test_an_escape_in_the_raw_arguments_hides_no_secret(twice: bool) -> None:
    inner = f'{{"item":"{escaped(CANARY)}","count":1}}'
    import json

    raw = json.dumps(inner) if twice else inner
    tried = bench({"calls": [{"tool": "order", "arguments": raw}]}, FINISH)
    tried.drive()
    assert clean(tried)
    assert tried.bodies(e.CallRejected)[0].refusal.code == "secret"
    assert escaped(CANARY) not in tried.log()


@pytest.mark.parametrize("broken", ["OBJECT trailing", '{"item":"y",OBJECT', "OBJECT, [1", "'OBJECT'"])
def test_an_escape_in_arguments_that_cannot_be_read_hides_no_secret(broken: str) -> None:
    raw = broken.replace("OBJECT", f'{{"item":"{escaped(CANARY)}"}}')
    tried = bench({"calls": [{"tool": "order", "arguments": raw}]}, FINISH)
    tried.drive()
    assert clean(tried)
    assert tried.bodies(e.CallRejected)[0].refusal.code == "secret"
    assert escaped(CANARY) not in tried.log()


def test_the_model_is_shown_a_mark_and_no_signed_part_beside_it() -> None:
    part = {
        "model": "scripted/x",
        "field": "thinking_blocks",
        "value": {"type": "thinking", "signature": "s"},
    }
    said = ModelResponse("m", calls=(ProposedCall("order", f'{{"item":"{quote(CANARY)}"}}'),), parts=(part,))
    tried = bench(said, FINISH)
    tried.drive()
    assert tried.bodies(e.ModelTurnRecorded)[0].parts == ()
    shown = Conversation(tried.policy, tried.state, lambda stored: stored.value, len).sync(tried.state)
    assert "[secret crm]" in str(shown)


def test_a_secret_in_a_tools_answer_is_masked_before_anything_is_made_of_it() -> None:
    tried = bench({"calls": [{"tool": "get_stock", "args": {"item": "x"}}]}, FINISH)
    tried.shop.answers["get_stock"] = lambda item: {"key": CANARY, "note": [f"key is {CANARY}"], CANARY: 1}
    tried.drive()
    assert clean(tried)
    result = tried.bodies(e.ReceiptRecorded)[0].result
    assert result is not None
    assert result.value == {"key": "[secret crm]", "note": ["key is [secret crm]"], "[secret crm]": 1}


def test_a_secret_in_a_large_answer_is_masked_in_the_blob_as_well() -> None:
    tried = bench({"calls": [{"tool": "get_stock", "args": {"item": "x"}}]}, FINISH)
    tried.shop.answers["get_stock"] = lambda item: {"rows": ["x" * 100] * 200, "key": CANARY}
    assert tried.drive().state.status == "completed"
    assert clean(tried)
    assert "[secret crm]" in tried.log()


def test_what_a_tool_raises_reaches_neither_the_log_nor_the_trace(caplog: pytest.LogCaptureFixture) -> None:
    """cubrid-lab/cubrid-mcp-server#41: driver errors contain user and password."""
    tried = bench(
        {"calls": [{"tool": "get_stock", "args": {"item": "x"}}, {"tool": "list_items"}]},
        FINISH,
    )

    def declared(item: str) -> None:
        raise Failed(f"401 for {CANARY}")

    def undeclared() -> None:
        try:
            raise OSError(f"connect postgres://u:{CANARY}@h/db failed")
        except OSError as cause:
            raise RuntimeError("x" * 3000) from cause

    tried.shop.answers |= {"get_stock": declared, "list_items": undeclared}
    with caplog.at_level(logging.DEBUG):
        tried.drive()
    assert clean(tried)
    said = [receipt.detail for receipt in tried.bodies(e.ReceiptRecorded)]
    assert said == ["401 for [secret crm]", "the tool raised RuntimeError"]
    assert CANARY not in caplog.text
    assert "[secret crm]" in caplog.text


def test_what_people_and_models_write_is_masked_too() -> None:
    """OpenHands/software-agent-sdk#2629: a start payload put keys into public logs."""
    tried = bench({"text": f"I use {CANARY}."}, {"text": f"again {CANARY}"}, FINISH)
    tried.start(f"the key is {CANARY}, order apples")
    heard: list[str] = []
    assert tried.run is not None
    asyncio.run(tried.runtime.drive(tried.run, on_text=heard.append))
    assert clean(tried)
    assert tried.state.inputs[0][1] == "the key is [secret crm], order apples"
    assert "".join(heard) == "I use [secret crm].again [secret crm]"


def test_a_failed_attempt_does_not_repeat_a_secret() -> None:
    def refuse(request: object) -> ModelResponse:
        raise AttemptFailed("bad_request", f"no such key {CANARY}")

    tried = bench(refuse)
    tried.drive()
    assert clean(tried)
    assert tried.bodies(e.ModelAttemptFailed)[0].message == "no such key [secret crm]"


def test_a_scan_names_where_a_secret_got_in_before_it_was_registered() -> None:
    tried = bench(
        {"text": CANARY, "calls": [{"tool": "get_stock", "args": {"item": "x"}}]}, FINISH, secrets=None
    )
    tried.shop.answers["get_stock"] = lambda item: {"rows": ["x" * 100] * 200, "key": CANARY}
    tried.drive()
    assert tried.run is not None
    found = scan(tried.store, tried.run, SECRETS)
    assert {(leak.kind, leak.secret) for leak in found} == {
        ("ModelTurnRecorded", "crm"), ("ReceiptRecorded", "crm")
    }  # fmt: skip
    assert all(CANARY not in leak.where for leak in found)
    assert sorted(leak.where for leak in found) == ["blob of the result", "the event"]
