"""Whoever writes into a log, a registered secret in it becomes a mark: people, applications, operators, tools."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import engine.runtime
from engine.adapters.secrets import RegisteredSecrets
from engine.domain.actors import HOST, Actor
from engine.domain.calls import Outcome
from engine.domain.errors import Refused, UsageError
from engine.lifecycle import fold as folding
from engine.runtime.approvals import Approval
from engine.runtime.forking import Fork
from engine.runtime.reconcile import Finding
from engine.runtime.runtime import Runtime
from engine.runtime.secrets_scan import scan
from tests.runtime.bench import LEAD, ME, POLICY, Bench, final, say

CANARY = "CANARY-93-0123456789"
SECRETS = RegisteredSecrets({"crm": CANARY})
WORDS = f"because of {CANARY}"
STATED = POLICY + "state:\n  cart: {owner: app, fields: {id: {type: id}, note: {type: text, max_len: 200}}}\n"
REVOKING = STATED.replace(
    "    expires: {after: 1h, calls: 3}", "    expires: {after: 1h, calls: 3}\n    revoke: {roles: [lead]}"
)
LETTER = ("send_letter", {"to": "x"})
DOCS = ("request_capability", {"capability": "docs"})
ASK = ("ask_user", {"question": "?"})
Write = Callable[[Bench, Runtime], object]


class Guarded(Bench):
    """The bench of the loop, with a registered secret."""

    def runtime(self) -> Runtime:
        runtime = super().runtime()
        made = Runtime(replace(runtime._parts, secrets=SECRETS), self.policy)
        made.library.add(self.policy)
        return made


def lost(bench: Bench) -> None:
    """A letter whose outcome nobody knows."""

    async def breaks(to: str, context: object) -> object:
        raise ConnectionError("gone")

    bench.shop.special["send_letter"] = breaks
    bench.runtime().approve(bench.run, "1.1", by=LEAD)
    bench.drive()


def late(bench: Bench, runtime: Runtime) -> None:
    lost(bench)
    call, state = next(iter(bench.state.unknown_calls)), bench.state
    runtime.late_answer(bench.run, call, {"said": WORDS}, key=state.calls[call].idempotency_key, by=HOST)


def reconciled(bench: Bench, runtime: Runtime) -> None:
    lost(bench)
    found = Finding(Outcome.CONFIRMED, WORDS, {"said": WORDS})
    runtime.reconcile(bench.run, "1.1", by=LEAD, finding=found)


def revoked(bench: Bench, runtime: Runtime) -> None:
    runtime.revoke(bench.run, "G1", by=LEAD, because=WORDS)


def refused_by_nobody(bench: Bench, runtime: Runtime) -> None:
    with pytest.raises(Refused):
        runtime.approve(bench.run, "1.1", by=ME, decision=Approval(because=WORDS))
    runtime.refuse(bench.run, "1.1", by=LEAD, because=WORDS)


@pytest.mark.parametrize(
    ("proposed", "write", "kind"),
    [
        ((ASK,), lambda b, r: r.reply(b.run, WORDS, by=ME), "InputReceived"),
        ((ASK,), lambda b, r: r.cancel(b.run, by=ME, because=WORDS), "CancelRequested"),
        ((ASK,), lambda b, r: r.set_source(b.run, "stock", "degraded", by=ME, because=WORDS), "SourceStateChanged"),
        ((ASK,), lambda b, r: r.update_state(b.run, "cart", {"id": "c", "note": WORDS}, by=ME), "StateUpdated"),
        ((LETTER,), lambda b, r: r.approve(b.run, "1.1", by=LEAD, decision=Approval(because=WORDS)), "ApprovalGiven"),
        ((LETTER,), refused_by_nobody, "ApprovalRefused"),
        ((LETTER,), reconciled, "ReceiptRecorded"),
        ((LETTER,), late, "ReceiptRecorded"),
        ((DOCS, ASK), revoked, "GrantRevoked"),
    ],
    ids=["reply", "cancel", "source", "state", "approve", "refuse", "reconcile", "late answer", "revoke"],
)  # fmt: skip
def test_what_is_said_is_stored_with_a_mark_in_place_of_the_secret(
    proposed: tuple[object, ...], write: Write, kind: str
) -> None:
    bench = Guarded(*(say(each) for each in proposed), final(), policy=REVOKING)
    bench.drive()
    write(bench, bench.runtime())
    assert "[secret crm]" in bench.of_kind(kind)[-1].payload
    assert scan(bench.store, bench.run, SECRETS) == []
    assert folding.fold(bench.run, bench.store.events(bench.run)).seq == bench.state.seq


def test_an_equal_state_that_is_masked_keeps_its_version() -> None:
    bench = Guarded(say(ASK), final(), policy=STATED)
    bench.drive()
    for _ in range(2):
        bench.runtime().update_state(bench.run, "cart", {"id": "c", "note": WORDS}, by=ME)
    assert [event.body.version for event in bench.of_kind("StateUpdated")] == [1, 1]


def test_a_fork_keeps_no_secret_that_replaces_an_answer() -> None:
    bench = Guarded(say(("get_stock", {"sku": 1})), say(ASK), policy=STATED)
    bench.drive()
    at = next(event.seq for event in bench.log if event.kind == "ModelTurnRecorded")
    call = bench.of_kind("ReceiptRecorded")[0].body.call
    forked = bench.runtime().fork(bench.run, Fork(at, replace={call: {"left": 1, "level": WORDS}}), by=LEAD)
    texts = [event.payload for event in bench.store.events(forked.run)]
    assert any("[secret crm]" in text for text in texts)
    assert scan(bench.store, forked.run, SECRETS) == []


def test_every_journal_that_people_can_write_to_knows_the_secrets() -> None:
    folder = Path(engine.runtime.__file__).parent
    bare: list[str] = []
    for file in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Journal":
                named = {keyword.arg for keyword in node.keywords}
                bare += [] if "secrets" in named else [f"{file.name}:{node.lineno}"]
    assert [place.partition(":")[0] for place in bare] == ["loading.py", "loading.py"], (
        "they only say which policy is in force"
    )


def test_an_actor_is_as_its_issuer_names_it() -> None:
    """Who acted is compared with who may act: it is not changed on the way; a scan names it."""
    bench = Guarded(say(ASK), final(), policy=STATED)
    bench.drive()
    odd = Actor(type="person", id=CANARY, issuer="local", roles=("clerk",))
    bench.runtime().cancel(bench.run, by=odd)
    assert [leak.kind for leak in scan(bench.store, bench.run, SECRETS)] == ["CancelRequested"]


def test_an_edit_that_holds_a_secret_is_refused():
    """The mark would be sent in the place of the value: another call than the approver decided about."""
    policy = POLICY.replace(
        "approval: {by: {roles: [lead]}, expires: 90s}",
        "approval: {by: {roles: [lead]}, expires: 90s, edit: [args.to]}",
    )
    bench = Guarded(say(LETTER), final(), policy=policy)
    bench.drive()
    with pytest.raises(UsageError, match="registered secret `crm`"):
        bench.runtime().approve(bench.run, "1.1", by=LEAD, decision=Approval(edits={"to": CANARY}))
    bench.runtime().approve(bench.run, "1.1", by=LEAD, decision=Approval(edits={"to": "y"}))
    bench.drive()
    assert bench.shop.ledger == ["letter y"]
