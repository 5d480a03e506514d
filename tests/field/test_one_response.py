"""Reports from the field about the calls of one response: local errors, tool lists that change, order, arguments."""

from __future__ import annotations

import asyncio
import itertools
import json
from decimal import Decimal
from typing import Any

import pytest

from engine.domain.calls import Failed, Outcome
from engine.domain.canonical import canonical
from engine.policy.compiler import compile_policy
from tests.runtime.bench import POLICY, TOOLS, Bench, Crash, final, say, sqlite, with_lines

ASK = ("ask_user", {"question": "Which?"})
DOCS = ("request_capability", {"capability": "docs"})
OPS = ("request_capability", {"capability": "ops"})
SEARCH = ("search_docs", {"q": "a"})


def stock(sku: Any) -> tuple[str, Any]:
    return ("get_stock", {"sku": sku})


# --- local errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["invalid", "raises", "reports", "hangs"])
def test_one_failing_call_keeps_the_results_of_its_siblings(how: str):
    """huggingface/smolagents#2554: three reads, the middle one fails; each has its own result, in order."""
    middle = stock("boom") if how == "invalid" else stock(2)
    tools = TOOLS.replace(
        'description: "How many are there."', 'description: "How many are there."\n    timeout: 1s'
    )
    bench = Bench(say(stock(1), middle, stock(3)), final(), tools=tools)

    async def get_stock(sku: int) -> object:
        if sku == 2 and how == "raises":
            raise ValueError("boom")
        if sku == 2 and how == "reports":
            raise Failed("no such item")
        if sku == 2 and how == "hangs":
            await asyncio.sleep(60)
        return {"left": sku}

    bench.shop.special["get_stock"] = get_stock
    bench.drive()
    expected = "rejected" if how == "invalid" else "failed"
    assert bench.outcomes(1) == ["confirmed", expected, "confirmed"]
    results = bench.results(1)
    assert [tuple(result.id) for result in results] == [(1, 1), (1, 2), (1, 3)]
    assert [result.is_error for result in results] == [False, True, False]
    if how == "invalid":
        assert "sku" in results[1].text
    assert bench.status == "completed"


@pytest.mark.parametrize("crash", ["before effect", "after effect", "before append", "after append"])
def test_every_call_has_a_result_after_a_crash_between_two_receipts(crash: str):
    """anomalyco/opencode#44852: a call without a result made every bench request invalid."""
    bench = Bench(say(stock(1), stock(2)), say(stock(3)), final())

    async def get_stock(sku: int) -> object:
        if sku == 2:
            raise PermissionError("403")
        return {"left": sku}

    bench.shop.special["get_stock"] = get_stock
    seen: list[str] = []

    def point(where: str) -> None:
        seen.append(where)
        if where == crash and bench.state.turns:
            raise Crash(where)

    with pytest.raises(Crash):
        bench.drive(point)
    bench.drive()
    assert [result.outcome for result in bench.results(1)] == ["confirmed", "failed"]
    assert bench.status == "completed"


# --- tool lists ---------------------------------------------------------------------------------------------


def test_a_hidden_tool_does_not_run_for_who_guesses_its_name():
    """pydantic/pydantic-ai#6472: the answer is that of a name that never existed."""
    bench = Bench(say(("wipe_cache", {}), ("no_such_tool", {})), final())
    bench.drive()
    assert bench.outcomes(1) == ["rejected", "rejected"]
    hidden, unknown = (bench.call(1, n).refusal for n in (1, 2))
    assert hidden.code == unknown.code == "not_offered"
    assert hidden.message.replace("wipe_cache", "X") == unknown.message.replace("no_such_tool", "X")
    assert bench.shop.ledger == []
    assert bench.of_kind("ModelTurnRecorded")[0].body.contract == bench.requests[0].contract


def test_a_tool_that_a_granted_request_brings_is_not_called_in_the_same_response():
    """gptme/gptme#3656: granted by the Host at once."""
    bench = Bench(say(DOCS, SEARCH, ASK), final())
    bench.drive()
    assert bench.outcomes(1)[0] == "granted"
    assert bench.call(1, 2).status.value in ("fenced", "rejected")
    assert bench.outcomes(1)[2] == "fenced"
    assert bench.shop.reads == []
    assert "search_docs" in {tool.name for tool in bench.requests[1].tools}


