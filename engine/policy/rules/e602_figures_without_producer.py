"""Owns E602 figures-without-producer."""

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
    policy = model.policy_part
    if policy is None:
        return
    for name, output in policy.outputs.items():
        figures = output.figures
        if figures is None or not set(figures.from_) <= model.evidence_kinds:
            continue
        produced = _produced(model, set(figures.from_))
        for at, kind in enumerate(figures.kinds):
            if kind not in produced:
                yield finding(
                    "E602",
                    figures.place("kinds", at),
                    f"no tool that this policy grants gives `{name}` a figure of kind `{kind}`",
                    "delete the kind, or add such a figure to `evidence.figures` of a tool in `from`",
                )


def _produced(model: Model, kinds: set[str]) -> set[str]:
    """Kinds of figures in the evidence of these kinds."""
    tools = model.tools
    return {
        figure.type
        for name in granted(model)
        if (evidence := tools[name].evidence) is not None and evidence.kind in kinds
        for figure in evidence.figures.values()
    }


RULE = Rule(
    id="E602",
    name="figures-without-producer",
    severity=Severity.ERROR,
    summary="No granted tool produces such figures.",
    why=(
        "A figure is rendered by the Host from recorded evidence. A kind of figure that no evidence "
        "carries can never be rendered, so every slot of that kind would be refused."
    ),
    bad=base(("figures: {kinds: [int], from: [page]}", "figures: {kinds: [int, date], from: [page]}")),
    good=base(),
    answers=DECLARED,
    check=check,
)
