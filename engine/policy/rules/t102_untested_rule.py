"""Owns T102 untested-rule."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

_ONE_CASE = "        expect: {calls: [{outcome: confirmed}]}\n"
_ANOTHER_CASE = """\
  - id: suspended-readers-hold-nothing
    given: {principal: {id: r1, roles: [reader], suspended: true}, task: {branch: main}}
    turns:
      - propose: [{call: hold_book, args: {book: b1}}]
        expect: {hides: [hold_book], calls: [{outcome: rejected}]}
"""

RULE = Rule(
    id="T102",
    name="untested-rule",
    severity=Severity.WARNING,
    summary="No scenario makes this rule decide anything.",
    why=(
        "A rule that no case exercises can be wrong, or deleted, without a test that says so. `agentctl "
        "test` prints each of them after the cases."
    ),
    bad=base(),
    good=base((_ONE_CASE, _ONE_CASE + _ANOTHER_CASE)),
    answers=DECLARED,
    deep=True,
)
