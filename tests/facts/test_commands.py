"""The commands state, context, trace, graph and outputs, on a Run of the notes and fund agents in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli import main
from engine.adapters.wire.strict import validate_openai
from engine.report.lineage import _key
from tests.facts.world import POLICY, TOOLS, DeskRun
from tests.runtime.bench import final, say, sqlite

PRICE = ("get_price", {"sku": "tea-assam"})


class At:
    """A command line over one database."""

    def __init__(self, bench: DeskRun, folder: Path) -> None:
        self.bench = bench
        self.db = str(folder / "runs.db")

    def __call__(self, *words: str, code: int = 0) -> str:
        result = CliRunner().invoke(main, [*words, "--db", self.db])
        assert result.exit_code == code, result.output
        return result.output

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> At:
    monkeypatch.chdir(tmp_path)
    prune = "{max_input_tokens: 60000, prune: [{kind: read, superseded: true, keep: receipt}]}"
    policy = POLICY.replace("{max_input_tokens: 60000}", prune)
    turns = [
        say(("read_mail", {"mail": "m-1001"}), PRICE, text="I look."),
        say(("read_mail", {"mail": "m-1001"})),
        say(("publish_note", {"title": "<b>Tea</b>", "body": "It costs {{fig:E2/price}} [[E2]]."})),
        say(("pay", {"account": "XX66CLEARING0000099"})),
        final(),
    ]
    bench = DeskRun(*turns, store=sqlite(tmp_path), policy=policy, tools=TOOLS)
    bench.drive()
    return At(bench, tmp_path)


def test_state_is_read_and_set_with_versions(at: At) -> None:
    run = at.bench.run
    assert at.json("state", "get", run, "cart")["version"] == 1
    assert "at version 2" in at("state", "set", run, "cart", "total=99", "--as", "shop")
    got = at.json("state", "get", run, "cart")
    assert (got["version"], got["by"], got["value"]["total"], got["value"]["id"]) == (2, "shop", 99, "c1")
    whole = json.dumps({"id": "c9", "total": 1, "items": []})
    assert "at version 3" in at("state", "set", run, "cart", whole, "--expected-version", "2")
    Path("cart.json").write_text(whole, encoding="utf-8")
    assert "at version 3" in at("state", "set", run, "cart", "@cart.json")


def test_what_the_host_read_itself_is_by_the_host(tmp_path: Path) -> None:
    bench = DeskRun(final(), store=sqlite(tmp_path), state={})
    bench.drive()
    assert ", by the Host\n" in At(bench, tmp_path)("state", "get", bench.run, "cart")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("card", "total=1"), "no state `card`"),
        (("cart", "totl=1"), "totl"),
        (("cart", "total=much"), "is no int"),
        (("cart", "[1]"), "no assignment"),
        (("cart", "{"), "no JSON"),
        (("cart", "@nowhere.json"), "cannot be read"),
        (("cart", "total=1", "--expected-version", "7"), "at version 1, not 7"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_words(at: At, words: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(main, ["state", "set", at.bench.run, *words, "--db", at.db])
    assert result.exit_code in (2, 4)
    assert said in result.output
    assert "Traceback" not in result.output


def test_context_prints_what_was_sent_and_what_was_left_out(at: At) -> None:
    said = at("context", at.bench.run, "--turn", "3")
    assert "-- user input" in said
    assert "call 1.1 read_mail" in said
    assert "Application state, as the Host holds it now" in said
    assert "Left out" not in said or "superseded" in said
    form = at.json("context", at.bench.run, "--turn", "3")
    sent = at.bench.requests[2].messages
    assert [part["text"].split("\n")[0] for part in form["parts"]] == [
        (each.text or "call").split("\n")[0] if getattr(each, "text", "") else part["text"].split("\n")[0]
        for each, part in zip(sent, form["parts"], strict=True)
    ]
    assert validate_openai(form["messages"]) == []
    assert form["tokens"] == sum(part["tokens"] for part in form["parts"])


def test_context_of_a_turn_that_was_not_asked_for_is_refused(at: At) -> None:
    assert "was not asked for turn 9" in at("context", at.bench.run, "--turn", "9", code=2)


def test_trace_follows_an_argument_back_to_a_receipt(at: At) -> None:
    said = at("trace", at.bench.run, "4.1", "account")
    assert 'account = "XX66CLEARING0000099"' in said
    assert "occurs in untrusted: result.text of call 1.1 (read_mail, source mail, confirmed" in said
    assert "came from" not in said
    (found,) = at.json("trace", at.bench.run, "4.1")["arguments"]
    assert (found["origin"], found["found_in"]) == ("untrusted", "result.text of call 1.1")
    assert at.json("trace", at.bench.run, "1.2", "sku")["arguments"][0]["origin"] == "state"


def test_trace_names_what_there_is(at: At) -> None:
    assert "no call `9.9`" in at("trace", at.bench.run, "9.9", code=2)
    assert "no argument `amount`" in at("trace", at.bench.run, "4.1", "amount", code=2)


def test_graph_has_each_call_and_each_place_once(at: At) -> None:
    said = at("graph", at.bench.run)
    assert said.startswith("flowchart LR\n")
    assert '|"account: untrusted (literal)"|' in said
    assert '[["output note"]]' in said
    lines = said.splitlines()
    assert len(lines) == len(set(lines))
    dotted = at("graph", at.bench.run, "--format", "dot")
    assert dotted.startswith("digraph run {")
    assert dotted.rstrip().endswith("}")
    assert dotted.count('"') % 2 == 0


def test_two_places_never_share_a_node_of_the_graph() -> None:
    names = ["state.a_b", "state.a.b", "state.a-b", "task.é", "task.e", "edit of call 1.1"]
    assert len({_key(name) for name in names}) == len(names)


def test_outputs_are_printed_and_written(at: At) -> None:
    run = at.bench.run
    assert "**title**: <b>Tea</b>" in at("outputs", run)
    html = at("outputs", run, "--format", "html")
    assert "&lt;b&gt;Tea&lt;/b&gt;" in html
    assert at.json("outputs", run)["sources"][0]["id"] == "tea-assam"
    assert at("outputs", run, "--format", "html", "--out", "made").strip() == "made/note.html"
    assert Path("made/note.html").read_text(encoding="utf-8").startswith("<!doctype html>")
