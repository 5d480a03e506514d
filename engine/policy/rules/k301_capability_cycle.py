"""Owns K301 capability-cycle."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.conditions import Condition
from engine.domain.diagnostics import Diagnostic, Severity
from engine.domain.policy import Capability
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base
from engine.policy.solver import TRUE, Claim, Says, View, every, some
from engine.policy.written import Written, written


def check(model: Model) -> Iterator[Diagnostic]:
    known = written(model)
    if known is None:
        return
    capabilities = known.policy.capabilities
    needed = {name: _needed(capability) & capabilities.keys() for name, capability in capabilities.items()}
    stuck = _stuck(known) if any(needed.values()) else set()
    reported: set[str] = set()
    for name in capabilities:
        cycle = _cycle(name, needed, stuck) if name in stuck and name not in reported else []
        if cycle:
            reported.update(cycle)
            path = " -> ".join(f"`{each}`" for each in (*cycle, cycle[0]))
            yield finding(
                "K301",
                known.part.key_place("capabilities", name),
                f"capabilities need each other, so none of them can be had: {path}",
                "break the cycle: one of them must be had without the others",
            )


def _conditions(capability: Capability) -> Iterator[Condition]:
    yield from (each for each in (capability.request_when,) if each is not None)
    yield from (branch.when for branch in capability.approve if branch.when is not None)


def _needed(capability: Capability) -> set[str]:
    """Capabilities whose grants its request or its approval reads."""
    return {
        path.split(".")[1]
        for condition in _conditions(capability)
        for path in condition.reads
        if path.startswith("grant.")
    }


def _stuck(known: Written) -> set[str]:
    """Capabilities that can be had only by somebody who has them already."""
    table = known.policy.capabilities
    left = set(table)
    while True:
        had = {name for name in left if _can_be_had(known, table[name], frozenset(left))}
        if not had:
            return left
        left -= had


def _can_be_had(known: Written, capability: Capability, missing: frozenset[str]) -> bool:
    if any(branch.at_start for branch in capability.approve):
        return True
    claims: list[Claim] = []
    if capability.request_when is not None:
        claims.append(Says(capability.request_when.expr, TRUE))
    claims.append(
        some(
            Says(branch.when.expr, TRUE) if branch.when is not None else every(())
            for branch in capability.approve
        )
    )
    view = View(limits=known.anywhere.limits, without=missing)
    return not known.solver.impossible(every(claims), view, deep=False)


def _cycle(start: str, needed: dict[str, set[str]], stuck: set[str]) -> list[str]:
    """The way from a capability back to itself over what is needed; empty if there is none."""
    path = [start]

    def walk(name: str) -> bool:
        for other in sorted(needed[name] & stuck):
            if other == start:
                return True
            if other not in path:
                path.append(other)
                if walk(other):
                    return True
                path.pop()
        return False

    return path if walk(start) else []


RULE = Rule(
    id="K301",
    name="capability-cycle",
    severity=Severity.ERROR,
    summary="Capabilities need each other.",
    why="Where each of two capabilities is granted only to somebody who has the other, nobody ever has one.",
    bad=base(
        (
            "    request: {roles: [reader]}\n",
            "    request: {roles: [reader], when: \"grant.vault_key.floor == 'upper'\"}\n",
        ),
        (
            "permissions:\n",
            "  vault_key:\n"
            "    params: {floor: {type: enum, values: [upper, lower]}}\n"
            "    request: {roles: [reader], when: \"grant.archive.room == 'maps'\"}\n"
            "    approve:\n      - {by: {roles: [librarian]}, timeout: 4h}\n"
            "    expires: {after: 2h}\n"
            "permissions:\n",
        ),
        ("needs: [archive]\n", "needs: [archive, vault_key]\n"),
    ),
    good=base(
        (
            "    request: {roles: [reader]}\n",
            "    request: {roles: [reader], when: \"grant.vault_key.floor == 'upper'\"}\n",
        ),
        (
            "permissions:\n",
            "  vault_key:\n"
            "    params: {floor: {type: enum, values: [upper, lower]}}\n"
            "    request: {roles: [reader]}\n"
            "    approve:\n      - {by: {roles: [librarian]}, timeout: 4h}\n"
            "    expires: {after: 2h}\n"
            "permissions:\n",
        ),
        ("needs: [archive]\n", "needs: [archive, vault_key]\n"),
    ),
    answers=CONDITION,
    check=check,
)
