"""Every key of the language is used: one agent under `tests/policy/every_key` has each at every place of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.adapters.memory_store import MemoryStore
from engine.policy.case_files import read_cases
from engine.policy.compiler import load_policy
from engine.policy.linter import lint
from engine.policy.nodes import data
from engine.policy.source import parse
from engine.runtime.scenario.runner import run_file
from tests.scenarios.bench import failures

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests/policy/every_key"
FILES = {
    "policy": "lettings.policy.yaml",
    "tools": "lettings.tools.yaml",
    "overlay": "house-rules.overlay.yaml",
    "test": "lettings.test.yaml",
    "project": "agentctl.yaml",
}
REFUSED = {("OverlayRulePart", "needs"), ("OverlayRulePart", "unattended")}
"""Keys of a rule that neither effect of an overlay takes."""
BRANCHES = ("then", "else")

Schema = dict[str, Any]


def schema_of(document: str) -> Schema:
    found: Schema = json.loads((ROOT / f"docs/schemas/{document}.v1.json").read_text(encoding="utf-8"))
    return found


def keys_of(node: Any, root: Schema, part: str, seen: set[str]) -> Iterator[tuple[str, str]]:
    """Each (part of a document, key) that a schema knows, each part once."""
    if isinstance(node, list):
        for each in node:
            yield from keys_of(each, root, part, seen)
    if not isinstance(node, dict):
        return
    name = node.get("$ref", "").rpartition("/")[2]
    if name and name not in seen:
        seen.add(name)
        yield from keys_of(root["$defs"][name], root, name, seen)
    for key, inner in node.get("properties", {}).items():
        if (part, key) not in REFUSED:
            yield part, key
            yield from keys_of(inner, root, part, seen)
    for inside in ("items", "additionalProperties", *BRANCHES):
        yield from keys_of(node.get(inside), root, part, seen)
    yield from keys_of([*node.get("patternProperties", {}).values()], root, part, seen)


def used(node: Any, root: Schema, value: Any, part: str) -> Iterator[tuple[str, str]]:
    """Each (part, key) that a document uses."""
    if not isinstance(node, dict):
        return
    name = node.get("$ref", "").rpartition("/")[2]
    if name:
        yield from used(root["$defs"][name], root, value, name)
    for branch in BRANCHES:
        yield from used(node.get(branch), root, value, part)
    if isinstance(value, list):
        for item in value:
            yield from used(node.get("items"), root, item, part)
    if isinstance(value, dict):
        known, free = node.get("properties", {}), [*node.get("patternProperties", {}).values()]
        for key, item in value.items():
            if key in known:
                yield part, key
            for inner in [known[key]] if key in known else [node.get("additionalProperties"), *free]:
                yield from used(inner, root, item, part)


@pytest.mark.parametrize("document", FILES)
def test_every_key_is_used_at_every_place_where_it_may_stand(document: str) -> None:
    schema = schema_of(document)
    root = parse(document, (FOLDER / FILES[document]).read_text(encoding="utf-8")).root
    assert root is not None
    known = set(keys_of(schema, schema, document, set()))
    assert len(known) > 10
    assert sorted(known - set(used(schema, schema, data(root), document))) == []


def test_the_agent_that_uses_every_key_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    report = lint(["."])
    assert [f"{each.code} {each.location} {each.message}" for each in report.diagnostics] == []


def test_its_cases_hold_and_leave_no_rule_alone() -> None:
    result = run_file(read_cases(str(FOLDER / FILES["test"]), load_policy), MemoryStore)
    assert {case.id: failures(case) for case in result.cases if case.verdict != "ok"} == {}
    assert result.untested == ()


def test_each_key_that_an_overlay_does_not_take_is_refused(tmp_path: Path) -> None:
    text = (FOLDER / FILES["overlay"]).read_text(encoding="utf-8")
    for line in ("needs: [letters]", "unattended: {because: b, max_per_run: 1}"):
        (tmp_path / "o.overlay.yaml").write_text(
            text.replace("    approval:\n", f"    {line}\n    approval:\n", 1)
        )
        (found,) = [each for each in lint([str(tmp_path)]).diagnostics if each.severity.name == "ERROR"]
        assert (found.code, line.partition(":")[0] in found.message) == ("Y203", True)
