"""The shop answers as its tool spec promises: keys, probes, holds that lapse, orders that fit the cart."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from shop import desk, storefront, tools
from shop.__main__ import main

from engine import Failed, NotExecuted
from engine.adapters.function_tools import FunctionTools
from engine.policy.compiler import compile_policy
from tests.examples.call_context import call

ROOT = Path(__file__).resolve().parents[2]
TOTAL = 4190


@pytest.fixture(autouse=True)
def shop_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "own" / "shop.sqlite"
    monkeypatch.setenv("AGENTCTL_SHOP_DB", str(path))
    return path


def _order(
    key: str = "order-1", minutes: float = 0, version: int = 3, total: int = TOTAL, address: str = "ad1"
) -> str:
    answer = tools.place_order("c1", version, total, address, "standard", context=call(key, minutes))
    return str(answer["order_id"])


def test_every_handler_of_the_policy_fits_its_function() -> None:
    policy = compile_policy(str(ROOT / "policies" / "retail-order.policy.yaml")).policy
    assert policy is not None
    assert FunctionTools({}, [ROOT / "examples"]).check(list(policy.tools.values())) == []


def test_database_is_made_where_the_variable_says(shop_file: Path) -> None:
    tools.get_cart("u1")
    assert shop_file.is_file()


def test_database_in_a_place_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AGENTCTL_SHOP_DB", str(tmp_path / "file" / "shop.sqlite"))
    with pytest.raises(NotExecuted, match="AGENTCTL_SHOP_DB"):
        tools.get_cart("u1")


def test_file_that_is_no_database_is_named_and_left_alone(shop_file: Path) -> None:
    shop_file.parent.mkdir()
    shop_file.write_text("my own notes, long enough to be no header of a database " * 3)
    with pytest.raises(NotExecuted, match="cannot be used"):
        tools.get_cart("u1")
    assert shop_file.read_text().startswith("my own notes")


def test_two_first_uses_at_once_seed_once() -> None:
    with ThreadPoolExecutor(8) as threads:
        carts = list(threads.map(tools.get_cart, ["u1"] * 8))
    assert all(cart == carts[0] for cart in carts)
    assert carts[0]["total_minor"] == TOTAL


def test_search_finds_words_of_titles_under_a_price() -> None:
    found = tools.search_products("a glass TEA pot", max_price_minor=3000, context=call())["items"]
    assert found[0]["sku"] == "pot-glass"
    assert "pot-iron" not in [item["sku"] for item in found]
    assert tools.search_products("'; drop table product; --", context=call())["items"] == []


def test_cart_of_an_unknown_shopper_fails_and_names_the_known_ones() -> None:
    with pytest.raises(Failed, match="`u1`, `u2`"):
        tools.get_cart("a1")


def test_answers_are_json() -> None:
    answers = [tools.get_cart("u1"), tools.get_profile("u1"), tools.check_stock(["kettle", "moon"], call())]
    assert json.loads(json.dumps(answers)) == answers


def test_suggestion_leaves_the_cart_alone_until_the_shopper_accepts() -> None:
    before = tools.get_cart("u1")
    id_ = tools.suggest_cart_change("c1", "kettle", 2, call())["suggestion_id"]
    assert tools.get_cart("u1") == before
    after = storefront.accept_suggestion("u1", id_)
    assert after["version"] == before["version"] + 1
    assert {"sku": "kettle", "quantity": 2, "unit_minor": 4900} in after["items"]
    with pytest.raises(NotExecuted, match="no open suggestion"):
        storefront.accept_suggestion("u1", id_)


def test_suggestion_under_a_repeated_key_is_the_first_one() -> None:
    first = tools.suggest_cart_change("c1", "kettle", 2, call())
    assert tools.suggest_cart_change("c1", "kettle", 2, call()) == first
    assert tools.get_suggestion("k-1") == {"found": True}
    assert tools.get_suggestion("k-2") == {"found": False}


def test_withdrawn_suggestion_cannot_be_accepted() -> None:
    id_ = tools.suggest_cart_change("c1", "kettle", 2, call())["suggestion_id"]
    assert tools.withdraw_suggestion(id_) == {"withdrawn": True}
    assert tools.withdraw_suggestion(id_) == {"withdrawn": False}
    with pytest.raises(NotExecuted):
        storefront.accept_suggestion("u1", id_)


def test_suggestion_of_an_unknown_product_is_not_made() -> None:
    with pytest.raises(NotExecuted, match="moon"):
        tools.suggest_cart_change("c1", "moon", 1, call())
    assert tools.get_suggestion("k-1") == {"found": False}


def test_hold_takes_stock_from_others_until_it_lapses() -> None:
    storefront.set_quantity("u1", "pot-iron", 2)
    tools.reserve_inventory("c1", 4, call("h"))
    assert tools.check_stock(["pot-iron"], call(minutes=9))["levels"][0]["free"] == 0
    assert tools.get_hold("h", call(minutes=9)) == {"found": True, "active": True}
    assert tools.check_stock(["pot-iron"], call(minutes=10))["levels"][0]["free"] == 2
    assert tools.get_hold("h", call(minutes=10)) == {"found": True, "active": False}


def test_hold_of_what_another_holds_is_refused_whole() -> None:
    storefront.set_quantity("u1", "pot-iron", 2)
    storefront.set_quantity("u2", "pot-iron", 1)
    tools.reserve_inventory("c1", 4, call("h1"))
    with pytest.raises(NotExecuted, match="only 0 of `pot-iron`"):
        tools.reserve_inventory("c2", 2, call("h2"))
    assert tools.get_hold("h2", call()) == {"found": False, "active": False}
    assert tools.reserve_inventory("c2", 2, call("h2", 10))["hold_id"] == "h2"


def test_hold_under_a_repeated_key_is_the_first_while_it_stands() -> None:
    first = tools.reserve_inventory("c1", 3, call("h"))
    assert tools.reserve_inventory("c1", 3, call("h", 9)) == first
    renewed = tools.reserve_inventory("c1", 3, call("h", 10))
    assert renewed["hold_id"] != first["hold_id"]


def test_released_hold_frees_the_stock_and_is_released_once() -> None:
    id_ = tools.reserve_inventory("c1", 3, call("h"))["hold_id"]
    assert tools.release_inventory(id_) == {"released": True}
    assert tools.release_inventory(id_) == {"released": False}
    assert tools.check_stock(["pot-glass"], call())["levels"][0]["free"] == 6


def test_order_uses_the_hold_up_empties_the_cart_and_lowers_stock() -> None:
    tools.reserve_inventory("c1", 3, call("h"))
    _order(minutes=1)
    cart = tools.get_cart("u1")
    assert (cart["items"], cart["total_minor"], cart["version"]) == ([], 0, 4)
    assert tools.check_stock(["pot-glass"], call(minutes=1))["levels"][0]["free"] == 5
    assert tools.find_order("order-1") == {"found": True}
    assert tools.get_hold("h", call(minutes=1)) == {"found": True, "active": False}


def test_order_under_a_repeated_key_is_the_first_order() -> None:
    tools.reserve_inventory("c1", 3, call("h"))
    assert _order() == _order(minutes=30) == "o1"
    assert len(storefront.activity()["orders"]) == 1


def test_order_without_a_standing_hold_is_not_placed() -> None:
    with pytest.raises(NotExecuted, match="nothing is held"):
        _order()
    tools.reserve_inventory("c1", 3, call("h"))
    with pytest.raises(NotExecuted, match="nothing is held"):
        _order(minutes=10)
    assert tools.find_order("order-1") == {"found": False}


def test_order_of_a_cart_that_was_edited_is_not_placed() -> None:
    tools.reserve_inventory("c1", 3, call("h"))
    storefront.set_quantity("u1", "tea-assam", 0)
    with pytest.raises(NotExecuted, match="has version 4 now, not 3"):
        _order()


@pytest.mark.parametrize(("total", "address"), [(TOTAL - 1, "ad1"), (TOTAL, "ad2")])
def test_order_at_another_price_or_address_is_not_placed(total: int, address: str) -> None:
    tools.reserve_inventory("c1", 3, call("h"))
    with pytest.raises(NotExecuted):
        _order(total=total, address=address)
    assert storefront.activity()["orders"] == []


def test_write_without_a_key_does_nothing() -> None:
    tools.reserve_inventory("c1", 3, call("h"))
    for key in (None, ""):
        with pytest.raises(NotExecuted, match="idempotency key"):
            tools.place_order("c1", 3, TOTAL, "ad1", "standard", context=call(key))
    assert storefront.activity()["orders"] == []


def test_mail_goes_to_the_outbox_once_per_key() -> None:
    first = tools.send_email("ann@example.org", "order_question", "Which size?", context=call("m"))
    assert tools.send_email("ann@example.org", "order_question", "Which size?", context=call("m")) == first
    assert [mail["message"] for mail in storefront.activity()["outbox"]] == ["Which size?"]
    assert (tools.find_mail("m"), tools.find_mail("n")) == ({"found": True}, {"found": False})


def test_mail_about_an_order_that_is_not_there_is_not_sent() -> None:
    with pytest.raises(NotExecuted, match="o9"):
        tools.send_email("ann@example.org", "order_confirmation", "Thanks", order="o9", context=call("m"))
    assert tools.find_mail("m") == {"found": False}


def test_changed_address_is_what_the_profile_answers_next() -> None:
    storefront.change_email("u1", "ann@new.example.org")
    assert tools.get_profile("u1") == {"email": "ann@new.example.org", "address_id": "ad1"}
    assert desk.fetch_user_profile("u1")["email"] == "ann@new.example.org"


def test_draft_is_kept_once_and_its_probe_remembers_it_after_deletion() -> None:
    first = desk.create_draft("u1", "Hello", "Text", call("d"))
    assert desk.create_draft("u1", "Hello", "Text", call("d")) == first
    assert desk.delete_draft(first["draft_id"]) == {"deleted": True}
    assert desk.delete_draft(first["draft_id"]) == {"deleted": False}
    assert desk.find_draft("d") == {"found": True}
    assert desk.create_draft("u1", "Other", "Text", call("e"))["draft_id"] != first["draft_id"]


def test_audit_entry_is_appended_once_per_key() -> None:
    first = desk.log_event("inquiry", "asked about sizes", call("a"))
    assert desk.log_event("inquiry", "asked about sizes", call("a")) == first
    assert desk.log_event("inquiry", "asked about sizes", call("b")) != first
    assert (desk.find_event("a"), desk.find_event("c")) == ({"found": True}, {"found": False})


def test_command_line_of_the_shop_plays_the_shopper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["set", "u1", "tea-assam", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["total_minor"] == 2900
    assert main(["accept", "u1", "s9"]) == 1
    assert "no open suggestion" in capsys.readouterr().err
