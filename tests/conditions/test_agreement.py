"""Conditions against Google's C++ CEL, and three-valued soundness, on generated conditions."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from engine.domain.facts import PENDING, UNKNOWN, Facts, ToolHistory, Truth, Unknown
from engine.policy.conditions import compile_condition
from tests.conditions.generated import Generator
from tests.conditions.worlds import EVERY, NOW, condition, full_facts

cel = pytest.importorskip("cel_expr_python.cel")

CEL_ROOTS = ("args", "task", "principal", "state", "limits")


def _cel_env() -> Any:
    roots = {name: cel.Type.Map(cel.Type.STRING, cel.Type.DYN) for name in CEL_ROOTS}
    return cel.NewEnv(variables={**roots, "now": cel.Type.TIMESTAMP})


def _random_facts(random: Random) -> Facts:
    """Facts in the values that both evaluators take; some optional ones absent."""
    numbers = (0, 1, 2, 3, -1, 7, 4200, 2**62, 2**63 - 1, -(2**63))
    words = ("a", "red", "widget-7", "b", "")

    def rows() -> list[dict[str, Any]]:
        return [
            {"sku": random.choice(words), "quantity": random.choice(numbers)}
            for _ in range(random.randrange(3))
        ]

    args: dict[str, Any] = {
        "flag": random.random() < 0.5,
        "n": random.choice(numbers),
        "maybe": random.choice(numbers),
        "name": random.choice(words),
        "tags": [random.choice(words) for _ in range(random.randrange(4))],
        "sizes": [random.choice(numbers) for _ in range(random.randrange(4))],
        "rows": rows(),
        "argv": [random.choice(words) for _ in range(random.randrange(3))],
        "box": {"w": random.choice(numbers), "h": random.choice(numbers)},
        "body": random.choice(("", "see é👍", "plain")),
    }
    for optional in ("maybe", "n", "name"):
        if random.random() < 0.2:
            del args[optional]
    if random.random() < 0.3:
        del args["box"]["h"]
    cart = {"id": random.choice(words), "version": random.choice(numbers)}
    return Facts(
        args=args,
        task={"freeze": random.random() < 0.5},
        principal={"id": random.choice(words), "suspended": random.random() < 0.5},
        state={"cart": cart} if random.random() < 0.9 else {},
        limits={"order_cap_minor": random.choice(numbers)},
        now=NOW,
    )


def _cel_answer(expression: Any, facts: Facts) -> Truth:
    data = {name: getattr(facts, name) for name in CEL_ROOTS}
    value = expression.eval(data={**data, "now": facts.now})
    return UNKNOWN if value.type() == cel.Type.ERROR else bool(value.plain_value())


def test_the_common_subset_agrees_with_cel() -> None:
    generator, env = Generator(20260301, cel_only=True), _cel_env()
    answers = {True: 0, False: 0, UNKNOWN: 0}
    for _ in range(6000):
        text = generator.cond(3)
        ours, facts = condition(text), _random_facts(generator.random)
        expected = _cel_answer(env.compile(text), facts)
        assert ours.test(facts) is expected, (text, facts)
        answers[expected] += 1
    assert min(answers.values()) > 500, answers


def test_conditions_with_functions_of_ours_parse_as_cel() -> None:
    generator, env = Generator(7, cel_only=False), cel.NewEnv()
    for _ in range(500):
        env.compile(generator.cond(3), disable_check=True)


# --- soundness --------------------------------------------------------------------------------------------


def _blurred(value: Any, random: Random, unknowns: tuple[Unknown, ...], share: float) -> Any:
    """The value with some parts of it unknown."""
    if random.random() < share:
        return random.choice(unknowns)
    if isinstance(value, dict):
        return {key: _blurred(inner, random, unknowns, share) for key, inner in value.items()}
    if isinstance(value, list):
        return [_blurred(inner, random, unknowns, share) for inner in value]
    return value


def _opened(past: ToolHistory, random: Random) -> ToolHistory:
    """The receipts with some of the confirmed calls not settled yet."""
    settled = [call for call in past.confirmed if random.random() < 0.7]
    unsettled = [call for call in past.confirmed if call not in settled]
    counts = {**past.counts, "confirmed": len(settled)}
    return ToolHistory(settled, counts, {(1, at): call.args for at, call in enumerate(unsettled)})


def _less_known(facts: Facts, random: Random) -> Facts:
    kinds = (PENDING, UNKNOWN)
    blurred: dict[str, Any] = {
        name: {key: _blurred(value, random, kinds, 0.15) for key, value in getattr(facts, name).items()}
        for name in ("principal", "task", "state", "source", "run", "limits", "tool", "args", "grants")
    }
    blurred["grants"] = {
        name: [{key: _blurred(value, random, kinds, 0.3) for key, value in row.items()} for row in rows]
        for name, rows in facts.grants.items()
    }
    history = {name: _opened(past, random) for name, past in facts.history.items()}
    origin = facts.origin if random.random() < 0.7 else None
    return replace(facts, **blurred, history=history, origin=origin)


def test_knowing_less_never_changes_an_answer_but_to_unknown() -> None:
    generator = Generator(11, cel_only=False)
    kept = lost = 0
    for _ in range(4000):
        test = condition(generator.cond(3)).test
        known = test(full_facts())
        blurred = test(_less_known(full_facts(), generator.random))
        if isinstance(blurred, Unknown):
            lost += 1
        else:
            kept += 1
            assert blurred is known
    assert min(kept, lost) > 500


def test_waiting_for_an_argument_leaves_open_what_an_unknown_argument_leaves_open() -> None:
    generator = Generator(13, cel_only=False)
    for _ in range(4000):
        test, facts = condition(generator.cond(3)).test, full_facts()
        names = {name for name in facts.args if generator.random.random() < 0.4}
        waiting, unknown = (
            test(
                replace(
                    facts, args={name: kind if name in names else value for name, value in facts.args.items()}
                )
            )
            for kind in (PENDING, UNKNOWN)
        )
        assert waiting is unknown or (waiting is PENDING and unknown is UNKNOWN)


def test_generated_conditions_have_no_error() -> None:
    generator = Generator(17, cel_only=False)
    for _ in range(500):
        text = generator.cond(3)
        found, faults = compile_condition(text, EVERY)
        assert found is not None, (text, faults)
