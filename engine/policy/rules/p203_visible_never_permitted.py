"""Owns P203 visible-never-permitted."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base
from engine.policy.written import written


def check(model: Model) -> Iterator[Diagnostic]:
    known = written(model)
    if known is None:
        return
    for tool, permits in known.never_permitted.items():
        swallowing = {known.swallowed.get((id(rule), tool)) for rule in permits}
        denies = [rule for rule in known.denies_of(tool) if rule in swallowing] or known.denies_of(tool)
        names = ", ".join(f"`{rule.id}`" for rule in denies)
        yield finding(
            "P203",
            permits[0].place_of(tool),
            f"the model is shown `{tool}` and no call of it can be permitted: deny {names} covers "
            f"everything that `{permits[0].id}` permits",
            "fix one of the two: narrow the deny with `unless`, or remove the permission",
        )


RULE = Rule(
    id="P203",
    name="visible-never-permitted",
    severity=Severity.ERROR,
    summary="The model is shown a tool that no arguments can make allowed.",
    why=(
        "A tool that is offered and always refused costs tokens and turns, and the model learns nothing "
        "from trying it. It happens where a deny depends on an argument that the model has still to choose."
    ),
    bad=base(
        (
            "  - id: suspended-readers\n",
            "  - id: first-pages\n    effect: allow\n    roles: [reader]\n    tools: [read_page]\n"
            '    when: "args.number < 100"\n'
            "  - id: no-early-pages\n    effect: deny\n    tools: [read_page]\n"
            '    when: "args.number <= 500"\n  - id: suspended-readers\n',
        ),
        ("tools: [find_books, read_page]", "tools: [find_books]"),
    ),
    good=base(
        (
            "  - id: suspended-readers\n",
            "  - id: first-pages\n    effect: allow\n    roles: [reader]\n    tools: [read_page]\n"
            '    when: "args.number < 100"\n'
            "  - id: no-early-pages\n    effect: deny\n    tools: [read_page]\n"
            '    when: "args.number <= 50"\n  - id: suspended-readers\n',
        ),
        ("tools: [find_books, read_page]", "tools: [find_books]"),
    ),
    answers=CONDITION,
    check=check,
)
