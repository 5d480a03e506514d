"""Owns what shoppers do in the shop themselves, beside the agent: edit the cart, answer suggestions, move."""

from __future__ import annotations

from done_once import Result

from engine import NotExecuted
from shop.database import SHOP, shopper_of
from shop.tools import get_cart


def set_quantity(shopper: str, sku: str, quantity: int) -> Result:
    """Puts a quantity of a product in the shopper's cart, 0 takes it out. Returns the cart."""
    with SHOP.transaction() as shop:
        shopper_of(shop, shopper)
        cart = shop.execute("select id from cart where shopper = ?", (shopper,)).fetchone()["id"]
        if shop.execute("select 1 from product where sku = ?", (sku,)).fetchone() is None:
            raise NotExecuted(f"the shop has no product `{sku}`")
        shop.execute("delete from cart_line where cart_id = ? and sku = ?", (cart, sku))
        if quantity > 0:
            shop.execute("insert into cart_line values (?, ?, ?)", (cart, sku, quantity))
        shop.execute("update cart set version = version + 1 where id = ?", (cart,))
    return get_cart(shopper)


def accept_suggestion(shopper: str, suggestion_id: str) -> Result:
    """Does what an open suggestion says. Returns the cart."""
    with SHOP.transaction() as shop:
        row = shop.execute(
            "select suggestion.* from suggestion join cart on cart.id = cart_id"
            " where suggestion.id = ? and shopper = ? and status = 'open'",
            (suggestion_id, shopper),
        ).fetchone()
        if row is None:
            raise NotExecuted(f"the shopper `{shopper}` has no open suggestion `{suggestion_id}`")
        shop.execute("update suggestion set status = 'accepted' where id = ?", (suggestion_id,))
    return set_quantity(shopper, row["sku"], row["quantity"])


def change_email(shopper: str, email: str) -> Result:
    """Stores another mail address in the shopper's profile."""
    with SHOP.transaction() as shop:
        shopper_of(shop, shopper)
        shop.execute("update shopper set email = ? where id = ?", (email, shopper))
    return {"shopper": shopper, "email": email}


def activity() -> Result:
    """What the shop has done so far: orders, holds, suggestions and the outbox, as the database has them."""
    with SHOP.transaction() as shop:
        return {
            "orders": [dict(row) for row in shop.execute("select * from shop_order order by rowid")],
            "holds": [dict(row) for row in shop.execute("select * from hold order by rowid")],
            "suggestions": [dict(row) for row in shop.execute("select * from suggestion order by rowid")],
            "outbox": [dict(row) for row in shop.execute("select * from mail order by rowid")],
        }
