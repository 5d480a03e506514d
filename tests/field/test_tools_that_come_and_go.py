"""Reports from the field about lists of tools, calls that people decide, and logs that grow, as whole Runs."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from engine.domain.messages import CallResult
from engine.policy.files import MemoryFiles
from engine.policy.linter import lint
from tests.field import policy_files
from tests.runtime.bench import LEAD, POLICY, TOOLS, Bench, Crash, Shop, final, say, sqlite

STOCK = ("get_stock", {"sku": 1})
LETTER = ("send_letter", {"to": "ann"})


def offered(bench: Bench) -> list[bool]:
    """Whether each request offered `get_stock`."""
    return ["get_stock" in {tool.name for tool in request.tools} for request in bench.requests]


# --- lists of tools ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["unavailable", "unauthorized"])
def test_a_source_that_goes_and_comes_back_is_seen_at_the_next_turn(state: str):
    """aaronsb/obsidian-mcp-plugin#285, aaif-goose/goose#10433: no list that was read at the start."""

    def goes(request: Any) -> Any:
        bench.runtime().set_source(bench.run, "stock", state, by=LEAD, because="outage")
        return say(STOCK, ("ping", {}))

    def comes_back(request: Any) -> Any:
        bench.runtime().set_source(bench.run, "stock", "available", by=LEAD)
        return say(STOCK)

    bench = Bench(say(STOCK), goes, comes_back, say(STOCK), final())
    bench.drive()
    assert bench.outcomes(1) == ["confirmed"]
    assert bench.outcomes(2) == ["fenced", "fenced"]
    assert bench.outcome(3, 1) in ("rejected", "fenced")
    assert bench.outcomes(4) == ["confirmed"]
    assert offered(bench) == [True, True, False, True, True]
    assert len(bench.shop.reads) == 2


def test_two_tools_of_one_name_are_an_error_that_names_both_places():
    """samanhappy/mcphub#139, docker/mcp-gateway#11: no call can go to the wrong one of two."""
    files = policy_files.files(
        ("tool_specs: [files.tools.yaml]", "tool_specs: [files.tools.yaml, more.yaml]")
    )
    files["more.yaml"] = files["files.tools.yaml"].replace("id: files", "id: more")
    found = lint(["files.policy.yaml"], files=MemoryFiles(files)).diagnostics
    said = [each for each in found if each.code == "R204" and "`read_file`" in each.message]
    assert said
    assert "files.tools.yaml" in f"{said[0].message} {said[0].help}"
    assert str(said[0].location).startswith("more.yaml")


# --- calls that people decide -----------------------------------------------------------------------------------


def test_what_a_model_writes_into_an_argument_is_no_permission():
    """cline/cline#12020: arguments that look like an approval are arguments; lint says that they look like one."""
    claims = ", requires_approval: {type: bool}, approved_by: {type: id, required: false}"
    tools = TOOLS.replace("to: {type: id}", "to: {type: id}" + claims)
    sent = {"to": "ann", "requires_approval": False, "approved_by": "lead1"}
    shop = Shop()
    shop.special["send_letter"] = lambda to, requires_approval, approved_by="": shop.ledger.append(to)
    bench = Bench(say(("send_letter", sent)), final(), tools=tools, shop=shop)
    bench.drive()
    assert bench.status == "awaiting_approval"
    assert bench.shop.ledger == []
    found = lint(
        ["shop.policy.yaml"], files=MemoryFiles({"shop.policy.yaml": POLICY, "shop.tools.yaml": tools})
    )
    named = {each.message.split("`")[1] for each in found.diagnostics if each.code == "M408"}
    assert {"requires_approval", "approved_by"} <= named


def test_a_second_decision_does_not_run_what_the_first_one_ran():
    """rancher/rancher-ai-agent#136: two held calls of one response, decided in two processes."""
    bench = Bench(say(LETTER, ("send_letter", {"to": "bob"})), final())
    bench.drive()
    bench.approve(1, 1)
    bench.drive()
    assert bench.shop.ledger == ["letter ann"]
    assert (bench.status, len(bench.requests)) == ("awaiting_approval", 1)
    bench.refuse(1, 2, because="not him")
    bench.drive()
    assert bench.shop.ledger == ["letter ann"]
    assert bench.outcomes(1) == ["confirmed", "not_executed"]
    results = [each for each in bench.requests[1].messages if isinstance(each, CallResult)]
    assert [json.loads(each.text)["outcome"] for each in results] == ["confirmed", "not_executed"]
    assert "lead1" in results[1].text
    assert bench.status == "completed"


def test_a_write_whose_worker_died_is_never_sent_again_by_itself():
    """langchain-ai/langgraph#7417: killed after the effect; no timer and no model makes it `not executed`."""
    bench = Bench(say(LETTER), final(), final())

    async def send_letter(to: str, context: Any) -> object:
        bench.shop.effect(f"letter {to}", context)
        raise Crash

    bench.shop.special["send_letter"] = send_letter
    bench.drive()
    bench.approve(1, 1)
    with pytest.raises(Crash):
        bench.drive()
    del bench.shop.special["send_letter"]
    for _ in range(3):
        bench.clock.advance(minutes=10)
        bench.drive()
    assert bench.shop.ledger == ["letter ann"]
    assert bench.outcomes(1) == ["unknown"]
    assert bench.status == "awaiting_reconciliation"


# --- logs that grow ---------------------------------------------------------------------------------------------


def grown(path: Path, turns: int) -> tuple[int, int]:
    """Bytes of events and of large results after so many turns with the same three results of 20 KB."""
    path.mkdir()
    bench = Bench(
        *[say(STOCK) for _ in range(turns)], final(), store=sqlite(path), policy=MANY, check_fold=False
    )
    bench.shop.special["get_stock"] = lambda sku: {"left": 1, "level": "L1", "all": "x" * 20_000}
    bench.drive()
    assert bench.status == "completed"
    bench.store.close()
    with sqlite3.connect(path / "runs.db") as database:
        (events,) = database.execute("SELECT sum(length(payload)) FROM events").fetchone()
        (blobs,) = database.execute("SELECT coalesce(sum(length(data)), 0) FROM blobs").fetchone()
    database.close()
    return events, blobs


MANY = POLICY.replace("turns: 30", "turns: 300").replace("total: 60", "total: 300")


def test_twice_the_turns_are_twice_the_log(tmp_path: Path):
    """langchain-ai/langgraph#7547, bytedance/deer-flow#3011: no step stores again what was stored before it."""
    (small, once), (large, again) = grown(tmp_path / "a", 30), grown(tmp_path / "b", 60)
    assert large < 2.2 * small
    assert again < once + 25_000, "an equal result is kept once"
