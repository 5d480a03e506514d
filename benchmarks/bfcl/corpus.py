"""Owns what is read from the Berkeley Function-Calling Leaderboard's data: schemas, questions, gold calls."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

Schema = Mapping[str, Any]
Args = dict[str, Any]
_NO_FUNCTIONS = "format_sensitivity"
_WITHOUT_CALLS = ("multi_turn", "memory", "web_search")
"""Their gold answers are programs for simulators, not single calls."""


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    functions: tuple[Schema, ...]
    gold: tuple[tuple[str, Args], ...]
    """Tool and arguments, the first acceptable value of each; an argument whose first is `""` is left out where
    it is optional."""


@cache
def schemas() -> list[Schema]:
    """Every distinct function schema of the data: 3,420."""
    found: dict[str, Schema] = {}
    for _, line in _lines(""):
        for function in _functions(line):
            found.setdefault(json.dumps(function, sort_keys=True), function)
    for _, line in _lines("multi_turn_func_doc"):
        found.setdefault(json.dumps(line, sort_keys=True), line)
    return list(found.values())


@cache
def questions(filled: bool = False) -> list[Question]:
    """Every question that has functions; with its gold calls, 3,302 in all, where the data has them. With `filled`
    an optional argument that may be left out is given all the same, where the data has a value for it."""
    gold = {
        line["id"]: line["ground_truth"]
        for name, line in _lines("possible_answer")
        if not any(part in name for part in _WITHOUT_CALLS)
    }
    return [
        Question(line["id"], tuple(_functions(line)), tuple(_gold(line, gold.get(line["id"], ()), filled)))
        for _, line in _lines("")
        if line.get("function")
    ]


def _functions(line: Mapping[str, Any]) -> list[Schema]:
    return list(line.get("function") or ())


def _lines(folder: str) -> Iterator[tuple[str, dict[str, Any]]]:
    data = importlib.resources.files("bfcl_eval") / "data"
    place = data / folder if folder else data
    for file in sorted(place.iterdir(), key=lambda each: each.name):
        if not file.name.endswith(".json") or _NO_FUNCTIONS in file.name:
            continue
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.strip():
                yield file.name, json.loads(line)


def _gold(line: Mapping[str, Any], answers: Any, filled: bool) -> Iterator[tuple[str, Args]]:
    known = {function["name"]: function for function in _functions(line)}
    for answer in answers:
        for name, args in answer.items():
            required = known[name]["parameters"].get("required") or ()
            chosen = {
                param: _chosen(values)
                for param, values in args.items()
                if (param in required and not filled) or _is_given(values, filled)
            }
            yield name, chosen


def _is_given(values: list[Any], filled: bool) -> bool:
    return any(each != "" for each in values) if filled else bool(values) and values[0] != ""


def _chosen(values: list[Any]) -> Any:
    return next((_value(each) for each in values if each != ""), "")


def _value(value: Any) -> Any:
    """Acceptable answers of records list what is acceptable for each of their fields."""
    if isinstance(value, dict):
        return {
            name: _chosen(inner) if isinstance(inner, list) else inner
            for name, inner in value.items()
            if not isinstance(inner, list) or (inner and inner[0] != "")
        }
    return (
        [_value(each) if isinstance(each, dict) else each for each in value]
        if isinstance(value, list)
        else value
    )
