"""Owns what a lint rule is; each file of this folder holds one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.domain.diagnostics import Confidence, Diagnostic, Severity

if TYPE_CHECKING:
    from engine.policy.model import Model


@dataclass(frozen=True, slots=True)
class FourAnswers:
    """What every hard rule must answer before it may exist."""

    input: str
    """Who supplied what the rule reads."""
    effect: str
    """Which effect it owns."""
    paraphrase: str
    """Whether a paraphrase changes the outcome."""
    repair: str
    """Whether the repair changes facts or wording."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One finding: what it catches, why, and how the file looks before and after.

    `bad` and `good` map file names to texts; the first is the file that is linted. `check` is None where the
    loader or the compiler raises the finding itself.
    """

    id: str
    name: str
    severity: Severity
    summary: str
    why: str
    bad: Mapping[str, str]
    good: Mapping[str, str]
    answers: FourAnswers | None = None
    confidence: Confidence = Confidence.CERTAIN
    suppressible: bool = True
    check: Callable[[Model], Iterable[Diagnostic]] | None = field(default=None)
    deep: bool = False
    """Needs test results, a base version or an exploration: not part of a plain `lint`."""
    since: str = "0.1.0"
