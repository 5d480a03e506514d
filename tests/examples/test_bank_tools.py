"""The bank takes orders once, recalls them, and hands out what strangers wrote as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from bank import tools

from engine import Failed, NotExecuted
from engine.adapters.function_tools import FunctionTools
from engine.policy.compiler import compile_policy
from tests.examples.call_context import call

ROOT = Path(__file__).resolve().parents[2]
PAYEE = "XX21ENERGY00004711"


@pytest.fixture(autouse=True)
def bank_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENTCTL_BANK_DB", str(tmp_path / "bank.sqlite"))
    return tmp_path / "bank.sqlite"


def _transfer(key: str | None = "t", amount: int = 7410) -> str:
    answer = tools.transfer_money("acc-100", PAYEE, amount, "2026-06-4711", context=call(key))
    return str(answer["transfer_id"])


def test_every_handler_of_the_policy_fits_its_function() -> None:
    policy = compile_policy(str(ROOT / "policies" / "bank-payments.policy.yaml")).policy
    assert policy is not None
    assert FunctionTools({}, [ROOT / "examples"]).check(list(policy.tools.values())) == []


def test_database_is_made_where_the_variable_says(bank_file: Path) -> None:
    assert tools.get_account("k1") == {"id": "acc-100", "balance_minor": 250_000, "currency": "EUR"}
    assert bank_file.is_file()


def test_unknown_customer_fails_and_the_known_ones_are_named() -> None:
    with pytest.raises(Failed, match="`k1`, `k2`"):
        tools.get_account("u1")


def test_bill_that_orders_a_transfer_is_read_as_it_is() -> None:
    assert {"bill_id": "garden-2026-06"} in tools.list_bills(call())["bills"]
    text = tools.read_bill("garden-2026-06")["text"]
    assert "XX66CLEARING0000099" in text
    assert PAYEE in tools.read_bill("energy-2026-06")["text"]


@pytest.mark.parametrize("bill", ["../tools", "none", "", "garden-2026-06.txt", "/etc/hosts"])
def test_bill_that_is_not_there_fails(bill: str) -> None:
    with pytest.raises(Failed, match="there is no bill"):
        tools.read_bill(bill)


def test_bills_of_ones_own_folder_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTCTL_BANK_BILLS", str(tmp_path / "post"))
    with pytest.raises(Failed, match="AGENTCTL_BANK_BILLS"):
        tools.list_bills(call())
    (tmp_path / "post").mkdir()
    (tmp_path / "post" / "mine.txt").write_text("Pay me.")
    assert tools.list_bills(call())["bills"] == [{"bill_id": "mine"}]


def test_transfer_lowers_the_balance_once_per_key() -> None:
    assert _transfer() == _transfer() == "t1"
    assert tools.get_account("k1")["balance_minor"] == 242_590
    assert (tools.find_transfer("t"), tools.find_transfer("u")) == ({"found": True}, {"found": False})
    newest = tools.read_statement("acc-100", call())["entries"][0]
    assert newest["amount_minor"] == -7410
    assert PAYEE in newest["text"]


def test_transfer_beyond_the_balance_is_not_executed() -> None:
    with pytest.raises(NotExecuted, match="acc-100"):
        _transfer(amount=250_001)
    assert tools.get_account("k1")["balance_minor"] == 250_000
    assert tools.find_transfer("t") == {"found": False}


def test_transfer_without_a_key_is_not_executed() -> None:
    with pytest.raises(NotExecuted, match="idempotency key"):
        _transfer(key=None)


def test_recalled_transfer_gives_the_money_back_once() -> None:
    id_ = _transfer()
    assert tools.recall_transfer(id_, call()) == {"recalled": True}
    assert tools.recall_transfer(id_, call()) == {"recalled": False}
    assert tools.get_account("k1")["balance_minor"] == 250_000
    assert tools.find_transfer("t") == {"found": True}
    with pytest.raises(Failed, match="t9"):
        tools.recall_transfer("t9", call())


def test_payees_are_those_that_the_customer_saved() -> None:
    assert PAYEE in [payee["account"] for payee in tools.list_payees("k1", call())["payees"]]
    assert tools.list_payees("k2", call())["payees"] == []


def test_message_goes_to_the_outbox_once_per_key() -> None:
    first = tools.send_message("office@example.org", "s", "Thank you.", call("m"))
    assert tools.send_message("office@example.org", "s", "Thank you.", call("m")) == first
    assert (tools.find_message("m"), tools.find_message("n")) == ({"found": True}, {"found": False})
