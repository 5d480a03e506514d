"""Owns the tools of the payments agent, one function per tool of `tool_specs/bank.tools.yaml`."""

from __future__ import annotations

import re
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from done_once import DATA_FOLDER, CallContext, Result, Store, key_of, moment_of, once, place, stamp

from engine import Failed, NotExecuted

BANK_VARIABLE = "AGENTCTL_BANK_DB"
BILLS_VARIABLE = "AGENTCTL_BANK_BILLS"
SHIPPED_BILLS = Path(__file__).resolve().parent / "bills"

SCHEMA = (
    "create table account (id text primary key, customer text unique, balance_minor int, currency text)",
    "create table payee (customer text, account text, name text, saved_at text, primary key (customer, account))",
    "create table transfer (id text primary key, key text unique, from_account text, payee text, amount_minor int,"
    " reference text, status text, ordered_at text)",
    "create table entry (account text, booked_at text, amount_minor int, text text)",
    "create table message (id text primary key, key text unique, recipient text, subject text, body text,"
    " sent_at text)",
)
ACCOUNTS = (("acc-100", "k1", 250_000, "EUR"), ("acc-200", "k2", 90_000, "EUR"))
PAYEES = (
    ("k1", "XX21ENERGY00004711", "Northwind Energy", "2025-11-03T09:00:00.000000Z"),
    ("k1", "XX88RENTAL00000815", "Mill Lane Housing", "2024-02-01T09:00:00.000000Z"),
)
ENTRIES = (
    ("acc-100", "2026-06-01T06:00:00.000000Z", -82_000, "rent June, Mill Lane Housing"),
    ("acc-100", "2026-06-03T06:00:00.000000Z", 310_000, "salary May"),
    ("acc-200", "2026-06-05T06:00:00.000000Z", -1_290, "groceries"),
)
_BILL = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


def _seed(connection: sqlite3.Connection) -> None:
    connection.executemany("insert into account values (?, ?, ?, ?)", ACCOUNTS)
    connection.executemany("insert into payee values (?, ?, ?, ?)", PAYEES)
    connection.executemany("insert into entry values (?, ?, ?, ?)", ENTRIES)


BANK = Store(BANK_VARIABLE, DATA_FOLDER / "bank.sqlite", SCHEMA, _seed)


def list_bills(context: CallContext | None = None) -> Result:
    """The bills that arrived, by file name; what they say is the word of whoever sent them."""
    folder = _bills()
    names = sorted(file.stem for file in folder.glob("*.txt") if _BILL.fullmatch(file.stem))
    return {"bills": [{"bill_id": name} for name in names], "as_of": stamp(moment_of(context))}


def read_bill(bill: str) -> Result:
    """The text of one bill."""
    file = _bills() / f"{bill}.txt"
    if not _BILL.fullmatch(bill) or not file.is_file():
        raise Failed(f"there is no bill `{bill}`")
    try:
        text = file.read_text(encoding="utf-8")
        arrived = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"the bill `{bill}` cannot be read: {error}") from error
    return {"bill_id": bill, "arrived_at": stamp(arrived), "text": text}


def list_payees(customer: str, context: CallContext | None = None) -> Result:
    """The payees that the customer saved in the bank's own application."""
    with BANK.transaction() as bank:
        rows = bank.execute(
            "select account, name, saved_at from payee where customer = ? order by name", (customer,)
        )
        return {"payees": [dict(row) for row in rows], "as_of": stamp(moment_of(context))}


def read_statement(account: str, context: CallContext | None = None) -> Result:
    """What was booked on the account, the newest first."""
    with BANK.transaction() as bank:
        rows = bank.execute(
            "select booked_at, amount_minor, text from entry where account = ? order by rowid desc",
            (account,),
        )
        entries = [dict(row) for row in rows]
    now = stamp(moment_of(context))
    return {"statement_id": f"{account}@{now}", "entries": entries, "as_of": now}


