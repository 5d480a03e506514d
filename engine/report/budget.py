"""Owns how budgets are shown: what is left, and what was used."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from engine.domain.canonical import JsonObject
from engine.domain.diagnostics import many
from engine.domain.facts import Value
from engine.domain.policy import Budgets
from engine.domain.state import Spent
from engine.policy.budgets import left
from engine.report.words import span

Left = Mapping[str, Value]
"""What is left by budget, as `engine.policy.budgets.left` says."""


def left_line(rest: Left, before: Left | None = None) -> str:
    """`38 turns, 148 calls, 3.00 USD, 598,230 input and 60,000 output tokens, 44m59s`.

    Beside an earlier reading: only what has changed since; the time counts as changed once a minute is over.
    """
    tokens = [f"{rest[f'tokens_{way}']:,} {way}" for way in ("input", "output") if f"tokens_{way}" in rest]
    parts = {
        ("turns",): many(rest["turns"], "turn"),
        ("calls",): many(rest["calls"], "call"),
        ("cost_usd",): f"{rest['cost_usd']} USD" if "cost_usd" in rest else "cost unknown",
        ("tokens_input", "tokens_output"): f"{' and '.join(tokens)} tokens" if tokens else "",
        ("questions_to_user",): many(rest["questions_to_user"], "question")
        if "questions_to_user" in rest
        else "",
        ("wall_time",): span(rest["wall_time"]),
    }
    return ", ".join(
        part for names, part in parts.items() if part and (before is None or _changed(names, rest, before))
    )


def _changed(names: tuple[str, ...], rest: Left, before: Left) -> bool:
    return any(_coarse(rest.get(name)) != _coarse(before.get(name)) for name in names)


def _coarse(value: object) -> object:
    return value // timedelta(minutes=1) if isinstance(value, timedelta) else value


def budget_lines(budgets: Budgets, spent: Spent) -> list[str]:
    """A line for each budget: used of how much."""
    rows: list[tuple[str, str, str]] = [
        ("turns", str(spent.turns), str(budgets.turns)),
        ("calls", str(spent.calls), str(budgets.calls_total)),
        ("cost", "unknown" if spent.cost_unknown else f"{spent.cost_usd} USD", f"{budgets.cost_usd} USD"),
        ("wall time", span(timedelta(seconds=spent.wall_seconds)), span(budgets.wall_time)),
    ]
    for name, used, cap in (
        ("input tokens", spent.input_tokens, budgets.tokens_input),
        ("output tokens", spent.output_tokens, budgets.tokens_output),
        ("questions", spent.questions, budgets.questions_to_user),
        ("turns without progress", spent.idle_turns, budgets.no_progress_turns),
        ("invalid calls in a row", spent.invalid_in_a_row, budgets.invalid_calls_in_a_row),
    ):
        if cap is not None:
            rows.append((name, f"{used:,}", f"{cap:,}"))
    rows += [
        (f"calls of {tool}", str(spent.per_tool.get(tool, 0)), str(cap))
        for tool, cap in sorted(budgets.calls_per_tool.items())
    ]
    return [f"{name:<24} {used} of {cap}" for name, used, cap in rows]


def budgets_json(budgets: Budgets, spent: Spent) -> JsonObject:
    """What is left of each budget; money as text, time in seconds."""
    rest = left(budgets, spent)
    return {
        name: value.total_seconds() if isinstance(value, timedelta) else value
        if isinstance(value, int) else str(value)
        for name, value in rest.items()
    }  # fmt: skip
