"""Owns Y101 yaml-syntax."""

from __future__ import annotations

from engine.domain.diagnostics import Severity
from engine.policy.rules import Rule
from engine.policy.rules.answers import SHAPE
from engine.policy.rules.examples import base

RULE = Rule(
    id="Y101",
    name="yaml-syntax",
    severity=Severity.ERROR,
    summary="The file is not YAML.",
    why=(
        "Nothing of a file that cannot be read is used, and everything that depends on it stops. A "
        "condition that holds a colon and a space must be quoted, or YAML takes it for a mapping."
    ),
    bad=base(('when: "principal.suspended"', "when: task.branch == 'harbour: quay'")),
    good=base(('when: "principal.suspended"', "when: \"task.branch == 'harbour'\"")),
    answers=SHAPE,
)
