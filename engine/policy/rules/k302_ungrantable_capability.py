"""Owns K302 ungrantable-capability."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.policy import CapabilityPart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base
from engine.policy.solver import TRUE, Says, some
from engine.policy.written import Written, written


def check(model: Model) -> Iterator[Diagnostic]:
    known = written(model)
    if known is None:
        return
    for name, part in known.part.capabilities.items():
        if not part.is_lost("approve") and not _grantable(known, part):
            yield finding(
                "K302",
                part.key_place("approve"),
                f"no approve branch of `{name}` can ever apply",
                "write a branch that can apply",
            )


def _grantable(known: Written, part: CapabilityPart) -> bool:
    conditions = []
    for branch in part.approve:
        when = known.model.condition(branch, "when")
        if when is None:
            return True
        conditions.append(when)
    return not known.solver.impossible(some(Says(when.expr, TRUE) for when in conditions), known.anywhere)


RULE = Rule(
    id="K302",
    name="ungrantable-capability",
    severity=Severity.ERROR,
    summary="No approve branch can ever apply.",
    why="The capability can be requested and is always denied, after somebody has waited for it.",
    bad=base(
        (
            "{by: {roles: [librarian]}, timeout: 4h}",
            "{when: \"params.room == 'maps' && params.room == 'letters'\", by: {roles: [librarian]}, timeout: 4h}",
        )
    ),
    good=base(),
    answers=CONDITION,
    check=check,
)
