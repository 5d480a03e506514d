"""The scenes of the two essays that this project answers, each under its own name, as whole Runs."""

from __future__ import annotations

from typing import Any

from engine.domain.messages import CallResult
from tests.runtime.bench import Bench, Shop, final, say

TOOLS = """
agentctl: tools/v1
id: fund
sources: {portfolio: {title: "Portfolio"}, filings: {title: "Filings"}}
tools:
  read_holdings:
    kind: read
    source: portfolio
    handler: "python:fund:read_holdings"
    description: "Read the positions."
    params: {}
    evidence:
      kind: holding
      id: "result.snapshot"
      as_of: "receipt.at"
      figures: {weight: {type: percent, at: "result.positions[].weight", key: isin}}
  search_document:
    kind: read
    source: filings
    handler: "python:fund:search_document"
    description: "Search the filings."
    params: {query: {type: text, max_len: 200}}
    evidence: {kind: document, id: "result.docs[].id", spans: "result.docs[].spans[].id"}
  read_document:
    kind: read
    source: filings
    handler: "python:fund:read_document"
    description: "Read one filing."
    params: {document: {type: ref, of: document}}
  adjust_portfolio:
    kind: write
    handler: "python:fund:adjust_portfolio"
    description: "Sell or buy."
    params: {isin: {type: id}, units: {type: int, min: -1000, max: 1000}}
    effects: [trade.place]
    idempotency: {key: [call.id]}
    reconcile: {manual: "Ask the broker"}
"""

POLICY = """
agentctl: policy/v1
id: fund
version: 1
owner: me
tool_specs: [shop.tools.yaml]
principals: {roles: [clerk, lead], may_start: [clerk]}
capabilities:
  documents:
    about: "Search and read documents"
    request: {roles: [clerk]}
    approve: [{by: host}]
    expires: {after: 1h}
permissions:
  - {id: holdings, effect: allow, roles: [clerk], tools: [read_holdings]}
  - {id: papers, effect: allow, roles: [clerk], tools: [search_document, read_document], needs: [documents]}
  - {id: trades, effect: ask, roles: [clerk], tools: [adjust_portfolio], approval: {by: {roles: [lead]}, expires: 1h}}
outputs:
  research_note:
    about: "The note"
    fields: {body: {type: rich_text, max_len: 5000, cites: true, figures: true}}
    citations: {kinds: [holding, document], min: 1}
    figures: {kinds: [percent], from: [holding], render: host}
gates: {finish: [{output_committed: research_note}]}
budgets: {turns: 20, cost_usd: "1.00", wall_time: 1h, calls: {total: 50}, questions_to_user: 3}
model: {primary: {id: openai/gpt-5-mini-2025-08-07}}
"""


class Fund(Shop):
    """What the tools read and the trades that really happened."""

    def handlers(self) -> Any:
        async def read_holdings() -> object:
            return {"snapshot": "S1", "positions": [{"isin": "XX1", "weight": "12.5"}]}

        async def search_document(query: str) -> object:
            text = "The ongoing charge was 0.85 percent."
            return {"docs": [{"id": "report", "spans": [{"id": "p4", "text": text}]}]}

        async def read_document(document: str) -> object:
            return {"text": "…"}

        async def adjust_portfolio(isin: str, units: int) -> object:
            self.ledger.append(f"{isin} {units}")
            return {}

        return {
            "read_holdings": read_holdings,
            "search_document": search_document,
            "read_document": read_document,
            "adjust_portfolio": adjust_portfolio,
        }


def fund(*turns: Any) -> Bench:
    return Bench(*turns, policy=POLICY, tools=TOOLS, shop=Fund())


DOCUMENTS = ("request_capability", {"capability": "documents", "reason": "to check the charge"})
NOTE = ("publish_research_note", {"body": "One position [[E1]]."})


def test_documents_capability_and_a_question_in_one_response():
    """The capability changes the contract, so the question of the old contract never reaches the user."""
    bench = fund(
        say(DOCUMENTS, ("ask_user", {"question": "May I read the annual report?"})),
        say(("search_document", {"query": "charge"})),
        say(("publish_research_note", {"body": "It was 0.85 percent [[E1#p4]]."}), ("finish", {})),
    )
    bench.drive()
    assert bench.outcomes(1) == ["granted", "fenced"]
    assert not bench.of_kind("QuestionAsked")
    assert bench.call(1, 2).detail == "granted documents"
    before = {tool.name for tool in bench.requests[0].tools}
    after = {tool.name for tool in bench.requests[1].tools}
    assert after - before == {"search_document", "read_document"}
    assert bench.requests[0].contract != bench.requests[1].contract
    assert bench.status == "completed"


def test_two_calls_one_invalid():
    """Call A runs and its result is stored; call B has an error that names it; the model decides what to do next."""
    bench = fund(
        say(("read_holdings", {}), ("adjust_portfolio", {"isin": "XX1", "units": "a lot"})),
        say(NOTE, ("finish", {})),
    )
    bench.drive()
    assert bench.outcomes(1) == ["confirmed", "rejected"]
    first, second = bench.results(1)
    assert "12.5" in first.text
    assert second.id == (1, 2)
    assert second.tool == "adjust_portfolio"
    assert "units" in second.text
    assert bench.status == "completed"


