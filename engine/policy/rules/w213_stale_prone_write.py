"""Owns W213 stale-prone-write."""

from __future__ import annotations

from collections.abc import Iterator

from engine.domain.diagnostics import Diagnostic, Severity
from engine.policy.codes import finding
from engine.policy.documents.tools import ToolPart
from engine.policy.model import Model
from engine.policy.rules import Rule
from engine.policy.rules.answers import DECLARED
from engine.policy.rules.examples import base
from engine.policy.written import Written, WrittenRule, written


def check(model: Model) -> Iterator[Diagnostic]:
    known = written(model)
    if known is None:
        return
    for rule in known.rules:
        for name in rule.part.tools if rule.permits and not rule.part.is_lost("fresh") else ():
            tool = known.tools.get(name)
            if tool is not None and tool.kind != "read":
                yield from _stale(known, rule, name, tool)


def _stale(known: Written, rule: WrittenRule, name: str, tool: ToolPart) -> Iterator[Diagnostic]:
    checked = {fresh.state for each in (rule, *_always(known, name)) for fresh in each.part.fresh}
    for slice_ in _slices(tool):
        if slice_ not in checked and slice_ in known.part.state:
            yield finding(
                "W213",
                rule.part.key_place("id"),
                f"`{name}` uses state `{slice_}` and rule `{rule.id}` does not say how fresh it must be",
                f"fresh: [{{state: {slice_}, same_version_as: proposal}}]",
            )


def _slices(tool: ToolPart) -> list[str]:
    """The state slices that the tool's parameters are bound to."""
    binds = [part.bind for part in tool.params.values() if part.bind is not None]
    return list(dict.fromkeys(bind.split(".")[1] for bind in binds if bind.startswith("state.")))


def _always(known: Written, tool: str) -> list[WrittenRule]:
    """Rules that take part in every call of the tool, so that their `fresh` is always checked."""
    return [
        rule
        for rule in known.rules_of(tool)
        if rule.effect == "require" and rule.whole
        if rule.part.roles is None and rule.when is None and rule.unless is None
    ]


RULE = Rule(
    id="W213",
    name="stale-prone-write",
    severity=Severity.ERROR,
    summary="A write binds app state without saying how fresh it must be.",
    why=(
        "The cart that was shown, the address that was read, the price that was approved: between then and "
        "the call they change. `fresh` is checked when the call runs, and the receipt says what changed."
    ),
    bad=base(("    fresh:\n      - {state: account, max_age: 30s}\n", "")),
    good=base(),
    answers=DECLARED,
    check=check,
)
