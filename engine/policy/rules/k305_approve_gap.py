"""Owns K305 approve-gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.domain.conditions import Condition
from engine.domain.diagnostics import Diagnostic, Severity
from engine.domain.facts import Facts, Unknown, Value
from engine.domain.policy import Capability
from engine.policy.codes import finding
from engine.policy.documents.policy import CapabilityPart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base
from engine.policy.solver import FALSE, TRUE, Claim, Says, every, some
from engine.policy.written import Written, written


def check(model: Model) -> Iterator[Diagnostic]:
    known = written(model)
    if known is None:
        return
    for name, part in known.part.capabilities.items():
        if not part.is_lost("approve"):
            yield from _gap(known, name, part)


def _gap(known: Written, name: str, part: CapabilityPart) -> Iterator[Diagnostic]:
    conditions = [known.model.condition(branch, "when") for branch in part.approve if branch.at is None]
    branches = [each for each in conditions if each is not None]
    capability = known.policy.capabilities.get(name)
    if capability is None or not branches or len(branches) < len(conditions):
        return
    if known.solver.impossible(some(Says(each.expr, TRUE) for each in branches), known.anywhere):
        return
    chosen = _uncovered(known, part, capability, branches)
    if chosen is not None:
        shown = " and ".join(f"`{path} = {_shown(value)}`" for path, value in chosen.items())
        yield finding(
            "K305",
            part.key_place("approve"),
            f"no approve branch of `{name}` covers {shown or 'some requests'}: such a request is denied",
            "add a branch; uncovered requests are denied",
        )


def _uncovered(
    known: Written, part: CapabilityPart, capability: Capability, branches: list[Condition]
) -> Mapping[str, Value] | None:
    """What a request that no branch covers asks for, as the decision itself says."""
    claims: list[Claim] = [Says(each.expr, FALSE) for each in branches]
    asked = known.model.condition(part.request, "when")
    if asked is not None:
        claims.append(Says(asked.expr, TRUE))
    example = known.solver.example(every(claims), known.anywhere)
    if example is None or not _is_denied(capability, example.facts):
        return None
    known_values = {path: value for path, value in example.chosen.items() if not isinstance(value, Unknown)}
    params = {
        path.removeprefix("params."): known_values[path]
        for path in known_values
        if path.startswith("params.")
    }
    return params or known_values


def _is_denied(capability: Capability, facts: Facts) -> bool:
    from engine.policy.capabilities import branch_of  # loads the events, which linting else does without

    return branch_of(capability, facts) is None


def _shown(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


RULE = Rule(
    id="K305",
    name="approve-gap",
    severity=Severity.WARNING,
    summary="Some requests match no approve branch, so they are denied.",
    why=(
        "The first branch that applies decides, and where none does the request is denied. That is safe and "
        "seldom meant: the model is offered a value that nobody can grant."
    ),
    bad=base(
        (
            "{by: {roles: [librarian]}, timeout: 4h}",
            "{when: \"params.room == 'maps'\", by: {roles: [librarian]}, timeout: 4h}",
        )
    ),
    good=base(
        (
            "{by: {roles: [librarian]}, timeout: 4h}",
            "{when: \"params.room == 'maps'\", by: {roles: [librarian]}, timeout: 4h}\n"
            "      - {when: \"params.room == 'letters'\", by: host}",
        )
    ),
    answers=CONDITION,
    check=check,
)
