"""Owns the way from a world of the solver to Facts, so that the real evaluator can say whether it is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.conditions import Call, Constant, Expr, Index, Read
from engine.domain.facts import UNKNOWN, Facts, Truth, Value
from engine.policy.conditions.evaluator import compile_test
from engine.policy.solver.claims import Active, Claim, Every, HasRole, Says, Some, View
from engine.policy.solver.finite import ABSENT
from engine.policy.solver.kleene import bit
from engine.policy.solver.terms import grounded

_ROOTS = frozenset(
    {"principal", "task", "state", "source", "run", "args", "params", "result", "outputs", "calls", "call"}
)


def facts_of(world: Mapping[str, Value], terms: Mapping[str, Expr]) -> Facts:
    """Facts in which what the world says of single facts is so; atoms are left as they are in empty facts."""
    roots: dict[str, dict[str, Any]] = {name: {} for name in _ROOTS}
    grants: dict[str, list[dict[str, Value]]] = {}
    for name, value in world.items():
        kind, _, word = name.partition(":")
        if kind == "role" and value is True:
            roots["principal"].setdefault("roles", []).append(word)
        elif kind == "grant" and value is True:
            grants.setdefault(word, [{}])
    for name, term in terms.items():
        value = world.get(name, UNKNOWN)
        if value is ABSENT:
            continue
        if isinstance(term, Read) and term.path[0] == "grant" and term.path[1] in grants:
            _put(grants[term.path[1]][0], term.path[2:], value)
        elif isinstance(term, Read) and term.path[0] in _ROOTS:
            _put(roots[term.path[0]], term.path[1:], value)
        elif isinstance(term, Index | Call):
            _put_list(roots, term, value)
    roots["principal"].setdefault("roles", [])
    facts = Facts(grants=grants)
    for root, table in roots.items():
        setattr(facts, root, table)
    return facts


def _put(table: dict[str, Any], path: tuple[str, ...], value: Value) -> None:
    for step in path[:-1]:
        inner = table.setdefault(step, {})
        if not isinstance(inner, dict):
            return
        table = inner
    if path:
        table[path[-1]] = value


def _put_list(roots: dict[str, dict[str, Any]], term: Index | Call, value: Value) -> None:
    """`x[1]` and `size(x)` as lists that are long enough."""
    operand = term.operand if isinstance(term, Index) else term.args[0]
    if not isinstance(operand, Read) or operand.path[0] not in _ROOTS or value is UNKNOWN:
        return
    table: Any = roots[operand.path[0]]
    for step in operand.path[1:-1]:
        table = table.setdefault(step, {})
    items = table.setdefault(operand.path[-1], [])
    if not isinstance(items, list):
        return
    if isinstance(term, Call):
        items.extend([UNKNOWN] * (min(value, 1000) - len(items)) if term.function == "size" else [])
    elif isinstance(term.index, Constant):
        at = term.index.value
        items.extend([UNKNOWN] * (at + 1 - len(items)))
        items[at] = value


def is_so(claim: Claim, facts: Facts, view: View) -> bool:
    """Whether the claim holds under these facts, by the evaluator that decides calls."""
    match claim:
        case Says(expr=expr, truths=truths):
            truth: Truth = compile_test(grounded(expr, view))(facts)
            return bool(bit(truth) & truths)
        case HasRole(roles=roles, wanted=wanted):
            return roles.isdisjoint(facts.principal["roles"]) is not wanted
        case Active(capability=capability, wanted=wanted):
            return bool(facts.grants.get(capability)) is wanted
        case Every(parts=parts):
            return all(is_so(part, facts, view) for part in parts)
        case Some(parts=parts):
            return any(is_so(part, facts, view) for part in parts)
