"""Owns what each domain can tell of a lost write: a look at the record that the write would have changed.

All of these writes set a record to what the arguments say, so the record tells whether it happened. What only adds
(a booking, a certificate, a refuelling) or flips (the telecom user's switches) leaves nothing that tells one from
two: those are for an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tau2.environment.environment import Environment

Args = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Probe:
    settles: str
    """The tool whose unknown outcome it settles; it is asked with that call's arguments."""
    found: Callable[[Environment, Args], bool]


def _is_cancelled(made: Environment, args: Args) -> bool:
    return bool(made.tools.db.reservations[args["reservation_id"]].status == "cancelled")


def _has_bags(made: Environment, args: Args) -> bool:
    held = made.tools.db.reservations[args["reservation_id"]]
    return bool(
        held.total_baggages == args["total_baggages"] and held.nonfree_baggages == args["nonfree_baggages"]
    )


def _has_flights(made: Environment, args: Args) -> bool:
    held = made.tools.db.reservations[args["reservation_id"]]
    wanted = [(each["flight_number"], each["date"]) for each in args["flights"]]
    return bool(
        held.cabin == args["cabin"] and [(each.flight_number, each.date) for each in held.flights] == wanted
    )


def _has_passengers(made: Environment, args: Args) -> bool:
    held = made.tools.db.reservations[args["reservation_id"]]
    return [each.model_dump() for each in held.passengers] == [dict(each) for each in args["passengers"]]


def _order_is(status: str) -> Callable[[Environment, Args], bool]:
    return lambda made, args: bool(made.tools.db.orders[args["order_id"]].status == status)


ADDRESS = ("address1", "address2", "city", "state", "country", "zip")


def _order_goes_to(made: Environment, args: Args) -> bool:
    address = made.tools.db.orders[args["order_id"]].address
    return all(getattr(address, name) == args[name] for name in ADDRESS)


def _user_lives_at(made: Environment, args: Args) -> bool:
    address = made.tools.db.users[args["user_id"]].address
    return all(getattr(address, name) == args[name] for name in ADDRESS)


def _paid_by(made: Environment, args: Args) -> bool:
    history = made.tools.db.orders[args["order_id"]].payment_history
    paid = [each.payment_method_id for each in history if each.transaction_type == "payment"]
    return bool(paid and paid[-1] == args["payment_method_id"])


def _line(made: Environment, args: Args) -> Any:
    return next(each for each in made.tools.db.lines if each.line_id == args["line_id"])


def _line_is(status: str) -> Callable[[Environment, Args], bool]:
    return lambda made, args: bool(_line(made, args).status.value == status)


def _bill_awaits(made: Environment, args: Args) -> bool:
    bills = made.tools.db.bills
    return any(each.bill_id == args["bill_id"] and each.status.value == "Awaiting Payment" for each in bills)


PROBES: dict[str, dict[str, Probe]] = {
    "airline": {
        "was_reservation_cancelled": Probe("cancel_reservation", _is_cancelled),
        "were_baggages_updated": Probe("update_reservation_baggages", _has_bags),
        "were_flights_updated": Probe("update_reservation_flights", _has_flights),
        "were_passengers_updated": Probe("update_reservation_passengers", _has_passengers),
    },
    "retail": {
        "was_order_cancelled": Probe("cancel_pending_order", _order_is("cancelled")),
        "was_exchange_requested": Probe("exchange_delivered_order_items", _order_is("exchange requested")),
        "was_return_requested": Probe("return_delivered_order_items", _order_is("return requested")),
        "were_items_modified": Probe("modify_pending_order_items", _order_is("pending (item modified)")),
        "was_order_address_modified": Probe("modify_pending_order_address", _order_goes_to),
        "was_payment_modified": Probe("modify_pending_order_payment", _paid_by),
        "was_user_address_modified": Probe("modify_user_address", _user_lives_at),
    },
    "telecom": {
        "was_line_suspended": Probe("suspend_line", _line_is("Suspended")),
        "was_line_resumed": Probe("resume_line", _line_is("Active")),
        "was_roaming_enabled": Probe(
            "enable_roaming", lambda made, args: bool(_line(made, args).roaming_enabled)
        ),
        "was_roaming_disabled": Probe(
            "disable_roaming", lambda made, args: not _line(made, args).roaming_enabled
        ),
        "was_payment_requested": Probe("send_payment_request", _bill_awaits),
    },
}
