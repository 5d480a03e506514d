"""Owns random facts for the conditions of `tests.conditions.worlds`, some of them missing."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

from engine.domain.facts import Facts, PastCall, ToolHistory
from tests.conditions.worlds import NOW, full_facts

_INTS = (0, 1, -1, 2, 5, 7, 3, 4200, 2**62, 2**63 - 1, -(2**63))
_WORDS = ("a", "red", "widget-7", "", "é👍", "other")


def random_facts(random: Random) -> Facts:
    facts = full_facts()
    facts.args = _holes(random, {**facts.args, **_args(random)}, 0.15)
    facts.task = _holes(
        random,
        {**facts.task, "channel": random.choice(("web", "kiosk")), "freeze": random.random() < 0.5},
        0.1,
    )
    cart = {**facts.state["cart"], "version": random.choice(_INTS), "id": random.choice(_WORDS)}
    facts.state = {"cart": _holes(random, cart, 0.1)}
    facts.principal = _holes(random, {**facts.principal, "suspended": random.random() < 0.5}, 0.1)
    facts.grants = random.choice(
        (
            {},
            {
                "documents": [{"collection": random.choice(("prospectus", "annual_report"))}],
                "host": [{"level": 2}],
            },
        )
    )
    facts.now = NOW + timedelta(seconds=random.choice((-3600, 0, 1, 86_400)))
    if random.random() < 0.3:
        facts.history = {}
    if random.random() < 0.3:
        facts.history = {"run_check": _open(random)}
    if random.random() < 0.2:
        facts.origin = None
    return facts


def _open(random: Random) -> ToolHistory:
    past = [PastCall({"check": random.choice(("unit", "lint"))}, {"verdict": "pass"}, NOW)]
    return ToolHistory(past, {"confirmed": 1}, {(1, 1): {"check": random.choice(("unit", "lint"))}})


def _args(random: Random) -> dict[str, Any]:
    many = range(random.randrange(6))
    return {
        "flag": random.random() < 0.5,
        "n": random.choice(_INTS),
        "maybe": random.choice(_INTS),
        "name": random.choice(_WORDS),
        "path": random.choice(("src/main.py", "src", "src/u1/x", "docs/a", "srcs")),
        "mail": random.choice(("ann@example.org", "bob@other.example")),
        "tags": [random.choice(_WORDS) for _ in many],
        "sizes": [random.choice(_INTS) for _ in many],
        "rows": [{"sku": random.choice(_WORDS), "quantity": random.choice(_INTS)} for _ in many],
        "box": {"w": random.choice(_INTS)} if random.random() < 0.5 else {"w": 1, "h": random.choice(_INTS)},
        "body": random.choice(("", "plain", "see https://evil.example/x")),
    }


def _holes(random: Random, table: dict[str, Any] | Any, chance: float) -> dict[str, Any]:
    return {key: value for key, value in table.items() if random.random() >= chance}
