"""Owns the promises of exports: each effect with its whole chain, missing links by name, nothing sensitive."""

from __future__ import annotations

import json
from typing import Any

from engine.domain import events as e
from engine.domain.canonical import canonical
from engine.domain.ids import CallId
from engine.report.audit_page import audit, markdown, page
from engine.report.effects import effects_of
from engine.report.masks import Masks
from engine.runtime.approvals import Approval
from engine.runtime.forking import Fork
from tests.durable.conftest import Office
from tests.facts.world import TOOLS, DeskRun
from tests.runtime.bench import LEAD, ME, Bench, compiled, final, say

ROOM = ("book_room", {"room": 1})
LETTER = ("send_letter", {"to": "x"})
TURNS = """
  - calls: [{tool: look, args: {shelf: 3}}, {tool: post, args: {board: b1, text: "my secret words"}}]
  - calls: [{tool: send, args: {to: ann, weight: 2}}]
  - calls: [{tool: finish}]
"""


def links(bench: Bench, change: Any = lambda body: body) -> dict[str, list[str]]:
    """Effect -> missing links of the log with changed (or dropped) bodies."""
    log, previous = [], e.GENESIS
    for event in bench.log:
        body = change(event.body)
        if body is not None:
            log.append(
                e.seal(
                    bench.run, len(log) + 1, event.recorded_at, event.actor, event.claim_epoch, body, previous
                )
            )
    return {str(effect.call): effect.missing() for effect in effects_of(log)}


def shop() -> Bench:
    bench = Bench(say(ROOM, LETTER, ("get_stock", {"sku": 1})), say(("reserve", {"sku": 2})), final())
    bench.drive()
    bench.approve(1, 2)
    bench.drive()
    assert bench.status == "completed"
    return bench


def test_a_whole_chain_misses_nothing():
    bench = shop()
    assert links(bench) == {"1.1": [], "1.2": [], "2.1": [], "0.1": []}


def test_each_missing_link_is_named():
    bench = shop()

    def without(kind: str) -> dict[str, list[str]]:
        return links(bench, lambda body: None if body.kind == kind else body)

    assert without("ModelTurnRecorded")["1.1"][0].startswith("proposal:")
    assert without("ApprovalGiven")["1.2"] == ["confirmation: no decision of lead1 is recorded"]
    assert without("ReceiptRecorded")["1.1"] == [
        "receipt: it was sent, and nothing is recorded of its outcome"
    ]
    assert without("ExecutionStarted")["1.1"] == ["execution: an outcome is recorded, no dispatch is"]

    def nobody(body: e.Body) -> e.Body:
        return body.model_copy(update={"approved_by": None}) if isinstance(body, e.ExecutionStarted) else body

    assert links(bench, nobody)["1.1"][0].startswith("confirmation: neither")


def test_an_unknown_outcome_is_a_missing_link():
    bench = Bench(say(("set_price", {"sku": 1, "price": 2})), final())

    async def dead(sku: int, price: int, context: Any) -> object:
        raise ConnectionError

    bench.shop.special["set_price"] = dead
    bench.drive()
    assert links(bench)["1.1"] == ["outcome: nobody knows what became of it"]


def test_texts_of_strangers_are_shown_as_they_are():
    bench = Bench(
        say(("send_letter", {"to": "<script>alert(1)</script>"})),
        final(),
        input="# not a title <b>\n\x1b[31m",
    )
    bench.drive()
    bench.refuse(1, 1, LEAD, because="[click](http://evil) <img src=x>")
    bench.drive()
    sections = audit(bench.log, bench.state, compiled())
    assert "<script>" not in page(sections)
    assert "<img" not in page(sections)
    text = markdown(sections)
    assert "\\<script\\>" in text
    assert "\\[click\\]" in text
    assert "\x1b" not in text
    assert "\n# not" not in text


def test_export_tells_each_effect_from_proposal_to_receipt(office: Office):
    run = office.run(TURNS).run
    office.ask(
        "approve", run, "2.1", "--as", "lea", "--role", "lead", "--because", "fine", "--edit", "weight=3"
    )
    said = office.ask("export", run)
    assert said.code == 0, said.err
    text = said.out.replace("\\", "")
    effect = text.split("## Effect 2.1 send: confirmed")[1].split("##")[0]
    for part in ("**proposal**", "**asked**", "**decision**", "lea (lead, issuer local)", "as edited (weight: 3)",
                 "amended digest", "**execution**", "weight: 3", "key ", "**receipt**", "settled by tool"):  # fmt: skip
        assert part in effect, part
    assert "none: every effect has its proposal, confirmation, execution and receipt" in text
    assert "rule posting of policy" in text.split("## Effect 1.1")[0] + text.split("## Effect 1.2")[1]


def test_sensitive_values_leave_in_no_form(office: Office):
    run = office.run(TURNS).run
    for form in ("md", "html", "jsonl"):
        said = office.ask("export", run, "--format", form)
        assert said.code == 0
        assert "my secret words" not in said.out, form
        assert "sensitive" in said.out
    lines = [json.loads(line) for line in office.ask("export", run, "--json").out.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["hash"]
    started = next(line for line in lines if line["event"] == "ExecutionStarted" and line["tool"] == "post")
    assert started["args"] == {"board": "b1", "text": "[sensitive]"}


def test_sensitive_arguments_that_cannot_be_read_are_masked_whole(office: Office):
    turns = (
        "  - calls: [{tool: post, arguments: '{\"text\": my secret words'}]\n  - calls: [{tool: finish}]\n"
    )
    run = office.run(turns).run
    for form in ("md", "html", "jsonl"):
        assert "my secret words" not in office.ask("export", run, "--format", form).out


def test_a_sensitive_value_is_masked_where_a_person_endorsed_it_and_where_a_slice_keeps_it():
    tools = TOOLS.replace(
        '    handler: "python:desk:pay"\n', '    handler: "python:desk:pay"\n    sensitive: [account]\n'
    ).replace(
        '    handler: "python:desk:get_cart"\n',
        '    handler: "python:desk:get_cart"\n    sensitive: [total]\n',
    )
    bench = DeskRun(say(("pay", {"account": "XX66CLEARING0000099"})), final(), tools=tools, state={})
    bench.drive()
    bench.runtime().approve(bench.run, CallId(1, 1), by=ME, decision=Approval(endorses=("account",)))
    bench.drive()
    masks = Masks(bench.policy, bench.state)
    assert {"ValueEndorsed", "StateUpdated"} <= set(bench.kinds)
    for event in bench.log:
        said = canonical(masks.payload(event, json.loads(e.payload_of(event.body))))
        assert "XX66CLEARING0000099" not in said, event.kind
        assert "4200" not in said, event.kind


def test_a_call_that_was_never_sent_is_not_called_unknown():
    bench = Bench(say(LETTER), final())
    bench.drive()
    assert [effect.outcome for effect in effects_of(bench.log)] == ["not sent"]
    forked = bench.runtime().fork(bench.run, Fork(len(bench.log)), by=ME).run
    assert [effect.outcome for effect in effects_of(bench.store.events(forked))] == ["fenced"]
