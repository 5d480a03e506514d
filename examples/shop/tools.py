"""Owns the tools of the retail agent, one function per tool of `tool_specs/retail.tools.yaml`."""

from __future__ import annotations

import re
import sqlite3
from datetime import timedelta
from typing import Any

from done_once import CallContext, Result, key_of, moment_of, once, stamp

from engine import NotExecuted
from shop.database import SHOP, cart_of, free_stock, lines_of, shopper_of

HOLD_TTL = timedelta(minutes=10)
"""The same as `holds.ttl` of `reserve_inventory`."""

_WORD = re.compile(r"\w+")


def search_products(
    query: str, max_price_minor: int | None = None, context: CallContext | None = None
) -> Result:
    """Products with a word of the query in their title, those with the most words first."""
    wanted = {word.lower() for word in _WORD.findall(query)}
    with SHOP.transaction() as shop:
        products = shop.execute("select * from product order by sku").fetchall()
    scored = [(len(wanted & set(_WORD.findall(row["title"].lower()))), row) for row in products]
    found = [
        {key: row[key] for key in ("sku", "title", "price_minor", "currency")}
        for score, row in sorted(scored, key=lambda pair: -pair[0])
        if score and (max_price_minor is None or row["price_minor"] <= max_price_minor)
    ]
    return {"items": found, "as_of": stamp(moment_of(context))}


def check_stock(skus: list[str], context: CallContext | None = None) -> Result:
    """What is free of each SKU: in stock and not on hold. `level_id` names this one answer."""
    now = moment_of(context)
    with SHOP.transaction() as shop:
        free = {sku: free_stock(shop, sku, now) for sku in skus}
    levels = [
        {"level_id": f"{sku}@{stamp(now)}", "sku": sku, "known": level is not None, "free": level or 0}
        for sku, level in free.items()
    ]
    return {"levels": levels, "as_of": stamp(now)}


def suggest_cart_change(cart_id: str, sku: str, quantity: int, context: CallContext | None = None) -> Result:
    """Puts a suggestion beside the cart; the cart stays as it is until the shopper accepts."""
    key = key_of(context)
    with SHOP.transaction() as shop:
        cart_of(shop, cart_id)
        if shop.execute("select 1 from product where sku = ?", (sku,)).fetchone() is None:
            raise NotExecuted(f"the shop has no product `{sku}`")
        standing = _newest(shop, "suggestion", key)
        if standing is not None and standing["status"] != "withdrawn":
            return {"suggestion_id": standing["id"]}
        id_ = _next_id(shop, "suggestion", "s")
        shop.execute(
            "insert into suggestion values (?, ?, ?, ?, ?, 'open', ?)",
            (id_, key, cart_id, sku, quantity, stamp(moment_of(context))),
        )
        return {"suggestion_id": id_}


def withdraw_suggestion(suggestion_id: str) -> Result:
    """Takes an open suggestion back; one that the shopper has answered, or that is gone, stays as it is."""
    with SHOP.transaction() as shop:
        done = shop.execute(
            "update suggestion set status = 'withdrawn' where id = ? and status = 'open'", (suggestion_id,)
        ).rowcount
    return {"withdrawn": done == 1}


def get_suggestion(key: str) -> Result:
    """Whether the call with this idempotency key has made its suggestion."""
    return {"found": _exists("suggestion", key)}


def reserve_inventory(cart_id: str, cart_version: int, context: CallContext | None = None) -> Result:
    """Holds what is in the cart for ten minutes, all of it or nothing.

    The same key returns the same hold while that hold stands; one that lapsed or was released is made anew.
    """
    key, now = key_of(context), moment_of(context)
    with SHOP.transaction() as shop:
        _expect_version(shop, cart_id, cart_version)
        first = _newest(shop, "hold", key)
        if first is not None and (first["status"] == "consumed" or _stands(first, stamp(now))):
            return _hold(first)
        lines = lines_of(shop, cart_id)
        if not lines:
            raise NotExecuted(f"the cart `{cart_id}` is empty")
        for line in lines:
            free = free_stock(shop, line["sku"], now) or 0
            if free < line["quantity"]:
                raise NotExecuted(f"only {free} of `{line['sku']}` are free, the cart has {line['quantity']}")
        return _new_hold(shop, key, cart_id, cart_version, lines, (stamp(now), stamp(now + HOLD_TTL)))


def release_inventory(hold_id: str) -> Result:
    """Ends a hold early; one that lapsed, was released or was used for an order stays as it is."""
    with SHOP.transaction() as shop:
        done = shop.execute(
            "update hold set status = 'released' where id = ? and status = 'active'", (hold_id,)
        ).rowcount
    return {"released": done == 1}


def get_hold(key: str, context: CallContext | None = None) -> Result:
    """Whether the call with this idempotency key has made its hold, and whether that still stands."""
    with SHOP.transaction() as shop:
        hold = _newest(shop, "hold", key)
    return {
        "found": hold is not None,
        "active": hold is not None and _stands(hold, stamp(moment_of(context))),
    }


def place_order(
    cart_id: str,
    cart_version: int,
    total_minor: int,
    address_id: str,
    shipping: str,
    gift_note: str | None = None,
    context: CallContext | None = None,
) -> Result:
    """Orders what is in the cart and charges it: stock goes down, the hold is used up, the cart is emptied."""
    with SHOP.transaction() as shop:
        return once(
            shop,
            "place_order",
            context,
            lambda: _order(
                shop, cart_id, cart_version, total_minor, address_id, shipping, gift_note, context
            ),
        )