def test_a_tool_that_an_approved_request_brings_is_not_called_in_the_same_response():
    """gptme/gptme#3656: granted by a person later."""
    bench = Bench(say(OPS, ("wipe_cache", {}), ASK), final())
    bench.drive()
    assert bench.status == "awaiting_approval"
    bench.approve(1, 1)
    bench.drive()
    assert bench.outcomes(1)[0] == "granted"
    assert bench.call(1, 2).status.value in ("fenced", "rejected")
    assert bench.outcomes(1)[2] == "fenced"
    assert bench.shop.ledger == []
    assert "wipe_cache" in {tool.name for tool in bench.requests[1].tools}


def test_a_call_before_the_request_runs():
    """gptme/gptme#3656: the question stands before the request in the response."""
    bench = Bench(say(ASK, DOCS, SEARCH), final())
    bench.drive()
    assert len(bench.of_kind("QuestionAsked")) == 1
    bench.reply("this one")
    bench.drive()
    assert bench.outcomes(1)[:2] == ["confirmed", "granted"]
    assert bench.call(1, 3).status.value in ("fenced", "rejected")


def test_a_refused_request_changes_no_contract_so_its_siblings_go_on():
    """gptme/gptme#3656: nothing changed, so the question is asked."""
    bench = Bench(say(OPS, ASK), final())
    bench.drive()
    bench.refuse(1, 1)
    bench.drive()
    assert bench.status == "awaiting_input"
    bench.reply("yes")
    bench.drive()
    assert bench.outcomes(1)[1] == "confirmed"
    assert bench.requests[0].contract == bench.requests[1].contract


def test_a_removed_tool_changes_the_contract_too():
    """gptme/gptme#3656: a source is shut by the first call; what was proposed beside it is stopped and answered."""
    bench = Bench(say(("book_room", {"room": 1}), stock(1)), final())

    async def book_room(room: int, context: Any) -> object:
        bench.source("stock", "unauthorized")
        return {}

    bench.shop.special["book_room"] = book_room
    bench.drive()
    assert bench.outcomes(1) == ["confirmed", "fenced"]
    assert bench.shop.reads == []
    assert "get_stock" not in {tool.name for tool in bench.requests[1].tools}


def test_a_blank_visibility_rule_is_an_error():
    """pydantic/pydantic-ai#5177: absent is not empty; a blank value is refused with its place."""
    for blank in ("visibility:\n  hide:\n", "visibility:\n"):
        files = {"shop.policy.yaml": POLICY + blank, "shop.tools.yaml": TOOLS}
        found = compile_policy("shop.policy.yaml", files)
        assert found.policy is None
        assert [each.code for each in found.errors] == ["Y205"]
        assert "has no value" in found.errors[0].message


def test_a_visibility_rule_that_cannot_be_evaluated_hides_its_one_tool():
    """pydantic/pydantic-ai#5177: the other tools stay."""
    hide = "visibility: {hide: [{id: h, tools: [ping], when: \"source.papers.age > duration('1h')\"}]}\n"
    policy = POLICY + hide  # nothing was read from there yet: its age is unknown
    bench = Bench(final(), policy=policy)
    bench.drive()
    shown = {tool.name for tool in bench.requests[0].tools}
    assert "ping" not in shown
    assert "get_stock" in shown


def test_a_name_of_an_earlier_list_is_answered_and_the_run_goes_on():
    """openai/openai-agents-python#2646: the grant expired; the stale name is no end of the Run."""
    policy = with_lines(budgets='{turns: 30, cost_usd: "1.00", wall_time: 9h, calls: {total: 60}}')
    bench = Bench(say(DOCS), say(SEARCH), say(SEARCH, stock(1)), final(), policy=policy)

    async def slow(q: str, notes: str = "", ids: Any = ()) -> object:
        bench.clock.advance(hours=2)
        return {"docs": []}

    bench.shop.special["search_docs"] = slow
    bench.drive()
    assert bench.outcomes(3) == ["rejected", "confirmed"]
    assert bench.call(3, 1).refusal.code == "not_offered"
    assert bench.status == "completed"


