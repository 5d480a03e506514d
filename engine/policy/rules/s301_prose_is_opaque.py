"""Owns S301 prose-is-opaque."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base

RULE = Rule(
    id="S301",
    name="prose-is-opaque",
    severity=Severity.ERROR,
    summary="A condition looks into free text.",
    why=(
        "The same words can be a claim, a quotation, a negation or a hypothesis. A rule over wording "
        "rejects honest examples and passes paraphrases, and a reworded answer that passes proves "
        "nothing. Of free text a condition may ask `size()`, `has()` and `links()`, nothing else."
    ),
    bad=base(
        (
            "fines_minor <= limits.fine_cap_minor",
            "fines_minor <= limits.fine_cap_minor && has(args.note) && args.note.contains('urgent')",
        )
    ),
    good=base(
        (
            "fines_minor <= limits.fine_cap_minor",
            "fines_minor <= limits.fine_cap_minor && (!has(args.note) || size(args.note) <= 200)",
        )
    ),
    answers=CONDITION,
    suppressible=False,
)
