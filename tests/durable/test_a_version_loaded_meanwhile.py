"""Owns the case of a policy version that is loaded just when a Run starts: its next drive tells the Run of it."""

from __future__ import annotations

from engine.domain.ids import CallId
from engine.ports import LoadedPolicy
from engine.runtime.library import bundle_text
from tests.durable.shop import COPIES, asking, letter, letters
from tests.runtime.bench import LEAD, POLICY, Bench, compiled, final, say

STRICTER = POLICY.replace("tools: [get_stock, ping]", "tools: [ping]").replace("version: 1", "version: 2")


def test_a_version_that_no_run_was_told_of_restricts_at_the_next_drive() -> None:
    bench = Bench(say(("get_stock", {"sku": 1})), final())
    stricter = compiled(STRICTER)
    bundle = bench.store.put_blob(bundle_text(stricter))
    bench.store.load_policy(LoadedPolicy("shop", 2, stricter.digest, bundle, bench.clock.now(), "ops"))
    bench.drive()
    kinds = [event.kind for event in bench.log]
    assert kinds.index("PolicyLoaded") < kinds.index("ModelAttemptStarted")
    assert bench.outcome(1, 1) == "rejected"
    assert not bench.shop.reads


def test_a_run_is_told_once() -> None:
    bench = Bench(say(("ping", {})), final())
    bench.load(STRICTER)
    bench.drive()
    assert len(bench.of_kind("PolicyLoaded")) == 1


def test_a_yes_lasts_no_longer_than_the_newest_version_lets_it():
    """Given under a day, loaded is five minutes: what restricts holds at once."""
    bench = letters(say(letter()), final(), approval="by: {roles: [lead]}, expires: 1d")
    bench.drive()
    bench.runtime().approve(bench.run, CallId(1, 1), by=LEAD)
    bench.clock.advance(hours=2)
    shorter = asking("by: {roles: [lead]}, expires: 5m").replace("version: 1", "version: 2")
    bench.load(shorter, tools=COPIES)
    bench.drive()
    receipt = bench.call(1, 1).receipt
    assert receipt is not None
    assert (receipt.outcome, receipt.denial, bench.shop.ledger) == ("not_executed", "expired", [])
