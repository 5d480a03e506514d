"""Owns M404 finish-writes-state."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import CONDITION
from engine.policy.rules.examples import base

RULE = Rule(
    id="M404",
    name="finish-writes-state",
    severity=Severity.ERROR,
    summary="A terminal fact is taken from a model argument.",
    why=(
        "A Run is over when counted facts say so. A gate that reads what the model wrote would let the "
        "model end its own Run by saying that it is done."
    ),
    bad=base(
        (
            "    - output_committed: answer\n",
            '    - output_committed: answer\n    - when: "args.answer_complete"\n',
        )
    ),
    good=base(
        (
            "    - output_committed: answer\n",
            '    - output_committed: answer\n    - when: "calls.failed == 0"\n',
        )
    ),
    answers=CONDITION,
    suppressible=False,
)
