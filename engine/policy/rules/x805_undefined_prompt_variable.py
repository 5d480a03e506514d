"""Owns X805 undefined-prompt-variable."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import NAMES
from engine.policy.rules.examples import base

RULE = Rule(
    id="X805",
    name="undefined-prompt-variable",
    severity=Severity.ERROR,
    summary="The prompt uses a variable that the policy does not declare.",
    why=(
        "A template that reads what nobody declared renders a gap, or more than was meant. `vars` is "
        "what goes into the prompt, all of it."
    ),
    bad=base(files={"loans.md.j2": "You help readers of the {{ task.branhc }} branch.\n"}),
    good=base(files={"loans.md.j2": "You help readers of the {{ task.branch }} branch.\n"}),
    answers=NAMES,
)
