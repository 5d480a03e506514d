"""What the SMT solver is asked for: relations between facts, arithmetic, paths, lists, and never more than holds."""

from __future__ import annotations

import pytest

from engine.domain.facts import Facts
from engine.domain.types import TypeName, ValueType
from engine.policy.solver import FALSE, TRUE, Argument, Says, Solver, View, facts_of, finite, is_so, smt
from tests.conditions.worlds import condition, full_facts

pytest.importorskip("z3")


def impossible(text: str, truth: int = TRUE) -> bool:
    return smt.solve(Says(condition(text).expr, truth), View()).impossible


@pytest.mark.parametrize(
    "text",
    [
        "args.n < state.cart.version && args.n > state.cart.version",
        "args.n + 1 < args.n",
        "args.n > 3 && args.n * 2 < 6",
        "args.amount > decimal('1.50') && args.amount + decimal('1') < decimal('2.50')",
        "args.at + duration('1h') < now && age(args.at) < duration('30m')",
        "args.name == state.cart.id && args.name == 'a' && state.cart.id == 'b'",
        "under(args.path, 'src/lib') && !under(args.path, 'src')",
        "size(args.tags) < 4 && args.tags.exists(x, x == 'a') && args.tags.all(x, x != 'a')",
        "size(args.tags) == 0 && args.tags.exists(x, x == 'a')",
        "'a' in args.tags && size(args.tags) == 1 && args.tags[0] == 'b'",
        "done('run_check', {'check': 'unit'}) && !done('run_check', {'check': 'unit'})",
        "'user' in origin(args.name) && !('user' in origin(args.name))",
        "args.maybe == 3 && !has(args.maybe)",
        "args.small > 9",
    ],
)
def test_what_cannot_be_is_impossible(text: str) -> None:
    assert impossible(text)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "args.tags[0] != 'z' && args.tags[1] != 'z' && args.tags[2] != 'z' && 'z' in args.tags",
            {"tags": ["a", "b", "c", "z"]},
        ),
        (
            "args.sizes[0] < 9 && args.sizes[1] < 9 && args.sizes[2] < 9 && args.sizes.exists(x, x > 9)",
            {"sizes": [1, 2, 3, 10]},
        ),
        ("size(args.tags) > 4 && args.tags[4] == 'e'", {"tags": ["a", "b", "c", "d", "e"]}),
        ("under(args.path, 'src') && args.path != 'src'", {"path": "src/a"}),
    ],
)
def test_what_can_be_is_not_also_beyond_three_elements(text: str, facts: dict[str, object]) -> None:
    known = full_facts()
    known.args = {**known.args, **facts}
    assert condition(text).test(known) is True
    assert not impossible(text)
    assert not finite.search(Says(condition(text).expr, TRUE), View()).impossible


def test_a_relation_has_an_example_that_the_evaluator_confirms() -> None:
    claim = Says(condition("args.n == state.cart.version + 2 && state.cart.version > 40").expr, TRUE)
    example = Solver().example(claim, View())
    assert example is not None
    assert is_so(claim, example.facts, View())
    assert example.chosen["args.n"] == example.chosen["state.cart.version"] + 2


def test_without_an_example_there_is_none() -> None:
    assert Solver().example(Says(condition("args.n > 3 && args.n < 4").expr, TRUE), View()) is None


@pytest.mark.parametrize(
    ("text", "constant"),
    [
        ("size(args.tags) >= 0", True),
        ("args.small < 1", False),
        ("args.tags.all(x, x == x)", True),
        ("args.n == state.cart.version", None),
        ("args.n - args.n == 0", True),
        ("args.flag", None),
    ],
)
def test_a_condition_is_constant_or_not(text: str, constant: bool | None) -> None:
    assert Solver().constant(condition(text).expr, View()) is constant


def test_a_required_argument_is_there() -> None:
    expr = condition("has(args.n)").expr
    assert Solver().constant(expr, View(args={"n": Argument(ValueType(TypeName.INT), required=True)})) is True
    assert (
        Solver().constant(expr, View(args={"n": Argument(ValueType(TypeName.INT), required=False)})) is None
    )


def test_limits_are_the_values_that_they_have_here() -> None:
    expr = condition("args.small > limits.order_cap_minor").expr
    assert Solver().constant(expr, View(limits={"order_cap_minor": 20})) is False
    assert Solver().constant(expr, View(limits={"order_cap_minor": 5})) is None


def test_a_world_of_single_facts_becomes_facts() -> None:
    claim = Says(condition("args.argv[1] == 'status' && size(args.tags) == 2 && !args.flag").expr, TRUE)
    found = finite.search(claim, View())
    assert found.world is not None
    facts = facts_of(found.world, found.terms)
    assert isinstance(facts, Facts)
    assert is_so(claim, facts, View())
    assert not is_so(Says(claim.expr, FALSE), facts, View())
