"""Owns M407 state-in-prompt."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base

RULE = Rule(
    id="M407",
    name="state-in-prompt",
    severity=Severity.WARNING,
    summary="App state is pasted in the prompt instead of projected.",
    why=(
        "A prompt is rendered once and then grows stale in the history. A projection is rendered anew each "
        "turn, with version and age, and what was shown is recorded."
    ),
    bad=base(
        ("vars: [task.branch]", "vars: [task.branch, state.account.fines_minor]"),
        files={"loans.md.j2": "Branch {{ task.branch }}, fines {{ state.account.fines_minor }}.\n"},
    ),
    good=base(
        (
            "outputs:\n",
            "projections:\n  - {id: account, from: state.account, fields: [fines_minor]}\noutputs:\n",
        )
    ),
    answers=DECLARED,
)
