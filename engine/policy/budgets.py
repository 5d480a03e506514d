"""Owns what is left of each budget: nothing here has a default, and unknown is not zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from engine.domain.events import Reservation
from engine.domain.facts import Value
from engine.domain.policy import Budgets, ModelUse, Policy
from engine.domain.state import Spent

DEFAULT_OUTPUT_TOKENS: Final = 4096
"""Reserved for an answer where the policy names no `max_output_tokens`."""


class Exhausted(NamedTuple):
    """A budget that does not allow the next step; `name` as written in the policy (`tokens.input`)."""

    name: str
    detail: str


def of(policies: Sequence[Policy]) -> Budgets:
    """The budgets in force: of each the smallest that any of the policies states."""
    budgets = policies[0].budgets
    for policy in policies[1:]:
        budgets = _smaller(budgets, policy.budgets)
    return budgets


def _smaller(one: Budgets, two: Budgets) -> Budgets:
    changes: dict[str, Any] = {}
    for field in fields(Budgets):
        mine, theirs = getattr(one, field.name), getattr(two, field.name)
        if field.name == "calls_per_tool":
            changes[field.name] = {
                tool: min(cap for cap in (mine.get(tool), theirs.get(tool)) if cap is not None)
                for tool in mine.keys() | theirs.keys()
            }
        elif theirs is not None:
            changes[field.name] = theirs if mine is None else min(mine, theirs)
    return replace(one, **changes)


def left(budgets: Budgets, spent: Spent) -> dict[str, Value]:
    """What is left, never below zero; names and types as in TYPES."""
    found: dict[str, Value] = {
        "turns": max(0, budgets.turns - spent.turns),
        "wall_time": max(timedelta(0), budgets.wall_time - timedelta(seconds=spent.wall_seconds)),
        "calls": max(0, budgets.calls_total - spent.calls),
    }
    if not spent.cost_unknown:
        found["cost_usd"] = max(Decimal(0), budgets.cost_usd - spent.cost_usd)
    for name, cap, used in (
        ("tokens_input", budgets.tokens_input, spent.input_tokens),
        ("tokens_output", budgets.tokens_output, spent.output_tokens),
        ("questions_to_user", budgets.questions_to_user, spent.questions),
    ):
        if cap is not None:
            found[name] = max(0, cap - used)
    return found


def exhausted(budgets: Budgets, spent: Spent) -> Exhausted | None:
    """The first budget that forbids another model turn, or None. Checked before a model is asked."""
    for name, cap, used in (
        ("turns", budgets.turns, spent.turns),
        ("calls.total", budgets.calls_total, spent.calls),
        ("tokens.input", budgets.tokens_input, spent.input_tokens),
        ("tokens.output", budgets.tokens_output, spent.output_tokens),
        ("invalid_calls_in_a_row", budgets.invalid_calls_in_a_row, spent.invalid_in_a_row),
        ("no_progress_turns", budgets.no_progress_turns, spent.idle_turns),
    ):
        if cap is not None and used >= cap:
            return Exhausted(name, f"{used} of {cap} used")
    if spent.cost_usd > budgets.cost_usd or (spent.cost_usd == budgets.cost_usd and spent.cost_usd > 0):
        return Exhausted("cost_usd", f"{spent.cost_usd} of {budgets.cost_usd} USD used")
    wall = timedelta(seconds=spent.wall_seconds)
    if wall >= budgets.wall_time:
        return Exhausted("wall_time", f"{wall} of {budgets.wall_time} used")
    return None


def output_tokens(use: ModelUse, budgets: Budgets, spent: Spent) -> int:
    """How long the answer of one attempt may be: what the policy allows, at most what is left."""
    wanted = use.max_output_tokens or DEFAULT_OUTPUT_TOKENS
    if budgets.tokens_output is None:
        return wanted
    return max(0, min(wanted, budgets.tokens_output - spent.output_tokens))


def reserve(
    budgets: Budgets,
    spent: Spent,
    use: ModelUse,
    input_tokens: int,
    cost_usd: Decimal | None,
    *,
    free: bool = False,
) -> Reservation | Exhausted:
    """What one model attempt may cost at most, or the budget that does not allow it.

    `cost_usd` is the price of `input_tokens` and of `output_tokens(…)`; None: the model has no known price,
    which a money budget refuses unless the model is `free` (scripted and replay models).
    """
    answer = output_tokens(use, budgets, spent)
    if budgets.tokens_input is not None and spent.input_tokens + input_tokens > budgets.tokens_input:
        return Exhausted(
            "tokens.input",
            f"the request has {input_tokens}, {budgets.tokens_input - spent.input_tokens} are left",
        )
    if answer <= 0:
        return Exhausted("tokens.output", f"{spent.output_tokens} of {budgets.tokens_output} used")
    if free:
        return Reservation(input_tokens=input_tokens, output_tokens=answer, cost_usd=cost_usd or Decimal(0))
    if cost_usd is None:
        return Exhausted("cost_usd", f"`{use.id}` has no known price; state one in `agentctl.yaml: prices`")
    if spent.cost_usd + cost_usd > budgets.cost_usd:
        return Exhausted(
            "cost_usd", f"the attempt may cost {cost_usd} USD, {budgets.cost_usd - spent.cost_usd} are left"
        )
    return Reservation(input_tokens=input_tokens, output_tokens=answer, cost_usd=cost_usd)


def near(budgets: Budgets, spent: Spent, input_tokens: int, twice_usd: Decimal | None) -> bool:
    """True where a request of twice this size would not fit what is left: its exact size decides.

    `twice_usd` is the price of an attempt with twice the input; None: no known price.
    """
    if budgets.tokens_input is not None and input_tokens * 2 > budgets.tokens_input - spent.input_tokens:
        return True
    return twice_usd is not None and twice_usd > budgets.cost_usd - spent.cost_usd


def tool_calls_left(budgets: Budgets, spent: Spent, tool: str) -> int | None:
    """Calls of one tool that may still be dispatched or held; None: no cap."""
    cap = budgets.calls_per_tool.get(tool)
    return None if cap is None else max(0, cap - spent.per_tool.get(tool, 0))
