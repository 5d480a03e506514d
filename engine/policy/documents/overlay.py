"""Owns the shape of `overlay/v1`: restrictions of an organisation, applied to many policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field as Key

from engine.domain.canonical import Json
from engine.policy.documents.base import Exact, Part
from engine.policy.documents.policy import GatesPart, RulePart, TokensPart, VisibilityPart
from engine.policy.documents.values import Count, CountFromZero, Duration, Id, Money, Text, ToolName


class OverlayRulePart(RulePart):
    called: ClassVar[str] = "a rule of an overlay"
    exact_bad: ClassVar[Mapping[tuple[str, Any], Exact]] = {
        ("effect", word): Exact(
            "P210", f"an overlay cannot {word}", "an overlay restricts: `require` or `deny`"
        )
        for word in ("allow", "ask")
    }

    effect: Literal["require", "deny"]


class OverlayCallsPart(Part):
    called: ClassVar[str] = "calls"

    total: Count | None = None
    per_tool: dict[ToolName, CountFromZero] = Key(default_factory=dict)


class OverlayBudgetsPart(Part):
    called: ClassVar[str] = "budgets of an overlay"

    turns: Count | None = None
    cost_usd: Money | None = None
    wall_time: Duration | None = None
    calls: OverlayCallsPart | None = None
    tokens: TokensPart | None = None
    invalid_calls_in_a_row: Count | None = None
    no_progress_turns: Count | None = None
    no_call_turns: CountFromZero | None = None
    questions_to_user: CountFromZero | None = None


class OverlayModelPart(Part):
    called: ClassVar[str] = "model of an overlay"

    allowed: list[Text] | None = None


class OverlayDocument(Part):
    called: ClassVar[str] = "an overlay"
    placeholders: ClassVar[Mapping[str, Json]] = {"id": "unknown", "version": 0, "owner": "unknown"}

    agentctl: Literal["overlay/v1"]
    id: Id
    version: CountFromZero
    owner: Text
    about: Text | None = None
    labels: list[Id] = Key(default_factory=list)
    permissions: list[OverlayRulePart] = Key(default_factory=list)
    visibility: VisibilityPart | None = None
    gates: GatesPart | None = None
    budgets: OverlayBudgetsPart | None = None
    model: OverlayModelPart | None = None
