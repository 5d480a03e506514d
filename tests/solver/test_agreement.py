"""What the evaluator answers must be possible for the solver, and where facts are fixed nothing else may be."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from engine.domain.conditions import Condition, Read
from engine.domain.facts import Facts, Unknown
from engine.domain.types import TypeName
from engine.policy.conditions import compile_value
from engine.policy.conditions.values import converter
from engine.policy.solver import ANY, Says, View, finite, smt
from engine.policy.solver.kleene import bit
from tests.conditions.generated import Generator
from tests.conditions.worlds import EVERY, condition
from tests.solver.facts import random_facts

z3 = pytest.importorskip("z3")
VIEW = View()


def pairs(seed: int, conditions: int, states: int) -> list[tuple[Condition, list[Facts]]]:
    generator, random = Generator(seed, cel_only=False), Random(seed)
    return [
        (condition(generator.cond(3)), [random_facts(random) for _ in range(states)])
        for _ in range(conditions)
    ]


def test_no_answer_of_the_evaluator_is_impossible_for_the_search() -> None:
    for found, states in pairs(1, 400, 8):
        possible = {truth: not finite.search(Says(found.expr, truth), VIEW).impossible for truth in (1, 2, 4)}
        for facts in states:
            assert possible[bit(found.test(facts))], (found.text, facts)


def test_worlds_that_the_search_finds_are_worlds_of_the_evaluator() -> None:
    from engine.policy.solver import facts_of, is_so

    checked = 0
    for found, _ in pairs(2, 400, 0):
        for truth in (1, 2):
            claim = Says(found.expr, truth)
            outcome = finite.search(claim, VIEW)
            if outcome.exact and not any("done" in name or "origin" in name for name in outcome.world or {}):
                assert outcome.world is not None
                facts = facts_of(outcome.world, outcome.terms)
                checked += is_so(claim, facts, VIEW)
    assert checked > 100


@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_with_all_facts_fixed_the_encoding_agrees_with_the_evaluator(seed: int) -> None:
    from engine.policy.solver.encoder import Encoder

    certain = 0
    for found, states in pairs(seed, 250 if seed == 3 else 1500, 4):
        encoder = Encoder(VIEW)
        formula = {truth: encoder.claim(Says(found.expr, truth)) for truth in (1, 2, 4)}
        for facts in states:
            answer = bit(found.test(facts))
            fixed = [*encoder.side, *_fixed(encoder, facts)]
            assert _possible(fixed, formula[answer]), (found.text, facts)
            certain += not _possible(fixed, formula[1 if answer != 1 else 2])
    assert certain > 300


def _possible(fixed: list[Any], formula: Any) -> bool:
    solver = z3.Solver()
    solver.set("rlimit", 400_000)
    solver.add(*fixed, formula)
    return bool(solver.check() != z3.unsat)


def _fixed(encoder: Any, facts: Facts) -> list[Any]:
    from engine.policy.solver.sorts import literal

    found = []
    for name, (fact, type_) in encoder.terms.items():
        expr = encoder.reads.get(name)
        if name == "now":
            found += [fact.known, fact.value == literal(facts.now, type_)]
        if not isinstance(expr, Read) or expr.path[0] == "grant":
            continue
        path, _ = compile_value(name, EVERY)
        if path is None:
            continue
        value = converter(type_)(path.read(facts))
        if isinstance(value, Unknown):
            found.append(z3.Not(fact.known))
        elif type_.name is not TypeName.RECORD:
            found += [fact.known, fact.value == literal(value, type_)]
    return found


def test_every_truth_value_together_is_no_restriction() -> None:
    for found, _ in pairs(5, 60, 0):
        assert not finite.search(Says(found.expr, ANY), VIEW).impossible
        assert finite.search(Says(found.expr, 0), VIEW).impossible
        assert not smt.solve(Says(found.expr, ANY), VIEW).impossible
