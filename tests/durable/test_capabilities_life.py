"""Owns the promises of what is given and taken back: revocations, source states, loaded versions; never wider."""

from __future__ import annotations

import pytest

from engine.domain.errors import PolicyInvalid, Refused, UsageError
from engine.domain.ids import CallId
from engine.domain.policy import Policy
from engine.policy.compiler import load_policy
from engine.runtime.approvals import Approval
from engine.runtime.loading import OverlayText, read_overlay
from tests.durable.conftest import Office
from tests.durable.shop import letter, letters, person
from tests.runtime.bench import CLERK, LEAD, ME, POLICY, TOOLS, Bench, compiled, final, say

REVOKING = POLICY.replace(
    "    expires: {after: 1h, calls: 3}", "    expires: {after: 1h, calls: 3}\n    revoke: {roles: [lead]}"
)
DOCS = ("request_capability", {"capability": "docs"})
SEARCH = ("search_docs", {"q": "fees"})
READ = ("get_stock", {"sku": 1})
ASK = ("ask_user", {"question": "?"})
OVERLAY = """
agentctl: overlay/v1
id: freeze
version: 1
owner: security
permissions:
  - {id: no-writes, effect: deny, tools: ["kind:write"], because: "SEC-1 freeze"}
"""


def newer(*lines: str, version: int = 2, policy: str = POLICY, **more: str) -> Policy:
    rules = "".join(f"\n  - {{{line}}}" for line in lines)
    text = policy.replace("permissions:", f"permissions:{rules}").replace("version: 1", f"version: {version}")
    for old, new in more.items():
        text = text.replace(old, new)
    return compiled(text, TOOLS)


DENY_ROOMS = "id: no-rooms, effect: deny, tools: [book_room]"


# --- revocation -------------------------------------------------------------------------------------------


def test_a_revoked_grant_is_gone_at_once_and_its_evidence_with_it():
    bench = Bench(say(DOCS), say(SEARCH), say(ASK), say(SEARCH), final(), policy=REVOKING)
    bench.drive()
    assert bench.outcomes(2) == ["confirmed"]
    bench.runtime().revoke(bench.run, "G1", by=LEAD, because="leak")
    bench.reply("go on")
    bench.drive()
    assert bench.outcomes(4) == ["rejected"]
    assert "search_docs" not in bench.state.turns[3].offered
    assert all(each.superseded for each in bench.state.evidence.values())


def test_a_revocation_fences_what_is_left_of_the_response():
    bench = Bench(say(DOCS), say(("book_room", {"room": 1}), SEARCH, READ), final(), policy=REVOKING)

    async def book_room(room: int) -> object:
        bench.runtime().revoke(bench.run, "G1", by=LEAD)
        return {"booking": "B1"}

    bench.shop.special["book_room"] = book_room
    bench.drive()
    assert bench.outcomes(2) == ["confirmed", "fenced", "fenced"]
    assert bench.state.grants["G1"].ended == "revoked"


def test_only_the_named_roles_and_the_principal_may_revoke():
    bench = Bench(say(DOCS), say(ASK), final(), policy=REVOKING)
    bench.drive()
    with pytest.raises(Refused, match="only `u1` or lead may revoke it"):
        bench.runtime().revoke(bench.run, "G1", by=person("x", "clerk"))
    tried = bench.of_kind("DecisionNotEligible")[0]
    assert (tried.body.decision, tried.body.call) == ("revoke", "G1")
    with pytest.raises(UsageError, match="no grant `G7`"):
        bench.runtime().revoke(bench.run, "G7", by=LEAD)
    bench.runtime().revoke(bench.run, "G1", by=ME)
    bench.runtime().revoke(bench.run, "G1", by=LEAD)
    assert bench.kinds.count("GrantRevoked") == 1


def test_a_revoked_standing_approval_covers_nothing_more():
    standing = "by: {roles: [lead]}, expires: 90s, standing: {max_calls: 9}"
    bench = letters(say(letter()), say(ASK), say(letter()), final(), approval=standing)
    bench.drive()
    bench.runtime().approve(bench.run, CallId(1, 1), by=LEAD, decision=Approval(standing=True))
    bench.drive()
    bench.runtime().revoke(bench.run, "S1", by=LEAD, because="enough")
    bench.reply("go on")
    bench.drive()
    assert bench.status == "awaiting_approval"
    assert bench.shop.ledger == ["letter ann x1"]


