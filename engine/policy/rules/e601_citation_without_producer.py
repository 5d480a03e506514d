"""Owns E601 citation-without-producer."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base
from engine.policy.rules.grants import granted


def check(model: Model) -> Iterator[Diagnostic]:
    """The compiler finds kinds that no tool produces; here those that no granted tool does."""
    policy = model.policy_part
    if policy is None:
        return
    tools = model.tools
    produced = {evidence.kind for name in granted(model) if (evidence := tools[name].evidence) is not None}
    for output in policy.outputs.values():
        for at, kind in enumerate(output.citations.kinds if output.citations else ()):
            if kind in model.evidence_kinds - produced and output.citations is not None:
                yield finding(
                    "E601",
                    output.citations.place("kinds", at),
                    f"no tool that this policy grants produces the evidence kind `{kind}`",
                    f"grant one of: {', '.join(_producers(model, kind))}; or delete the kind",
                )


def _producers(model: Model, kind: str) -> list[str]:
    return sorted(
        name for name, tool in model.tools.items() if tool.evidence is not None and tool.evidence.kind == kind
    )


RULE = Rule(
    id="E601",
    name="citation-without-producer",
    severity=Severity.ERROR,
    summary="No granted tool produces this evidence kind.",
    why=(
        "A citation must resolve to evidence that this Run produced. A kind that nothing in the policy "
        "can produce is a misspelling, or a permission that is missing."
    ),
    bad=base(("kinds: [page, letter]", "kinds: [pages, letter]")),
    good=base(),
    answers=DECLARED,
    check=check,
)
