"""Owns what each domain can tell of a lost write: a look at the record that the write would have changed.

Each of these writes moves a record into a state that it was not in before: the domain refuses the write otherwise
(but for a reservation that is cancelled again, which no task does). So the record tells whether it happened. What
only adds (a booking, a certificate), flips (a phone's switches) or sets what may have been so before (an address, the
bags of a reservation) leaves nothing that tells: those are for an operator.
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


def _order_is(status: str) -> Callable[[Environment, Args], bool]:
    return lambda made, args: bool(made.tools.db.orders[args["order_id"]].status == status)


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
    },
    "retail": {
        "was_order_cancelled": Probe("cancel_pending_order", _order_is("cancelled")),
        "was_exchange_requested": Probe("exchange_delivered_order_items", _order_is("exchange requested")),
        "was_return_requested": Probe("return_delivered_order_items", _order_is("return requested")),
        "were_items_modified": Probe("modify_pending_order_items", _order_is("pending (item modified)")),
        "was_payment_modified": Probe("modify_pending_order_payment", _paid_by),
    },
    "telecom": {
        "was_line_suspended": Probe("suspend_line", _line_is("Suspended")),
        "was_line_resumed": Probe("resume_line", _line_is("Active")),
        "was_payment_requested": Probe("send_payment_request", _bill_awaits),
    },
}