def test_a_revoked_endorsement_is_no_origin_any_more():
    vouch = "by: {roles: [lead]}, expires: 1h, endorse: [args.to]"
    unless = (
        "id: known, effect: deny, tools: [send_letter], when: \"count('send_letter') > 0\", "
        "unless: \"'endorsed' in origin(args.to)\""
    )
    bench = letters(
        say(letter("ann-1")), say(ASK), say(letter("ann-1", 2)), say(letter("ann-1", 3)), final(),
        approval=vouch, more=(unless,),
    )  # fmt: skip
    bench.drive()
    bench.runtime().approve(bench.run, CallId(1, 1), by=LEAD, decision=Approval(endorses=("to",)))
    bench.drive()
    assert bench.state.endorsed == {("send_letter", "ann-1"): "lead1"}
    bench.runtime().revoke(bench.run, "V1", by=LEAD)
    assert bench.state.endorsed == {}
    bench.reply("go on")
    bench.drive()
    assert bench.outcome(3, 1) == "rejected"


# --- loaded versions --------------------------------------------------------------------------------------


def test_a_running_run_is_restricted_by_a_loaded_version_at_its_next_call():
    """can1357/oh-my-pi#8693: both what is proposed later and what waits for a yes are decided under it."""
    bench = Bench(say(("send_letter", {"to": "x"})), say(("send_letter", {"to": "y"})), final())
    bench.drive()
    bench.runtime().load_policy(newer("id: stop, effect: deny, tools: [send_letter]"), by=LEAD)
    bench.approve(1, 1)
    bench.drive()
    assert bench.outcomes(1) == ["not_executed"]
    assert bench.outcomes(2) == ["rejected"]
    assert bench.shop.ledger == []
    (loaded,) = bench.of_kind("PolicyLoaded")
    assert (loaded.body.version, loaded.actor) == (2, LEAD)
    assert loaded.body.digest != bench.state.policy_digest


def test_the_next_dispatch_after_a_load_is_refused_within_one_response():
    bench = Bench(say(READ, ("book_room", {"room": 1})), final())

    async def get_stock(sku: int) -> object:
        bench.runtime().load_policy(newer(DENY_ROOMS), by=LEAD)
        return {"left": 1, "level": "L1"}

    bench.shop.special["get_stock"] = get_stock
    bench.drive()
    assert bench.outcomes(1) == ["confirmed", "fenced"]
    assert bench.shop.ledger == []


def test_a_loaded_version_never_widens_a_run():
    bench = Bench(say(ASK), say(SEARCH), final())
    bench.drive()
    wider = newer("id: free, effect: allow, roles: [clerk], tools: [search_docs]")
    bench.runtime().load_policy(wider, by=LEAD)
    bench.reply("go on")
    bench.drive()
    assert bench.outcomes(2) == ["rejected"]


def test_the_version_loaded_last_is_the_one_that_holds():
    bench = Bench(say(ASK), say(("book_room", {"room": 1})), final())
    bench.drive()
    runtime = bench.runtime()
    runtime.load_policy(newer(DENY_ROOMS, version=7), by=LEAD)
    loading = runtime.load_policy(newer(version=3), by=LEAD)
    assert loading.restricted == (bench.run,)
    bench.reply("go on")
    bench.drive()
    assert bench.shop.ledger == ["room 1"]


def test_loading_twice_is_no_news():
    bench = Bench(say(ASK), final())
    bench.drive()
    runtime = bench.runtime()
    assert runtime.load_policy(newer(DENY_ROOMS), by=LEAD).restricted == (bench.run,)
    loading = runtime.load_policy(newer(DENY_ROOMS), by=LEAD)
    assert (loading.restricted, loading.unchanged) == ((), (bench.run,))
    assert bench.kinds.count("PolicyLoaded") == 1


def test_a_new_run_starts_under_what_was_loaded():
    bench = Bench(say(ASK), final())
    bench.runtime().load_policy(newer(DENY_ROOMS), by=LEAD)
    other = Bench(say(("book_room", {"room": 1})), final(), store=bench.store)
    other.drive()
    assert other.outcomes(1) == ["rejected"]