def test_i_have_completed_the_adjustment_without_a_call():
    """Nothing happened, and the ledger says so; the Run waits for the user, and nobody speaks in their name."""
    bench = fund(say(text="I've completed the adjustment: 10 units of XX1 were sold."))
    bench.drive()
    assert bench.status == "awaiting_input"
    assert bench.shop.ledger == []
    assert not bench.of_kind("ExecutionStarted")
    assert not bench.of_kind("ReceiptRecorded")
    assert not bench.state.effects()
    assert [event.actor.type for event in bench.of_kind("InputReceived")] == ["person"]


def test_i_have_completed_the_adjustment_beside_a_call_that_waits():
    """The proposal waits for its approval whatever the text beside it claims."""
    bench = fund(
        say(("adjust_portfolio", {"isin": "XX1", "units": -10}), text="I've completed the adjustment."),
        say(text="Still done."),
    )
    bench.drive()
    assert bench.status == "awaiting_approval"
    assert bench.shop.ledger == []
    bench.refuse(1, 1)
    bench.drive()
    assert bench.outcomes(1) == ["not_executed"]
    assert bench.shop.ledger == []


def test_you_do_not_hold_x_with_no_holdings_read():
    """The Host does not judge the sentence: it is committed as written, and no reading of holdings is claimed."""
    body = "You do not hold X; your portfolio is fine. The report says 0.85 percent [[E1#p4]]."
    bench = fund(
        say(DOCUMENTS),
        say(("search_document", {"query": "charge"})),
        say(("publish_research_note", {"body": body}), ("finish", {})),
    )
    bench.drive()
    assert bench.outcomes(3) == ["committed", "committed"]
    assert bench.state.publications["research_note"].fields["body"] == body
    assert not [call for call in bench.state.calls.values() if call.tool == "read_holdings"]
    assert bench.status == "completed"


def test_a_note_that_misreads_an_authentic_citation_is_committed():
    """The citation resolves, which shows where to look; whether the text reads it right is not the Host's to say."""
    body = "The ongoing charge was 8.5 percent [[E1#p4]]."
    bench = fund(
        say(DOCUMENTS),
        say(("search_document", {"query": "charge"})),
        say(("publish_research_note", {"body": body}), ("finish", {})),
    )
    bench.drive()
    published = bench.state.publications["research_note"]
    assert published.fields["body"] == body
    assert published.citations == ("E1",)
    assert bench.status == "completed"


def test_finish_before_a_note_exists():
    """Refused with the name of the gate; the model goes on, publishes, and finishes."""
    bench = fund(final("That should be enough."), say(("read_holdings", {})), say(NOTE), final())
    bench.drive()
    assert bench.outcomes(1) == ["rejected"]
    refusal = bench.call(1, 1).refusal
    assert refusal.code == "gate"
    assert refusal.gates == ("output_committed research_note",)
    shown = [message for message in bench.requests[1].messages if isinstance(message, CallResult)]
    assert "output_committed research_note" in shown[0].text
    assert bench.status == "completed"


def test_finish_is_a_proposal_that_carries_no_claim():
    """It takes no argument: there is no field in which the model could state that it is done."""
    bench = fund(say(("finish", {"complete": True})), say(text="done"))
    bench.drive()
    assert bench.outcomes(1) == ["rejected"]
    assert bench.call(1, 1).refusal.code == "invalid_arguments"


def test_tool_selection_visibility_and_permission_are_three_things():
    """What is not permitted is not shown, and what is not shown does not run, whoever guesses its name."""
    bench = fund(say(("search_document", {"query": "charge"})), say(text="?"))
    bench.drive()
    assert "search_document" not in {tool.name for tool in bench.requests[0].tools}
    assert bench.outcomes(1) == ["rejected"]
    assert bench.call(1, 1).refusal.code == "not_offered"


def test_recovery_depends_on_durable_facts_not_on_what_the_model_said():
    """The model says that it read; after a restart the log alone decides what is done."""
    bench = fund(say(("read_holdings", {}), text="I have read everything."), say(NOTE, ("finish", {})))
    bench.drive()
    kinds = bench.kinds
    assert kinds.index("ModelTurnRecorded") < kinds.index("ExecutionStarted") < kinds.index("ReceiptRecorded")
    assert bench.status == "completed"


def test_a_figure_in_a_note_is_rendered_by_the_host():
    """The model writes a slot; the number, unit and source come from the evidence."""
    bench = fund(
        say(("read_holdings", {})),
        say(("publish_research_note", {"body": "Weight {{fig:E1/XX1/weight}} [[E1]]."}), ("finish", {})),
    )
    bench.drive()
    published = bench.state.publications["research_note"]
    assert "12.5" not in str(published.fields["body"])
    assert "12.5" in str(published.rendered["body"])