def transfer_money(
    from_account: str,
    payee: str,
    amount_minor: int,
    reference: str,
    bill: str | None = None,
    context: CallContext | None = None,
) -> Result:
    """Takes a transfer order. It leaves with the next batch; until then it can be recalled."""
    with BANK.transaction() as bank:

        def order() -> Result:
            taken = bank.execute(
                "update account set balance_minor = balance_minor - ? where id = ? and balance_minor >= ?",
                (amount_minor, from_account, amount_minor),
            ).rowcount
            if not taken:
                raise NotExecuted(
                    f"the account `{from_account}` does not have {amount_minor}, or does not exist"
                )
            now, id_ = stamp(moment_of(context)), _next_id(bank, "transfer", "t")
            row = (id_, key_of(context), from_account, payee, amount_minor, reference, now)
            bank.execute("insert into transfer values (?, ?, ?, ?, ?, ?, 'ordered', ?)", row)
            note = f"{reference}, to {payee}" + (f", bill {bill}" if bill else "")
            bank.execute("insert into entry values (?, ?, ?, ?)", (from_account, now, -amount_minor, note))
            return {"transfer_id": id_}

        return once(bank, "transfer_money", context, order)


def recall_transfer(transfer_id: str, context: CallContext | None = None) -> Result:
    """Takes back an order that has not left; one that left or was recalled stays as it is."""
    with BANK.transaction() as bank:
        row = bank.execute("select * from transfer where id = ?", (transfer_id,)).fetchone()
        if row is None:
            raise Failed(f"there is no transfer `{transfer_id}`")
        if row["status"] != "ordered":
            return {"recalled": False}
        back, account = row["amount_minor"], row["from_account"]
        bank.execute("update transfer set status = 'recalled' where id = ?", (transfer_id,))
        bank.execute("update account set balance_minor = balance_minor + ? where id = ?", (back, account))
        now = stamp(moment_of(context))
        bank.execute(
            "insert into entry values (?, ?, ?, ?)", (account, now, back, f"recall of {transfer_id}")
        )
    return {"recalled": True}


def find_transfer(key: str) -> Result:
    """Whether the bank has the transfer order of the call with this idempotency key."""
    with BANK.transaction() as bank:
        return {"found": bank.execute("select 1 from transfer where key = ?", (key,)).fetchone() is not None}


def send_message(to: str, subject: str, body: str, context: CallContext | None = None) -> Result:
    """Puts a message in the bank's outbox. Nothing leaves this machine."""
    with BANK.transaction() as bank:

        def send() -> Result:
            id_ = _next_id(bank, "message", "m")
            row = (id_, key_of(context), to, subject, body, stamp(moment_of(context)))
            bank.execute("insert into message values (?, ?, ?, ?, ?, ?)", row)
            return {"message_id": id_}

        return once(bank, "send_message", context, send)


def find_message(key: str) -> Result:
    """Whether the call with this idempotency key has put its message in the outbox."""
    with BANK.transaction() as bank:
        return {"found": bank.execute("select 1 from message where key = ?", (key,)).fetchone() is not None}


def get_account(customer: str) -> Result:
    """The customer's account."""
    with BANK.transaction() as bank:
        row = bank.execute("select * from account where customer = ?", (customer,)).fetchone()
    if row is None:
        raise Failed(
            f"the bank has no customer `{customer}`; it knows {', '.join(f'`{a[1]}`' for a in ACCOUNTS)}"
        )
    return {key: row[key] for key in ("id", "balance_minor", "currency")}


def _bills() -> Path:
    folder = place(BILLS_VARIABLE, SHIPPED_BILLS)
    if not folder.is_dir():
        raise Failed(f"the folder `{folder}` does not exist; correct {BILLS_VARIABLE}")
    return folder


def _next_id(bank: sqlite3.Connection, table: str, letter: str) -> str:
    return f"{letter}{bank.execute(f'select count(*) from {table}').fetchone()[0] + 1}"
