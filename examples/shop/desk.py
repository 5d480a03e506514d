"""Owns the tools of the shop's service desk: profiles, mail drafts and the audit trail."""

from __future__ import annotations

from done_once import CallContext, Result, key_of, moment_of, once, stamp

from shop.database import SHOP, shopper_of


def fetch_user_profile(shopper: str) -> Result:
    """Name, mail address and postal address of a shopper."""
    with SHOP.transaction() as shop:
        row = shopper_of(shop, shopper)
    return {key: row[key] for key in ("name", "email", "address_id", "address")} | {"profile_id": row["id"]}


def create_draft(shopper: str, subject: str, body: str, context: CallContext | None = None) -> Result:
    """Keeps a mail to the shopper as a draft that a person can open; nothing is sent."""
    with SHOP.transaction() as shop:

        def keep() -> Result:
            shopper_of(shop, shopper)
            made = shop.execute("select count(*) from done where tool = 'create_draft'").fetchone()[0]
            id_ = f"d{made + 1}"
            row = (id_, key_of(context), shopper, subject, body, stamp(moment_of(context)))
            shop.execute("insert into mail_draft values (?, ?, ?, ?, ?, ?)", row)
            return {"draft_id": id_}

        return once(shop, "create_draft", context, keep)


def find_draft(key: str) -> Result:
    """Whether the call with this idempotency key has made its draft, be it deleted since or not."""
    with SHOP.transaction() as shop:
        return {
            "found": bool(
                shop.execute("select 1 from done where tool = 'create_draft' and key = ?", (key,)).fetchone()
            )
        }


def delete_draft(draft_id: str) -> Result:
    """Removes a draft; one that is gone stays gone."""
    with SHOP.transaction() as shop:
        return {"deleted": shop.execute("delete from mail_draft where id = ?", (draft_id,)).rowcount == 1}


def log_event(category: str, note: str, context: CallContext | None = None) -> Result:
    """Adds an entry to the audit trail, which nothing here can change or remove."""
    with SHOP.transaction() as shop:

        def add() -> Result:
            id_ = f"a{shop.execute('select count(*) from audit_entry').fetchone()[0] + 1}"
            run = "" if context is None else str(context.run)
            row = (id_, key_of(context), category, note, run, stamp(moment_of(context)))
            shop.execute("insert into audit_entry values (?, ?, ?, ?, ?, ?)", row)
            return {"entry_id": id_}

        return once(shop, "log_event", context, add)


def find_event(key: str) -> Result:
    """Whether the call with this idempotency key is in the audit trail."""
    with SHOP.transaction() as shop:
        return {"found": bool(shop.execute("select 1 from audit_entry where key = ?", (key,)).fetchone())}
