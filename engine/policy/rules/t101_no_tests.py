"""Owns T101 no-tests."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    policy = model.policy_part
    if policy is not None and not policy.is_lost("tests") and (not policy.tests or _empty(model)):
        yield finding(
            "T101",
            policy.key_place("tests") if policy.is_written("tests") else policy.place("id"),
            "the policy has no scenario tests",
            "write a test/v1 file with one case and name it: `tests: [NAME.test.yaml]`",
        )


def _empty(model: Model) -> bool:
    """Every test file was read, and none has a case."""
    parts = model.test_parts.values()
    return len(parts) == len(model.test_files) > 0 and not any(
        part.cases or part.is_lost("cases") for part in parts
    )


RULE = Rule(
    id="T101",
    name="no-tests",
    severity=Severity.WARNING,
    summary="The policy has no scenario tests.",
    why=(
        "A policy says what may happen; a scenario says what was meant. Without one, the next change is "
        "judged by reading alone."
    ),
    bad=base(("tests: [loans.test.yaml]\n", "")),
    good=base(),
    answers=DECLARED,
    check=check,
)
