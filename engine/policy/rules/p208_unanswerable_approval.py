"""Owns P208 unanswerable-approval."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.policy import ApprovalPart, BranchPart, ByPart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base
from engine.policy.written import written


def check(model: Model) -> Iterator[Diagnostic]:
    for part, what in _approvals(model):
        yield from _contradiction(part, what)
    known = written(model)
    if known is None or model.unread:
        return
    for rule in known.rules:
        approval = rule.part.approval
        if rule.overlay is None or approval is None or not rule.tools:
            continue
        yield from _contradiction(approval, f"rule `{rule.id}`")
        if model.roles.isdisjoint(approval.by.roles):
            roles = ", ".join(f"`{role}`" for role in approval.by.roles)
            yield finding(
                "P208",
                approval.by.place("roles"),
                f"overlay `{rule.overlay}` wants {roles} to approve, a role that `{known.part.id}` lacks",
                "add the role to `principals.roles` of the policy",
            )


def _contradiction(part: ApprovalPart | BranchPart, what: str) -> Iterator[Diagnostic]:
    by = part.by
    if not isinstance(by, ByPart) or not by.same_principal:
        return
    if part.not_requester:
        message = (
            f"nobody can approve for {what}: `same_principal` wants the requester, `not_requester` another"
        )
        yield finding("P208", part.key_place("not_requester"), message, "keep one of the two")
    elif part.quorum > 1:
        message = (
            f"nobody can approve for {what}: `same_principal` is one person, the quorum is {part.quorum}"
        )
        yield finding("P208", part.place("quorum"), message, "lower the quorum, or drop `same_principal`")


def _approvals(model: Model) -> Iterator[tuple[ApprovalPart | BranchPart, str]]:
    policy = model.policy_part
    if policy is None:
        return
    for rule in policy.permissions:
        if rule.approval is not None:
            yield rule.approval, f"rule `{rule.id}`"
    for name, output in policy.outputs.items():
        if output.publish is not None and output.publish.approval is not None:
            yield output.publish.approval, f"the publication of `{name}`"
    for name, capability in policy.capabilities.items():
        for branch in capability.approve:
            yield branch, f"capability `{name}`"


RULE = Rule(
    id="P208",
    name="unanswerable-approval",
    severity=Severity.ERROR,
    summary="Nobody can give this approval.",
    why="An approval that nobody may give is a deny that looks like a question, and it expires each time.",
    bad=base(
        (
            "by: {roles: [reader], same_principal: true}\n",
            "by: {roles: [reader], same_principal: true}\n      not_requester: true\n",
        )
    ),
    good=base(
        (
            "by: {roles: [reader], same_principal: true}\n",
            "by: {roles: [librarian]}\n      not_requester: true\n",
        )
    ),
    answers=DECLARED,
    check=check,
)
