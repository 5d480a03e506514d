"""The retail agent under its shipped policy, with the real shop: orders that wait, and decisions that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine import Runtime, open_runtime
from engine.adapters.scripted_gateway import ScriptedGateway
from engine.domain.actors import Actor, Principal
from engine.domain.errors import Refused, UsageError
from engine.domain.events import DecisionNotEligible, ReceiptRecorded
from engine.domain.ids import RunId
from engine.domain.state import CallState
from engine.ports import ModelResponse, ProposedCall
from engine.runtime.approvals import Approval
from engine.runtime.audit import verify
from tests.runtime.bench import FakeClock, say

ROOT = Path(__file__).resolve().parents[2]
SHOPPER = Principal(id="u1", roles=("shopper",), attrs={"store": "s9", "suspended": False})
ANN = SHOPPER.actor()
MANAGER = Actor(type="person", id="m7", issuer="local", roles=("store_manager",))
HOLD, ORDER, DONE = ("reserve_inventory", {}), ("place_order", {"shipping": "standard"}), ("finish", {})
MAIL = ("send_email", {"template": "order_question", "message": "Is the address right?"})


class Shopping:
    """One Run, left where it waits; `shop` is what the shop itself says of it."""

    def __init__(self, db: Path, *turns: Any, channel: str = "web") -> None:
        self.clock = FakeClock()
        self.runtime: Runtime = open_runtime(
            str(db),
            policy=ROOT / "policies" / "retail-order.policy.yaml",
            gateway=ScriptedGateway.from_turns(turns),
            model="scripted/orders",
            clock=self.clock,
        )
        self.run = self.runtime.start(
            "Order what is in my cart.", principal=SHOPPER, task={"channel": channel}
        )
        self.drive()

    def drive(self) -> None:
        self.runtime.drive_sync(self.run)

    @property
    def shop(self) -> dict[str, list[dict[str, Any]]]:
        from shop import storefront

        return storefront.activity()

    def approve(self, call: str, by: Actor = ANN, decision: Approval | None = None) -> None:
        self.runtime.approve(self.run, call, by=by, decision=decision)

    def call(self, turn: int, ordinal: int) -> CallState:
        return next(call for id_, call in self.state.calls.items() if id_ == (turn, ordinal))

    @property
    def state(self) -> Any:
        return self.runtime.state(self.run)

    def said(self, turn: int, ordinal: int) -> tuple[str, str]:
        receipt = self.call(turn, ordinal).receipt
        assert receipt is not None
        return receipt.outcome.value, receipt.detail

    @property
    def declined(self) -> list[tuple[str, str, str, str]]:
        """(who, what they wanted, on which call, why it did not count), as recorded."""
        return [
            (event.actor.id, event.body.decision, event.body.call, event.body.because)
            for event in self.runtime.events(self.run)
            if isinstance(event.body, DecisionNotEligible)
        ]


Make = Callable[..., Shopping]


@pytest.fixture
def shopping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.setenv("AGENTCTL_SHOP_DB", str(tmp_path / "shop.sqlite"))
    made: list[Shopping] = []

    def make(*turns: Any, **options: Any) -> Shopping:
        responses = [turn if isinstance(turn, ModelResponse) else say(*turn) for turn in turns]
        made.append(Shopping(tmp_path / "runs.db", *responses, **options))
        return made[-1]

    yield make
    for each in made:
        assert verify(each.runtime.store, each.run).holds
        each.runtime.close()


# --- what changes while an order waits -----------------------------------------------------------------------


def test_an_order_whose_cart_changed_while_it_waited_is_not_executed_and_names_the_versions(shopping: Make):
    life = shopping([HOLD], [ORDER], [DONE])
    from shop import storefront

    storefront.set_quantity("u1", "pot-glass", 3)
    life.approve("2.1")
    life.drive()
    assert life.said(2, 1) == ("not_executed", "state cart changed (3 -> 4) since the model saw it")
    assert life.state.status == "completed"
    assert life.shop["orders"] == []
    assert [hold["status"] for hold in life.shop["holds"]] == ["released"]


def test_an_order_whose_cart_did_not_change_is_placed_once_and_uses_its_hold(shopping: Make):
    life = shopping([HOLD], [ORDER], [DONE])
    life.approve("2.1")
    life.drive()
    assert life.said(2, 1)[0] == "confirmed"
    assert [order["cart_version"] for order in life.shop["orders"]] == [3]
    assert [hold["status"] for hold in life.shop["holds"]] == ["consumed"]
    assert life.state.status == "completed"


def test_a_cancel_while_an_order_waits_gives_the_held_stock_back(shopping: Make):
    life = shopping([HOLD], [ORDER], [DONE])
    assert [hold["status"] for hold in life.shop["holds"]] == ["active"]
    life.runtime.cancel(life.run, by=ANN, because="another day")
    life.drive()
    assert life.state.status == "cancelled"
    assert [hold["status"] for hold in life.shop["holds"]] == ["released"]
    assert life.shop["orders"] == []
    end = list(life.runtime.events(life.run))[-1].body
    assert (end.not_compensated, end.unknown_effects) == ((), ())  # type: ignore[union-attr]  # it is an ending
    assert life.said(2, 1)[0] == "not_executed"


# --- decisions that do not fit --------------------------------------------------------------------------------


def test_a_second_yes_is_refused_and_recorded_and_the_order_is_placed_once(shopping: Make):
    life = shopping([HOLD], [ORDER], [DONE])
    life.approve("2.1")
    with pytest.raises(Refused, match="it was approved already"):
        life.approve("2.1")
    life.drive()
    with pytest.raises(Refused, match="run completed"):
        life.approve("2.1")
    assert [(who, why) for who, _, _, why in life.declined] == [
        ("u1", "it was approved already"),
        ("u1", "run completed"),
    ]
    assert len(life.shop["orders"]) == 1


def test_the_shopper_is_not_both_of_the_two_people_that_a_kiosk_needs(shopping: Make):
    from shop import storefront

    storefront.set_quantity("u1", "pot-iron", 1)
    life = shopping([HOLD], [ORDER], [DONE], channel="kiosk")
    life.approve("2.1")
    life.approve("2.1", Actor(type="person", id="u1", issuer="local", roles=("shopper", "store_manager")))
    assert life.call(2, 1).waits_for == ("big-orders-need-manager",)
    life.drive()
    assert life.state.status == "awaiting_approval"
    assert life.shop["orders"] == []
    life.approve("2.1", MANAGER)
    life.drive()
    assert len(life.shop["orders"]) == 1


def test_a_yes_to_other_arguments_than_are_stored_is_refused_and_recorded(shopping: Make):
    life = shopping([HOLD], [ORDER], [DONE])
    approval = life.call(2, 1).approval
    assert approval is not None
    with pytest.raises(Refused, match="another one than was shown"):
        life.approve("2.1", decision=Approval(digest="0" * 64))
    with pytest.raises(Refused, match="no rule lets an approver edit `shipping`"):
        life.approve("2.1", decision=Approval(edits={"shipping": "express"}))
    assert [why for *_, why in life.declined] == [
        "the stored call is another one than was shown",
        "no rule lets an approver edit `shipping`",
    ]
    life.approve("2.1", decision=Approval(digest=approval.digest))
    life.drive()
    assert [order["shipping"] for order in life.shop["orders"]] == ["standard"]


def test_a_yes_to_one_mail_is_none_to_the_same_mail_with_other_words(shopping: Make):
    other = ("send_email", {"template": "order_question", "message": "Send me the card number."})
    life = shopping([MAIL], [other], [DONE])
    digest = life.call(1, 1).approval.digest  # type: ignore[union-attr]  # it is held
    life.approve("1.1")
    life.drive()
    assert life.state.status == "awaiting_approval"
    with pytest.raises(Refused, match="another one than was shown"):
        life.approve("2.1", decision=Approval(digest=digest))
    life.runtime.refuse(life.run, "2.1", by=ANN)
    life.drive()
    assert [mail["message"] for mail in life.shop["outbox"]] == ["Is the address right?"]


def test_what_the_shop_fills_in_cannot_be_swapped_by_the_model(shopping: Make):
    swapped = ("place_order", {"shipping": "standard", "address_id": "ad2", "total_minor": 1})
    life = shopping([HOLD], [swapped], [DONE])
    refusal = life.call(2, 1).refusal
    assert refusal is not None
    assert "address_id" in refusal.message
    assert life.shop["orders"] == []


@pytest.mark.parametrize("forged", ["9.9", "2.2", "0.1", "p0", "2.1; finish", "\u202e1.2"])
def test_a_forged_call_id_decides_nothing_and_is_recorded(forged: str, shopping: Make):
    life = shopping([HOLD], [ORDER], [DONE])
    for decide in (life.approve, lambda call: life.runtime.refuse(life.run, call, by=ANN)):
        with pytest.raises((Refused, UsageError)):
            decide(forged)
    assert [(call, decision) for _, decision, call, _ in life.declined] == [
        (forged, "approve"),
        (forged, "refuse"),
    ]
    life.drive()
    assert life.state.status == "awaiting_approval"
    assert life.shop["orders"] == []


def test_two_mails_under_one_id_of_the_provider_are_decided_apart(shopping: Make):
    mails = ModelResponse(
        model="m",
        calls=tuple(
            ProposedCall("send_email", f'{{"template": "order_question", "message": "{word}"}}', "call_1")
            for word in ("one", "two")
        ),
        finish="tool_calls",
        cost_usd=Decimal(0),
    )
    life = shopping(mails, [DONE])
    with pytest.raises(UsageError, match="no call `call_1`"):
        life.approve("call_1")
    life.runtime.refuse(life.run, "1.1", by=ANN)
    life.approve("1.2")
    life.drive()
    assert [mail["message"] for mail in life.shop["outbox"]] == ["two"]


def test_nobody_can_approve_in_the_run_of_another(shopping: Make):
    first = shopping([HOLD], [ORDER], [DONE])
    second = shopping([DONE])
    with pytest.raises(Refused, match="run completed"):
        second.runtime.approve(second.run, "1.1", by=ANN)
    with pytest.raises(UsageError, match="there is no Run"):
        first.runtime.approve(RunId("rforged"), "2.1", by=ANN)
    assert first.shop["orders"] == []
    receipts = [event for event in first.runtime.events(first.run) if isinstance(event.body, ReceiptRecorded)]
    assert all(event.body.tool != "place_order" for event in receipts)  # type: ignore[union-attr]  # as filtered
