"""Owns the question to the SMT solver, which is there if the extra `prove` is installed."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from engine.domain.facts import UNKNOWN, Value
from engine.policy.solver.claims import Claim, View
from engine.policy.solver.finite import Outcome
from engine.policy.solver.sorts import plain, z3

if TYPE_CHECKING:
    from engine.policy.solver.encoder import Encoder

EFFORT: Final = 400_000
"""Steps of the solver per question: a count, so that every machine gives the same answer."""


@cache
def is_installed() -> bool:
    return find_spec("z3") is not None


def solve(claim: Claim, view: View) -> Outcome:
    """Impossible, a world in which the claim may hold, or neither where the solver gave up."""
    from engine.policy.solver.encoder import Encoder  # most questions never come to the solver

    encoder = Encoder(view)
    formula = encoder.claim(claim)
    solver = z3.Solver()
    solver.set("rlimit", EFFORT)
    solver.add(*encoder.side, formula)
    answer = solver.check()
    if answer == z3.unsat:
        return Outcome(impossible=True)
    if answer != z3.sat:
        return Outcome()
    return Outcome(world=_world(encoder, solver.model()), terms=dict(encoder.reads))


def _world(encoder: Encoder, model: Any) -> dict[str, Value]:
    world: dict[str, Value] = {
        name: z3.is_true(model.eval(flag, model_completion=True))
        for name, flag in encoder.flags.items()
        if name.startswith(("role:", "grant:"))
    }
    for name, (fact, type_) in encoder.terms.items():
        known = z3.is_true(model.eval(fact.known, model_completion=True))
        world[name] = plain(model.eval(fact.value, model_completion=True), type_) if known else UNKNOWN
    return world