@pytest.mark.parametrize("where", ["option", "new version", "own version"])
def test_drain_ends_open_runs_in_order(where: str):
    own = POLICY + "on_policy_change: drain\n" if where == "own version" else POLICY
    bench = Bench(say(("reserve", {"sku": 1}), ASK), final(), policy=own)
    bench.drive()
    text = POLICY.replace("version: 1", "version: 2")
    version = compiled(text + ("on_policy_change: drain\n" if where == "new version" else ""), TOOLS)
    bench.runtime().load_policy(version, by=LEAD, drain=where == "option")
    bench.drive()
    assert (bench.status, bench.reason) == ("expired", "drain")
    assert bench.shop.ledger == ["hold 1", "release H1"]


def test_other_policies_and_runs_that_are_over_are_told_nothing():
    done = Bench(final())
    done.drive()
    other = Bench(say(ASK), policy=POLICY.replace("id: shop", "id: stall"), store=done.store)
    other.drive()
    loading = done.runtime().load_policy(newer(DENY_ROOMS), by=LEAD)
    assert (loading.restricted, loading.unchanged) == ((), ())


# --- overlays ---------------------------------------------------------------------------------------------


def test_an_overlay_restricts_the_runs_of_every_policy():
    bench = Bench(say(ASK), say(("book_room", {"room": 1}), READ), final())
    other = POLICY.replace("id: shop", "id: stall")
    stall = Bench(say(ASK), say(("book_room", {"room": 2})), final(), policy=other, store=bench.store)
    for each in (bench, stall):
        each.drive()
    loading = bench.runtime().load_overlay(read_overlay("freeze.yaml", OVERLAY), by=LEAD)
    assert set(loading.restricted) == {bench.run, stall.run}
    for each in (bench, stall):
        each.reply("go on")
        each.drive()
    assert bench.outcomes(2) == ["rejected", "confirmed"]
    assert bench.call(2, 1).refusal.code == "not_offered"
    assert stall.outcomes(2) == ["rejected"]
    later = Bench(say(("book_room", {"room": 3})), final(), store=bench.store)
    later.drive()
    assert later.outcomes(1) == ["rejected"]
    assert bench.shop.ledger == stall.shop.ledger == later.shop.ledger == []


def test_an_overlay_and_a_policy_of_one_name_do_not_replace_each_other():
    bench = Bench(
        say(ASK), say(("book_room", {"room": 1})), say(("set_price", {"sku": 1, "price": 2})), final()
    )
    bench.drive()
    runtime = bench.runtime()
    text = OVERLAY.replace("freeze", "shop").replace('"kind:write"', "set_price")
    runtime.load_overlay(read_overlay("shop.yaml", text), by=LEAD)
    runtime.load_policy(newer(DENY_ROOMS), by=LEAD)
    bench.reply("go on")
    bench.drive()
    assert bench.outcomes(2) == ["rejected"]
    assert bench.outcomes(3) == ["rejected"]


def test_a_newer_version_of_an_overlay_that_the_policy_names_restricts_beside_its_own():
    own = OVERLAY.replace('"kind:write"', "set_price")
    files = {
        "shop.policy.yaml": POLICY.replace("tool_specs:", "overlays: [org/freeze.overlay.yaml]\ntool_specs:"),
        "shop.tools.yaml": TOOLS,
        "org/freeze.overlay.yaml": own,
    }
    bench = Bench(say(ASK), say(("book_room", {"room": 1}), ("set_price", {"sku": 1, "price": 2})), final())
    bench.policy = load_policy("shop.policy.yaml", files)
    bench.run = bench.runtime().start("please", principal=CLERK)
    bench.drive()
    pushed = own.replace("version: 1", "version: 2").replace("set_price", "book_room")
    loading = bench.runtime().load_overlay(read_overlay("pushed.yaml", pushed), by=LEAD)
    assert bench.run in loading.restricted
    bench.reply("go on")
    bench.drive()
    assert bench.outcomes(2) == ["rejected", "rejected"]
    later = bench.runtime().start("please", principal=CLERK)
    assert [event.kind for event in bench.store.events(later)].count("PolicyLoaded") == 1


def test_an_overlay_that_does_not_fit_one_open_run_is_loaded_for_none():
    bench = Bench(say(ASK), final())
    bench.drive()
    bad = OverlayText(
        "bad",
        1,
        "bad.yaml",
        OVERLAY.replace(
            "permissions:",
            "permissions:\n  - {id: x, effect: deny, tools: [set_price], when: 'args.nothing == 1'}",
        ),
    )
    with pytest.raises(PolicyInvalid):
        bench.runtime().load_overlay(bad, by=LEAD)
    assert not bench.of_kind("PolicyLoaded")
    assert bench.store.newest_policies("shop") == []


