"""Owns findings as a SARIF 2.1.0 log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from engine.domain.canonical import Json, JsonObject
from engine.domain.diagnostics import Diagnostic
from engine.domain.version import version
from engine.policy.catalogue import load_rule
from engine.policy.codes import CODES
from engine.report.findings import Checked
from engine.report.words import PLAIN, Style

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(checked: Checked, style: Style = PLAIN) -> str:  # noqa: ARG001 - the signature of a renderer
    """One run with every finding, and the rules that these findings are of."""
    codes = sorted({found.code for found in checked.diagnostics})
    driver: JsonObject = {
        "name": "agentctl",
        "version": version(),
        "rules": [_rule(code) for code in codes],
    }
    run: JsonObject = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(found, codes, checked.texts) for found in checked.diagnostics],
    }
    if checked.notes:
        told: list[Json] = [{"level": "note", "message": {"text": note}} for note in checked.notes]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": told}]
    log: JsonObject = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, ensure_ascii=False, indent=2)


def _rule(code: str) -> JsonObject:
    known, rule = CODES[code], load_rule(code)
    summary = rule.summary if rule is not None else known.name.replace("-", " ")
    return {
        "id": code,
        "name": known.name,
        "shortDescription": {"text": summary},
        "helpUri": f"docs/rules/{code}.md",
        "defaultConfiguration": {"level": known.severity.value},
    }


def _result(found: Diagnostic, codes: Sequence[str], texts: Mapping[str, str]) -> JsonObject:
    place = found.location
    region: JsonObject = {"startLine": place.line, "startColumn": place.column}
    if place.end_column is not None:
        region["endColumn"] = place.end_column
    artifact: JsonObject = {"uri": quote(place.file.replace("\\", "/"))}
    return {
        "ruleId": found.code,
        "ruleIndex": codes.index(found.code),
        "level": found.severity.value,
        "message": {"text": f"{found.message}. {found.help}"},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
        "partialFingerprints": {"agentctl/v1": fingerprint(found, texts)},
        "properties": {"confidence": found.confidence.value},
    }


def fingerprint(found: Diagnostic, texts: Mapping[str, str]) -> str:
    """Equal for a finding whose line has only moved: code, file, stripped line text and message."""
    lines = texts.get(found.location.file, "").splitlines()
    number = found.location.line
    line = lines[number - 1].strip() if number <= len(lines) else ""
    told = "\0".join((found.code, found.location.file, line, found.message))
    return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]
