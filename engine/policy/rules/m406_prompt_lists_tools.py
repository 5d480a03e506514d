"""Owns M406 prompt-lists-tools."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.domain.diagnostics import Confidence, Diagnostic, Location, Severity
from engine.policy.codes import finding
from engine.policy.model import Model
from engine.policy.names import HOST_TOOLS
from engine.policy.rules import Rule
from engine.policy.rules.answers import WORDING
from engine.policy.rules.examples import base


def check(model: Model) -> Iterator[Diagnostic]:
    if model.prompt is None:
        return
    for line, text in enumerate(model.prompt.text.splitlines(), start=1):
        for name in sorted(_names(model)):
            found = re.search(_pattern(name), text)
            if found is not None:
                start = found.start("name") + 1
                yield finding(
                    "M406",
                    Location(model.prompt.name, line, start, start + len(name)),
                    f"the prompt names the tool `{name}`",
                    "describe the work: `tools[]` describes the tools, and only those that can be used now",
                )


def _names(model: Model) -> set[str]:
    outputs = model.policy_part.outputs if model.policy_part is not None else {}
    return {*model.tools, *HOST_TOOLS, *(f"publish_{name}" for name in outputs)}


def _pattern(name: str) -> str:
    """A name that is also a word counts only where it is marked as a name."""
    if "_" in name:
        return rf"\b(?P<name>{re.escape(name)})\b"
    return rf"`(?P<name>{re.escape(name)})(?:\(\))?`"


RULE = Rule(
    id="M406",
    name="prompt-lists-tools",
    severity=Severity.WARNING,
    summary="The prompt names tools: a shadow of `tools[]`.",
    why=(
        "The contract changes from turn to turn and the prompt does not. A tool that the prompt names and "
        "the contract lacks is called anyway, and rejected."
    ),
    bad=base(files={"loans.md.j2": "Branch {{ task.branch }}. Use find_books before anything else.\n"}),
    good=base(files={"loans.md.j2": "Branch {{ task.branch }}. Look in the catalogue before you answer.\n"}),
    answers=WORDING,
    confidence=Confidence.LIKELY,
    check=check,
)