# --- sources ----------------------------------------------------------------------------------------------


def test_a_source_that_is_not_usable_takes_its_tools_away_at_once():
    bench = Bench(say(ASK), say(READ), final())
    bench.drive()
    bench.runtime().set_source(bench.run, "stock", "unavailable", by=LEAD, because="outage")
    with pytest.raises(UsageError, match="no source `stok`"):
        bench.runtime().set_source(bench.run, "stok", "unavailable", by=LEAD)
    bench.reply("go on")
    bench.drive()
    assert bench.outcomes(2) == ["rejected"]


# --- the commands -----------------------------------------------------------------------------------------

ARCHIVE = "  - calls: [{tool: request_capability, args: {capability: archive}}]\n"
ASKING = "  - calls: [{tool: ask_user, args: {question: more}}]\n"
SEARCHING = "  - calls: [{tool: search, args: {words: x}}]\n"
FINISH = "  - calls: [{tool: finish}]\n"
AS_LEAD = ("--as", "lea", "--role", "lead")


def test_grants_and_revoke(office: Office):
    run = office.run(ARCHIVE + ASKING + SEARCHING + FINISH).run
    assert "G1  archive() granted by host; until" in office.ask("grants", run).out
    assert "5 calls left" in office.ask("grants", run).out
    assert office.ask("revoke", run, "G1", "--as", "x", "--role", "clerk").code == 4
    assert office.ask("revoke", run, "G1", *AS_LEAD, "--because", "audit").code == 0
    assert "ended: revoked" in office.ask("grants", run).out
    assert office.ask("grants", run, "--json").json["grants"][0]["ended"] == "revoked"
    office.ask("reply", run, "go on")
    assert [each["tool"] for each in office.log(run, "--kind", "CallRejected")] == ["search"]


def test_source_set_for_one_run_and_for_all(office: Office):
    first, second = (office.run(ASKING + FINISH).run for _ in range(2))
    assert office.ask("source", "set", "mail", "degraded").code == 2
    assert office.ask("source", "set", "male", "degraded", "--run", first).code == 2
    assert office.ask("source", "set", "mail", "unavailable", "--run", first).code == 0
    said = office.ask("source", "set", "papers", "unavailable", "--all", "--because", "fire", "--json")
    assert set(said.json["runs"]) == {first, second}
    states = [(each["source"], each["state"]) for each in office.log(first, "--kind", "SourceStateChanged")]
    assert states == [("mail", "unavailable"), ("papers", "unavailable")]


def test_policy_load_restricts_open_runs_and_a_faulty_file_changes_nothing(office: Office):
    posting = "  - calls: [{tool: post, args: {board: b1, text: x}}]\n"
    run = office.run(ASKING + posting + FINISH).run
    rule = "  - {id: posting, effect: allow"
    file = office.changed(
        ("version: 1", "version: 2"), (rule, f"  - {{id: stop, effect: deny, tools: [post]}}\n{rule}")
    )
    broken = office.folder / "broken.policy.yaml"
    broken.write_text((office.folder / file).read_text().replace("effect: deny", "effect: dney"))
    assert office.ask("policy", "load", "broken.policy.yaml", *AS_LEAD).code == 2
    assert office.ask("policy", "load", "none.yaml", *AS_LEAD).code == 2
    assert not office.log(run, "--kind", "PolicyLoaded")
    said = office.ask("policy", "load", file, *AS_LEAD)
    assert said.code == 0, said.err
    assert "loaded policy office v2" in said.out
    assert run in said.out
    office.ask("reply", run, "go on")
    assert office.ledger == []
    assert [each["tool"] for each in office.log(run, "--kind", "CallRejected")] == ["post"]


def test_policy_load_takes_overlays(office: Office):
    run = office.run(ASKING + FINISH).run
    (office.folder / "freeze.overlay.yaml").write_text(OVERLAY.lstrip())
    said = office.ask("policy", "load", "freeze.overlay.yaml", *AS_LEAD, "--json")
    assert said.code == 0, said.err
    assert said.json["kind"] == "overlay"
    assert said.json["restricted"] == [run]
    (office.folder / "bad.overlay.yaml").write_text(OVERLAY.lstrip().replace("deny", "allow"))
    assert office.ask("policy", "load", "bad.overlay.yaml", *AS_LEAD).code == 2
    assert office.ask("policy", "load", "freeze.overlay.yaml", "--drain", *AS_LEAD).code == 2