# --- arguments ----------------------------------------------------------------------------------------------

NOTHING = ["", "   ", "null"]
BROKEN = ["[]", "3", '"x"', "{'a':1}", '{"a":1} trailing', '{"a":1}{"a":2}']


def test_no_arguments_in_any_spelling_are_no_arguments():
    """camel-ai/camel#4338: empty, blank and null are `{}` where the schema accepts it, and it is recorded."""
    calls = [("ping", text) for text in [*NOTHING, "{}"]]
    bench = Bench(say(*calls), final())
    bench.drive()
    assert bench.outcomes(1) == ["confirmed"] * 4
    read = [event.body.normalised for event in bench.of_kind("ExecutionStarted")]
    assert read == [("empty",)] * 3 + [()]


def test_no_arguments_for_a_write_that_needs_one_are_an_error_of_that_call():
    """microsoft/autogen#5667: nothing is guessed, and nothing is sent."""
    bench = Bench(say(*[("book_room", text) for text in [*NOTHING, "{}"]]), final())
    bench.drive()
    assert bench.outcomes(1) == ["rejected"] * 4
    assert all("room" in bench.call(1, n).refusal.message for n in range(1, 5))
    assert bench.shop.ledger == []


def test_broken_arguments_are_errors_of_their_calls_and_siblings_run():
    """NousResearch/hermes-agent#50892: each has its own error; the raw text is stored as it came."""
    calls = [("ping", text) for text in BROKEN]
    bench = Bench(say(*calls, stock(1)), final())
    bench.drive()
    assert bench.outcomes(1) == ["rejected"] * len(BROKEN) + ["confirmed"]
    stored = [proposal.arguments for proposal in bench.state.turns[0].recorded.proposals]
    assert stored[: len(BROKEN)] == BROKEN
    assert all(isinstance(call.arguments, dict) for call in bench.requests[-1].messages[1].calls)


def test_arguments_in_a_string_are_unwrapped_once_and_for_reads_only():
    """livekit/agents#5409: recorded as a normalisation; a write is an error; nothing deeper is decoded."""
    once = json.dumps(json.dumps({"sku": 27}))
    write = json.dumps(json.dumps({"room": 27}))
    deep = json.dumps({"sku": 27})
    for _ in range(12):
        deep = json.dumps(deep)
    bench = Bench(say(("get_stock", once), ("book_room", write), ("get_stock", deep)), final())
    bench.drive()
    assert bench.outcomes(1) == ["confirmed", "rejected", "rejected"]
    assert bench.of_kind("ExecutionStarted")[0].body.normalised == ("unwrapped",)
    assert bench.shop.ledger == []


def test_values_in_strings_are_type_errors_where_a_list_is_meant_and_text_where_text_is():
    """MoonshotAI/kimi-cli#2513: an inner value is never decoded."""
    calls = (
        ("search_docs", {"q": "a", "ids": "[1,2]"}),
        ("search_docs", {"q": "a", "notes": '{"k":1}'}),
    )
    bench = Bench(say(DOCS), say(*calls), final())
    bench.drive()
    assert bench.outcomes(2) == ["rejected", "confirmed"]
    assert "ids" in bench.call(2, 1).refusal.message
    assert bench.call(2, 2).args["notes"] == '{"k":1}'


def test_unknown_names_are_the_same_error_with_approvals_on():
    """deepset-ai/haystack#11754: no lookup before the existence check, no near match."""
    names = ["does_not_exist", "", "Send_Letter", " send_letter", "x" * 300, "send․letter"]
    bench = Bench(say(*[(name, {"to": "x"}) for name in names]), final())
    bench.drive()
    assert bench.outcomes(1) == ["rejected"] * 6
    assert {bench.call(1, n).refusal.code for n in range(1, 7)} == {"not_offered"}
    assert not bench.of_kind("ApprovalRequested")
    assert bench.status == "completed"


