"""Owns P210 overlay-cannot-allow."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

_OVERLAY = """\
agentctl: overlay/v1
id: branch
version: 1
owner: security
permissions:
  - {id: closed-today, effect: deny, tools: [borrow_book], when: "task.branch == 'harbour'"}
"""

RULE = Rule(
    id="P210",
    name="overlay-cannot-allow",
    severity=Severity.ERROR,
    summary="An overlay tried to allow.",
    why=(
        "An overlay restricts: adding one can never grant anything, so nobody has to read it to know what a"
        " policy permits."
    ),
    bad=base(
        (
            "tool_specs: [loans.tools.yaml]\n",
            "tool_specs: [loans.tools.yaml]\noverlays: [branch.overlay.yaml]\n",
        ),
        files={"branch.overlay.yaml": _OVERLAY.replace("effect: deny", "effect: allow")},
    ),
    good=base(
        (
            "tool_specs: [loans.tools.yaml]\n",
            "tool_specs: [loans.tools.yaml]\noverlays: [branch.overlay.yaml]\n",
        ),
        files={"branch.overlay.yaml": _OVERLAY},
    ),
    answers=DECLARED,
    suppressible=False,
)
