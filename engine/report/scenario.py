"""Owns how played test files are printed: case by case, then the rules that no case made decide anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.domain.canonical import JsonObject
from engine.domain.diagnostics import many
from engine.domain.policy import Rule
from engine.report.words import PLAIN, Style, safe
from engine.runtime.scenario.checks import Failure
from engine.runtime.scenario.runner import CaseResult, FileResult


def results_lines(results: Sequence[FileResult], style: Style = PLAIN) -> Iterator[str]:
    """Files of one policy together: its rules are counted over all of them."""
    for group in _by_policy(results):
        for result in group:
            yield style.strong(safe(result.file))
            for case in result.cases:
                yield from case_lines(case, style)
            if result is not group[-1]:
                yield f"  {many(len(result.cases), 'case')}"
        yield from _rules_lines(group, style)


def _by_policy(results: Sequence[FileResult]) -> list[list[FileResult]]:
    groups: dict[str, list[FileResult]] = {}
    for result in results:
        groups.setdefault(result.policy.file, []).append(result)
    return [*groups.values()]


def case_lines(case: CaseResult, style: Style = PLAIN) -> Iterator[str]:
    paint = style.good if case.verdict == "ok" else style.bad
    yield f"  {paint(f'{case.verdict:<4}')} {case.id}  ({many(case.checks, 'check')})"
    for failure in case.failures:
        yield f"       {_where(failure)}: {_turn(failure)}{safe(failure.message)}"
    if case.verdict == "EMPTY":
        yield f"       {case.place.file}:{case.place.line}: it checks nothing: add an `expect:` to one of its turns"


def _where(failure: Failure) -> str:
    return f"{failure.place.file}:{failure.place.line}"


def _turn(failure: Failure) -> str:
    return f"turn {failure.turn}: " if failure.turn else ""


def _rules_lines(group: Sequence[FileResult], style: Style) -> Iterator[str]:
    cases = sum(len(result.cases) for result in group)
    if not all(result.whole for result in group):
        yield f"  {many(cases, 'case')} of those in the file"
        return
    rules, untested = group[0].rules, untested_rules(group)
    counted = f"{len(rules) - len(untested)}/{len(rules)}"
    yield f"  {many(cases, 'case')}, rules of this policy that decided something: {counted}"
    for rule in untested:
        place = f"{rule.place.file}:{rule.place.line}"
        yield f"       {style.caution('T102 untested-rule')}: `{rule.id}`  {place}"


def untested_rules(group: Sequence[FileResult]) -> list[Rule]:
    """Rules that none of the files of a policy exercises."""
    missing = [{rule.id for rule in result.untested} for result in group]
    return [rule for rule in group[0].untested if all(rule.id in each for each in missing)]


def results_json(results: Sequence[FileResult]) -> JsonObject:
    """Lines and columns count from 1."""
    return {
        "schema": "agentctl.test/v1",
        "cases": sum(len(result.cases) for result in results),
        "failed": sum(result.failed for result in results),
        "files": [_file_json(result) for result in results],
        "policies": [_policy_json(group) for group in _by_policy(results)],
    }


def _file_json(result: FileResult) -> JsonObject:
    cases: list[JsonObject] = [
        {
            "id": case.id,
            "verdict": case.verdict,
            "checks": case.checks,
            "line": case.place.line,
            "failures": [_failure_json(failure) for failure in case.failures],
        }
        for case in result.cases
    ]
    return {"file": result.file, "policy": result.policy.id, "cases": [*cases]}


def _failure_json(failure: Failure) -> JsonObject:
    place = failure.place
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "turn": failure.turn,
        "message": failure.message,
    }


def _policy_json(group: Sequence[FileResult]) -> JsonObject:
    policy, rules = group[0].policy, group[0].rules
    untested = untested_rules(group) if all(result.whole for result in group) else []
    return {
        "policy": policy.id,
        "version": policy.version,
        "file": policy.file,
        "rules": len(rules),
        "untested": [
            {"code": "T102", "rule": rule.id, "file": rule.place.file, "line": rule.place.line}
            for rule in untested
        ],
    }