def test_half_a_surrogate_stays_local():
    """NousResearch/hermes-agent#102757, flop-labs/technocore-chat#218: in a value, in a key, in a result."""
    value, key = '{"q":"x\\ud800"}', '{"\\ud800":1}'
    raw = '{"q":"x\ud800"}'
    bench = Bench(
        say(DOCS), say(("search_docs", value), ("search_docs", key), ("search_docs", raw), SEARCH), final()
    )

    async def search_docs(q: str, notes: str = "", ids: Any = ()) -> object:
        return {"docs": [], "text": "a\udc88b"}

    bench.shop.special["search_docs"] = search_docs
    bench.drive()
    assert bench.outcomes(2) == ["rejected", "rejected", "rejected", "confirmed"]
    result = bench.call(2, 4).receipt.result
    assert result.value["text"] == "a�b"
    assert result.sanitised
    assert bench.status == "completed"
    for event in bench.log:
        event.payload.encode("utf-8")


ODD = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "huge": 1e400,
    "negative zero": -0.0,
    "decimal": Decimal("1.10"),
    "bytes": b"x",
}


def test_odd_numbers_have_one_rule_and_the_effect_is_not_in_doubt(tmp_path: Any):
    """langflow-ai/langflow#11905: the receipt is confirmed; the same event bytes on every store."""
    payloads = []
    for store in (None, sqlite(tmp_path)):
        bench = Bench(say(*[("book_room", {"room": n}) for n in range(len(ODD))]), final(), store=store)

        async def book_room(room: int, context: Any) -> object:
            return {"score": list(ODD.values())[room]}

        bench.shop.special["book_room"] = book_room
        bench.drive()
        assert bench.outcomes(1) == ["confirmed"] * len(ODD)
        faults = [bench.call(1, n + 1).receipt.result.fault is not None for n in range(len(ODD))]
        assert faults == [True, True, True, False, False, True]
        receipts = [
            event.body.model_copy(update={"duration_ms": 0}) for event in bench.of_kind("ReceiptRecorded")
        ]
        payloads.append([canonical(body.model_dump(mode="json")) for body in receipts])
    assert payloads[0] == payloads[1]


def test_not_a_number_is_no_argument():
    """langflow-ai/langflow#11905: refused when the text is read, before any schema."""
    bench = Bench(say(("get_stock", '{"sku": NaN}'), ("get_stock", '{"sku": 1e400}')), final())
    bench.drive()
    assert bench.outcomes(1) == ["rejected", "rejected"]


# --- order and end ------------------------------------------------------------------------------------------

PARTS: dict[str, tuple[str, Any]] = {
    "finish": ("finish", {}),
    "first": ("publish_letter", {"body": "one"}),
    "second": ("publish_letter", {"body": "two"}),
    "write": ("book_room", {"room": 7}),
}


@pytest.mark.parametrize("order", list(itertools.permutations(PARTS)), ids=" ".join)
def test_finish_has_no_hidden_priority(order: tuple[str, ...]):
    """pydantic/pydantic-ai#4296, #3791: proposal order, in every order; one publication per output."""
    bench = Bench(say(*[PARTS[name] for name in order]), final())
    bench.drive()
    outcomes = dict(zip(order, bench.outcomes(1), strict=True))
    published = [name for name in order if name in ("first", "second")]
    assert outcomes[published[0]] == "committed"
    assert outcomes[published[1]] == "rejected"
    assert outcomes["write"] == "confirmed"
    assert bench.shop.ledger == ["room 7"]
    if order[-1] == "finish":
        assert outcomes["finish"] == "committed"
    else:
        refusal = bench.call(1, order.index("finish") + 1).refusal
        assert "no_unsettled_calls" in refusal.gates
        later = [f"1.{n + 1}" for n in range(order.index("finish") + 1, 4)]
        assert all(call in refusal.message for call in later)
    assert bench.status == "completed"


def test_finish_twice_in_one_response_is_refused_once_and_accepted_once():
    """pydantic/pydantic-ai#4296: the first has an unsettled sibling."""
    bench = Bench(say(("finish", {}), ("finish", {})))
    bench.drive()
    assert bench.outcomes(1) == ["rejected", "committed"]
    assert bench.status == "completed"


