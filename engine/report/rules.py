"""Owns how rules of the linter are listed, and one of them as JSON."""

from __future__ import annotations

from typing import NamedTuple

from engine.domain.canonical import JsonObject
from engine.policy.catalogue import module_exists
from engine.policy.codes import CODES, NOT_SUPPRESSIBLE
from engine.policy.rules import Rule


class Row(NamedTuple):
    code: str
    name: str
    severity: str
    confidence: str

    @property
    def line(self) -> str:
        likely = ", likely" if self.confidence == "likely" else ""
        return f"{self.code}  {self.name:<34}{self.severity}{likely}"


def rule_list() -> list[Row]:
    """Every rule that has a page, by code and group as the language reference lists them."""
    return [
        Row(code, known.name, known.severity.value, known.confidence.value)
        for code, known in CODES.items()
        if module_exists(code)
    ]


def rule_json(rule: Rule) -> JsonObject:
    answers = rule.answers
    return {
        "schema": "agentctl.rule/v1",
        "code": rule.id,
        "name": rule.name,
        "severity": rule.severity.value,
        "confidence": rule.confidence.value,
        "suppressible": rule.id not in NOT_SUPPRESSIBLE,
        "summary": rule.summary,
        "why": rule.why,
        "bad": dict(rule.bad),
        "good": dict(rule.good),
        "questions": None
        if answers is None
        else {
            "input": answers.input,
            "effect": answers.effect,
            "paraphrase": answers.paraphrase,
            "repair": answers.repair,
        },
        "since": rule.since,
    }
