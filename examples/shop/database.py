"""Owns the shop's database: its tables, what is in it at first, and the few look-ups that all tools share."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from done_once import DATA_FOLDER, Store, stamp

from engine import Failed

SHOP_VARIABLE = "AGENTCTL_SHOP_DB"

SCHEMA = (
    "create table product (sku text primary key, title text, price_minor int, currency text, stock int)",
    "create table shopper (id text primary key, name text, email text, address_id text, address text)",
    "create table cart (id text primary key, shopper text unique, version int, currency text)",
    "create table cart_line (cart_id text, sku text, quantity int, primary key (cart_id, sku))",
    "create table suggestion (id text primary key, key text, cart_id text, sku text, quantity int, status text,"
    " made_at text)",
    "create table hold (id text primary key, key text, cart_id text, cart_version int, status text,"
    " made_at text, lapses_at text)",
    "create table hold_line (hold_id text, sku text, quantity int)",
    "create table shop_order (id text primary key, key text unique, cart_id text, cart_version int,"
    " total_minor int, currency text, address_id text, shipping text, gift_note text, placed_at text)",
    "create table order_line (order_id text, sku text, quantity int, unit_minor int)",
    "create table mail (id text primary key, key text unique, recipient text, template text, order_id text,"
    " message text, sent_at text)",
    "create table mail_draft (id text primary key, key text, shopper text, subject text, body text, made_at text)",
    "create table audit_entry (id text primary key, key text unique, category text, note text, run text,"
    " logged_at text)",
)

PRODUCTS = (
    ("tea-sencha", "Sencha green tea, 100 g", 1150, 40),
    ("tea-assam", "Assam black tea, 250 g", 1290, 25),
    ("tea-rooibos", "Rooibos tea, 250 g", 890, 12),
    ("pot-glass", "Glass tea pot, 1 litre", 2900, 6),
    ("pot-iron", "Cast iron tea pot, 0.8 litre", 6400, 2),
    ("kettle", "Kettle with thermometer, 1.2 litres", 4900, 9),
    ("coffee-house", "House blend coffee, 500 g", 1390, 30),
    ("grinder", "Hand grinder for coffee", 5900, 4),
)
SHOPPERS = (
    ("u1", "Ann Example", "ann@example.org", "ad1", "Ann Example, 1 Mill Lane, Exampleton"),
    ("u2", "Ben Example", "ben@example.org", "ad2", "Ben Example, 7 Quay Street, Exampleton"),
)
CARTS = (("c1", "u1", 3), ("c2", "u2", 1))
CART_LINES = (("c1", "pot-glass", 1), ("c1", "tea-assam", 1), ("c2", "coffee-house", 2))


def _seed(connection: sqlite3.Connection) -> None:
    connection.executemany("insert into product values (?, ?, ?, 'EUR', ?)", PRODUCTS)
    connection.executemany("insert into shopper values (?, ?, ?, ?, ?)", SHOPPERS)
    connection.executemany("insert into cart values (?, ?, ?, 'EUR')", CARTS)
    connection.executemany("insert into cart_line values (?, ?, ?)", CART_LINES)


SHOP = Store(SHOP_VARIABLE, DATA_FOLDER / "shop.sqlite", SCHEMA, _seed)


def cart_of(connection: sqlite3.Connection, cart_id: str) -> sqlite3.Row:
    """The row of a cart. Raises Failed where there is none."""
    row = connection.execute("select * from cart where id = ?", (cart_id,)).fetchone()
    if row is None:
        raise Failed(f"there is no cart `{cart_id}`")
    return row  # type: ignore[no-any-return]  # sqlite3 types rows as Any


def shopper_of(connection: sqlite3.Connection, shopper: str) -> sqlite3.Row:
    """The row of a shopper. Raises Failed where there is none."""
    row = connection.execute("select * from shopper where id = ?", (shopper,)).fetchone()
    if row is None:
        known = ", ".join(
            f"`{row['id']}`" for row in connection.execute("select id from shopper order by id")
        )
        raise Failed(f"the shop has no shopper `{shopper}`; it knows {known}")
    return row  # type: ignore[no-any-return]  # sqlite3 types rows as Any


def lines_of(connection: sqlite3.Connection, cart_id: str) -> list[sqlite3.Row]:
    """sku, quantity, unit_minor of a cart at today's prices, by SKU."""
    return connection.execute(
        "select sku, quantity, price_minor as unit_minor from cart_line join product using (sku)"
        " where cart_id = ? order by sku",
        (cart_id,),
    ).fetchall()


def free_stock(connection: sqlite3.Connection, sku: str, now: datetime) -> int | None:
    """What is in stock and not held by anybody; None for a SKU that the shop does not have."""
    row = connection.execute("select stock from product where sku = ?", (sku,)).fetchone()
    if row is None:
        return None
    held = connection.execute(
        "select coalesce(sum(quantity), 0) from hold_line join hold on hold.id = hold_id"
        " where sku = ? and status = 'active' and lapses_at > ?",
        (sku, stamp(now)),
    ).fetchone()[0]
    return int(row["stock"]) - int(held)
