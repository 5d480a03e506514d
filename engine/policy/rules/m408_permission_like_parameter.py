"""Owns M408 permission-like-parameter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.domain.diagnostics import Confidence, Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import WORDING
from engine.policy.rules.examples import base

_PERMISSIONS: Final = frozenset(
    """
    allowed is_allowed approval approved approved_by approver is_approved approval_status approval_id
    requires_approval require_approval needs_approval skip_approval bypass_approval auto_approve
    authorised authorized is_authorised is_authorized authorised_by authorized_by authorization
    permission permissions has_permission permitted is_permitted bypass_policy override_policy
    consent user_consent has_consent user_approved user_confirmed confirmed_by confirmed_by_user
    is_admin as_admin sudo
    """.split()  # noqa: SIM905 - forty quoted words would be harder to read
)


def check(model: Model) -> Iterator[Diagnostic]:
    for tool in model.tools.values():
        for name, part in tool.params.items() if tool.exposed == "model" else ():
            if name in _PERMISSIONS and part.bind is None and part.type not in ("ref", "record"):
                yield finding(
                    "M408",
                    part.here,
                    f"`{name}` asks the model for what only policy or people decide",
                    "delete the parameter: an `ask` or `require` rule asks a person",
                )


RULE = Rule(
    id="M408",
    name="permission-like-parameter",
    severity=Severity.WARNING,
    summary="The model is asked for what only policy or people decide.",
    why=(
        "A model that is asked whether it has an approval says yes. Permission is decided by rules over facts "
        "and by people, and stands in the receipt."
    ),
    bad=base(("note: {type: text, max_len: 300, required: false}", "requires_approval: {type: bool}")),
    good=base(),
    answers=WORDING,
    confidence=Confidence.LIKELY,
    check=check,
)
