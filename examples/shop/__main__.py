"""Owns the shop's own command line: `PYTHONPATH=examples python -m shop …` plays the shopper beside the agent."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from engine import Failed, NotExecuted
from shop import storefront, tools


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        answer = args.act(args)
    except (Failed, NotExecuted) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(answer, indent=2))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="shop", description="The shop of the retail example.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    cart = commands.add_parser("cart", help="show a shopper's cart")
    cart.set_defaults(act=lambda args: tools.get_cart(args.shopper))
    put = commands.add_parser("set", help="set the quantity of a product in the cart")
    put.set_defaults(act=lambda args: storefront.set_quantity(args.shopper, args.sku, args.quantity))
    accept = commands.add_parser("accept", help="accept a suggestion")
    accept.set_defaults(act=lambda args: storefront.accept_suggestion(args.shopper, args.suggestion))
    move = commands.add_parser("email", help="change the mail address in the profile")
    move.set_defaults(act=lambda args: storefront.change_email(args.shopper, args.email))
    for command in (cart, put, accept, move):
        command.add_argument("shopper")
    put.add_argument("sku")
    put.add_argument("quantity", type=int)
    accept.add_argument("suggestion")
    move.add_argument("email")
    activity = commands.add_parser("activity", help="orders, holds, suggestions, outbox")
    activity.set_defaults(act=lambda _: storefront.activity())
    return parser


if __name__ == "__main__":
    sys.exit(main())