def find_order(key: str) -> Result:
    """Whether the call with this idempotency key has placed its order."""
    return {"found": _exists("shop_order", key)}


def send_email(
    to: str, template: str, message: str, order: str | None = None, context: CallContext | None = None
) -> Result:
    """Puts a mail in the outbox of the shop. Nothing leaves this machine."""
    with SHOP.transaction() as shop:

        def send() -> Result:
            if (
                order is not None
                and not shop.execute("select 1 from shop_order where id = ?", (order,)).fetchone()
            ):
                raise NotExecuted(f"there is no order `{order}`")
            id_ = _next_id(shop, "mail", "m")
            shop.execute(
                "insert into mail values (?, ?, ?, ?, ?, ?, ?)",
                (id_, key_of(context), to, template, order, message, stamp(moment_of(context))),
            )
            return {"mail_id": id_}

        return once(shop, "send_email", context, send)


def find_mail(key: str) -> Result:
    """Whether the call with this idempotency key has put its mail in the outbox."""
    return {"found": _exists("mail", key)}


def get_cart(shopper: str) -> Result:
    """The shopper's cart at today's prices."""
    with SHOP.transaction() as shop:
        shopper_of(shop, shopper)
        cart = shop.execute("select * from cart where shopper = ?", (shopper,)).fetchone()
        lines = lines_of(shop, cart["id"])
    return {
        "id": cart["id"],
        "version": cart["version"],
        "total_minor": _total(lines),
        "currency": cart["currency"],
        "items": [dict(line) for line in lines],
    }


def get_profile(shopper: str) -> Result:
    """Where mail and parcels of the shopper go."""
    with SHOP.transaction() as shop:
        row = shopper_of(shop, shopper)
    return {"email": row["email"], "address_id": row["address_id"]}


def _order(
    shop: sqlite3.Connection,
    cart_id: str,
    cart_version: int,
    total_minor: int,
    address_id: str,
    shipping: str,
    gift_note: str | None,
    context: CallContext | None,
) -> Result:
    now, key = stamp(moment_of(context)), key_of(context)
    cart, lines = _expect_version(shop, cart_id, cart_version), lines_of(shop, cart_id)
    if _total(lines) != total_minor:
        raise NotExecuted(f"the cart costs {_total(lines)} now, not {total_minor}")
    if shopper_of(shop, cart["shopper"])["address_id"] != address_id:
        raise NotExecuted(f"`{address_id}` is not the address of the shopper `{cart['shopper']}`")
    _use_up_hold(shop, cart_id, cart_version, now)
    id_ = _next_id(shop, "shop_order", "o")
    shop.execute(
        "insert into shop_order values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            id_,
            key,
            cart_id,
            cart_version,
            total_minor,
            cart["currency"],
            address_id,
            shipping,
            gift_note,
            now,
        ),
    )
    for line in lines:
        shop.execute("insert into order_line values (?, ?, ?, ?)", (id_, *line))
        shop.execute("update product set stock = stock - ? where sku = ?", (line["quantity"], line["sku"]))
    shop.execute("delete from cart_line where cart_id = ?", (cart_id,))
    shop.execute("update cart set version = version + 1 where id = ?", (cart_id,))
    return {"order_id": id_}


def _use_up_hold(shop: sqlite3.Connection, cart_id: str, cart_version: int, now: str) -> None:
    """INVARIANT: an order takes exactly what a standing hold of the same cart version holds."""
    hold = shop.execute(
        "select id from hold where cart_id = ? and cart_version = ? and status = 'active' and lapses_at > ?",
        (cart_id, cart_version, now),
    ).fetchone()
    if hold is None:
        raise NotExecuted(f"nothing is held for version {cart_version} of the cart `{cart_id}` (any more)")
    shop.execute("update hold set status = 'consumed' where id = ?", (hold["id"],))


def _expect_version(shop: sqlite3.Connection, cart_id: str, version: int) -> sqlite3.Row:
    cart = cart_of(shop, cart_id)
    if cart["version"] != version:
        raise NotExecuted(f"the cart `{cart_id}` has version {cart['version']} now, not {version}")
    return cart


def _new_hold(
    shop: sqlite3.Connection,
    key: str,
    cart_id: str,
    cart_version: int,
    lines: list[sqlite3.Row],
    life: tuple[str, str],
) -> Result:
    id_ = _next_id(shop, "hold", "h")
    shop.execute(
        "insert into hold values (?, ?, ?, ?, 'active', ?, ?)", (id_, key, cart_id, cart_version, *life)
    )
    for line in lines:
        shop.execute("insert into hold_line values (?, ?, ?)", (id_, line["sku"], line["quantity"]))
    return {"hold_id": id_, "lapses_at": life[1]}


def _hold(row: sqlite3.Row) -> Result:
    return {"hold_id": row["id"], "lapses_at": row["lapses_at"]}


def _stands(hold: sqlite3.Row, now: str) -> bool:
    return bool(hold["status"] == "active" and hold["lapses_at"] > now)


def _total(lines: list[sqlite3.Row]) -> int:
    return sum(line["quantity"] * line["unit_minor"] for line in lines)


def _newest(shop: sqlite3.Connection, table: str, key: str) -> Any:
    return shop.execute(f"select * from {table} where key = ? order by rowid desc limit 1", (key,)).fetchone()


def _exists(table: str, key: str) -> bool:
    with SHOP.transaction() as shop:
        return _newest(shop, table, key) is not None


def _next_id(shop: sqlite3.Connection, table: str, letter: str) -> str:
    return f"{letter}{shop.execute(f'select count(*) from {table}').fetchone()[0] + 1}"
