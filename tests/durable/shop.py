"""Owns the worlds of the durable-execution tests: the shop of the loop's bench, with other rules over its letters."""

from __future__ import annotations

from typing import Any

from engine.domain.actors import Actor
from engine.domain.events import PolicyLoaded
from engine.domain.policy import Policy
from engine.runtime import signals
from engine.runtime.library import bundle_text
from tests.runtime.bench import ME, POLICY, TOOLS, Bench, Shop, Turn

LETTERS = (
    "  - {id: letters, effect: ask, roles: [clerk], tools: [send_letter], "
    "approval: {by: {roles: [lead]}, expires: 90s}}"
)
COPIES = TOOLS.replace(
    "params: {to: {type: id}}", "params: {to: {type: id}, copies: {type: int, min: 1, max: 500}}"
)
"""Letters with a number of copies."""


def person(name: str, *roles: str, issuer: str = "local") -> Actor:
    return Actor(type="person", id=name, issuer=issuer, roles=roles)


def asking(approval: str, *more: str, policy: str = POLICY) -> str:
    """The shop policy in which letters are asked about as `approval` says; `more` are further rules."""
    assert LETTERS in policy
    rule = f"  - {{id: letters, effect: ask, roles: [clerk], tools: [send_letter], approval: {{{approval}}}}}"
    return policy.replace(LETTERS, "\n".join([rule, *(f"  - {{{each}}}" for each in more)]))


def post_room() -> Shop:
    """A shop that notes the number of copies."""
    shop = Shop()

    async def send_letter(to: str, copies: int, context: Any) -> object:
        shop.effect(f"letter {to} x{copies}", context)
        return {"sent": True}

    shop.special["send_letter"] = send_letter
    return shop


def letters(*turns: Turn, approval: str, more: tuple[str, ...] = (), **options: Any) -> Bench:
    """A Run that proposes letters with copies."""
    return Bench(*turns, policy=asking(approval, *more), tools=COPIES, shop=post_room(), **options)


def letter(to: str = "ann", copies: int = 1) -> tuple[str, dict[str, Any]]:
    return ("send_letter", {"to": to, "copies": copies})


def load(bench: Bench, newer: Policy) -> None:
    """A newer version of the policy becomes known to the Run."""
    bundle = bench.store.put_blob(bundle_text(newer))
    body = PolicyLoaded(policy=newer.id, digest=newer.digest, bundle=bundle, version=newer.version)
    signals.append(bench.store, bench.clock, bench.run, ME, lambda state: [body])
