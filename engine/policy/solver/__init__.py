"""Owns what can be said of conditions for all facts at once: whether a claim about them can ever hold.

First a search over the values that stand for all others, without any library; what that cannot settle goes to
an SMT solver where one is installed.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.domain.conditions import Expr
from engine.domain.facts import Facts, Value
from engine.policy.solver import finite, smt
from engine.policy.solver.claims import (
    ANY,
    FALSE,
    TRUE,
    UNSURE,
    Active,
    Argument,
    Claim,
    HasRole,
    Says,
    View,
    every,
    opposite,
    some,
)
from engine.policy.solver.worlds import facts_of, is_so

__all__ = [
    "ANY",
    "FALSE",
    "TRUE",
    "UNSURE",
    "Active",
    "Argument",
    "Claim",
    "Example",
    "HasRole",
    "Says",
    "Solver",
    "View",
    "every",
    "opposite",
    "some",
]


class Example(NamedTuple):
    """Facts under which a claim holds, as the evaluator says, and what was chosen for each fact that matters."""

    facts: Facts
    chosen: dict[str, Value]


class Solver:
    """Answers claims about conditions."""

    def __init__(self) -> None:
        self.limited = False
        """A question was left open for want of the SMT solver."""

    def impossible(self, claim: Claim, view: View, *, deep: bool = True) -> bool:
        """True if the claim cannot hold, whatever the facts; False if it can, or nothing can be told.

        Without `deep` the SMT solver is not asked.
        """
        found = finite.search(claim, view)
        if found.impossible:
            return True
        if not deep or found.exact or _example(found, claim, view) is not None:
            return False
        return self._smt() and smt.solve(claim, view).impossible

    def constant(self, expr: Expr, view: View) -> bool | None:
        """True if the condition can never be false, False if it can never be true, else None."""
        can_be_true, can_be_false = finite.answers(expr, view)
        for wanted, truth, found in ((True, FALSE, can_be_false), (False, TRUE, can_be_true)):
            if found.impossible:
                return wanted
            claim = Says(expr, truth)
            if found.exact or _example(found, claim, view) is not None:
                continue
            if self._smt() and smt.solve(claim, view).impossible:
                return wanted
        return None

    def example(self, claim: Claim, view: View) -> Example | None:
        """Facts under which the claim holds; None if it is impossible or none was found."""
        found = finite.search(claim, view)
        if found.impossible:
            return None
        example = _example(found, claim, view)
        if example is None and self._smt():
            deeper = smt.solve(claim, view)
            example = _example(deeper, claim, view)
        return example

    def _smt(self) -> bool:
        self.limited = self.limited or not smt.is_installed()
        return smt.is_installed()


def _example(found: finite.Outcome, claim: Claim, view: View) -> Example | None:
    world = found.world
    if world is None:
        return None
    facts = facts_of(world, found.terms)
    chosen = {name: world[name] for name in found.terms if name in world}
    return Example(facts, chosen) if is_so(claim, facts, view) else None
