"""Owns the shape of a stated invariant of a policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from engine.domain.canonical import Json
from engine.policy.documents.base import Part
from engine.policy.documents.values import (
    ConditionText,
    CountFromZero,
    EffectName,
    EffectPattern,
    Id,
    ToolName,
)


class UnlessPart(Part):
    called: ClassVar[str] = "unless"

    approved_by_other: Id | None = None
    capability_approved_by: Id | None = None


class InvariantPart(Part):
    """A stated invariant; exactly one of its forms."""

    called: ClassVar[str] = "an invariant"
    placeholders: ClassVar[Mapping[str, Json]] = {"id": "unknown"}

    id: Id
    never_effect: EffectPattern | None = None
    never_call: ToolName | None = None
    never_unattended: EffectPattern | None = None
    at_most: CountFromZero | None = None
    before: EffectName | None = None
    closes_effect: EffectName | None = None
    reachable: Literal["finish"] | None = None
    when: ConditionText | None = None
    unless: UnlessPart | None = None
    effect: EffectName | None = None
    requires: EffectName | None = None
    on: list[Literal["run_failed", "run_cancelled", "run_finished"]] | None = None