def test_finish_over_an_unknown_effect_waits_for_it():
    """pydantic/pydantic-ai#3791: held, not refused; the Run waits for reconciliation."""
    bench = Bench(say(("set_price", {"sku": 1, "price": 2})), final())

    async def lost(sku: int, price: int, context: Any) -> object:
        raise ConnectionError

    bench.shop.special["set_price"] = lost
    bench.drive()
    assert bench.outcomes(1) == ["unknown"]
    assert bench.outcomes(2) == ["held"]
    assert bench.status == "awaiting_reconciliation"


def test_finish_beside_a_call_that_waits_for_people_is_refused_by_name():
    """pydantic/pydantic-ai#4296: the approval is pending."""
    bench = Bench(say(("send_letter", {"to": "x"}), ("finish", {})))
    bench.drive()
    assert "no_pending_approvals" in bench.call(1, 2).refusal.gates
    assert bench.status == "awaiting_approval"


def test_finish_without_the_formal_output_is_refused_by_name():
    """pydantic/pydantic-ai#3791: the gate is named; no text is judged."""
    bench = Bench(final(), final(), policy=with_lines(gates="{finish: [{output_committed: letter}]}"))
    bench.drive()
    assert bench.call(1, 1).refusal.gates == ("output_committed letter",)


@pytest.mark.parametrize("text", ["All done.", "Not everything is done", 'You said "done".', "ferdig", ""])
def test_no_text_ends_a_run(text: str):
    """code-yeongyu/oh-my-openagent#2773: a response without calls waits for the user."""
    bench = Bench(say(text=text))
    bench.drive()
    assert bench.status == "awaiting_input"


def test_finish_is_judged_by_gates_whatever_the_text_says():
    """code-yeongyu/oh-my-openagent#2773: "not done yet" beside it changes nothing."""
    bench = Bench(final("not done yet"))
    bench.drive()
    assert bench.status == "completed"


def test_a_response_without_calls_is_asked_again_as_often_as_the_policy_says():
    """code-yeongyu/oh-my-openagent#2773: `no_call_turns: 2`, then the Run waits."""
    budgets = '{turns: 30, cost_usd: "1.00", wall_time: 1h, calls: {total: 60}, no_call_turns: 2}'
    bench = Bench(*[say(text="All done.")] * 9, policy=with_lines(budgets=budgets))
    bench.drive()
    assert bench.status == "awaiting_input"
    assert bench.state.spent.turns == 3
    assert len(bench.state.inputs) == 1


def test_a_denied_call_that_never_ends_is_stopped_by_lack_of_progress():
    """Kilo-Org/kilocode#13772: after five turns in a row in which nothing was executed, before the money is gone."""
    turns = [say(("wipe_cache", {"n": n})) for n in range(50)]
    bench = Bench(*turns)
    bench.drive()
    assert (bench.status, bench.reason) == ("expired", "budget:no_progress_turns")
    assert bench.state.spent.turns == 5
    assert bench.kinds[-1] == "RunExpired"


def test_a_limit_between_a_proposal_and_its_result_leaves_no_turn_open():
    """keurcien/auxilia#97: the last call that fits runs, the next has a result that names the budget."""
    budgets = '{turns: 30, cost_usd: "1.00", wall_time: 1h, calls: {total: 3}}'
    bench = Bench(say(stock(1), stock(2)), say(stock(3), stock(4)), policy=with_lines(budgets=budgets))
    bench.drive()
    assert bench.outcomes(2) == ["confirmed", "rejected"]
    assert bench.call(2, 2).refusal.code == "budget"
    assert "calls.total" in bench.call(2, 2).refusal.message
    assert (bench.status, bench.reason) == ("expired", "budget:calls.total")


def test_outcome_words_are_those_of_the_ledger():
    """What is told to people and to the model comes from one list of outcomes."""
    assert {outcome.value for outcome in Outcome} == {"confirmed", "not_executed", "failed", "unknown"}
